"""Encoders by a short text, and the options that choose one."""

from newsembed.serving import encoder, saved_model, specs
from refusals import refuses


def test_a_short_text_names_an_encoder(monkeypatch):
    made = []
    for module, name in ((encoder, "load_fastest"), (encoder, "JaxEncoder"), (saved_model, "SavedModelEncoder")):
        monkeypatch.setattr(module, name, lambda *where, name=name, **options: made.append((name, *where, options)))
    monkeypatch.setattr(encoder, "fresh_model", lambda *where: where)
    monkeypatch.setattr(specs, "allow", lambda folder: made.append(("allow", folder)))
    for spec in ("model:dir", "model:dir@7", "random:dir", "random:dir@7", "savedmodel:dir@7"):
        specs.encoder_from_spec(spec, max_length=9, progress=False, document_prompt="d ")
    specs.encoder_from_spec("savedmodel:dir")
    options = {"max_length": 9, "progress": False, "document_prompt": "d "}
    assert made == [
        ("load_fastest", "dir", None, options),
        ("load_fastest", "dir", 7, options),
        ("JaxEncoder", ("dir", 0), options),
        ("JaxEncoder", ("dir", 7), options),
        ("SavedModelEncoder", "dir@7", {"progress": False, "document_prompt": "d "}),
        ("allow", "dir@7"),
        ("SavedModelEncoder", "dir", {"progress": True}),
        ("allow", "dir"),
    ]
    assert [specs.split_number(text) for text in ("@7", "a@", "a@-1", "a@b@7")] == [
        ("@7", None), ("a@", None), ("a@-1", None), ("a@b", 7)
    ]  # fmt: skip
    assert set(specs.factories()) == {"model", "random", "savedmodel"}
    refuses("got the encoder kind 'url'", specs.encoder_from_spec, "url:a")


def test_options_choose_one_encoder():
    assert specs.EncoderOptions(model="m").needed_spec == "model:m"
    assert specs.EncoderOptions(saved_model="s").spec == "savedmodel:s"
    assert specs.EncoderOptions().spec is None
    refuses("--model: no encoder", lambda: specs.EncoderOptions().needed_spec)
    refuses("--saved_model: given with --model", specs.EncoderOptions, model="m", saved_model="s")
    reading = specs.ReadingOptions(max_length=9, prompt="p ", long_documents="windows").reading
    assert reading == {"max_length": 9, "document_prompt": "p ", "long_documents": "windows"}
