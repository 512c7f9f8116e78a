"""Translation: splitting, folders of models, a tiny CTranslate2 model, which examples are translated, the cache."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from newsembed.beam_pipelines import translation
from newsembed.beam_pipelines.token_store import DocumentTokens
from newsembed.beam_pipelines.translation import TranslationError, TranslationPlan, Translator
from newsembed.errors import InputError
from newsembed.formats import files
from newsembed.formats.records import make_doc_id
from newsembed.tests.translators import FakeTranslator, write_marian, write_models


def test_texts_are_cut_at_sentences():
    assert translation.cut_text("Aa bb. Cc dd. Ee ff.", 3) == "Aa bb. Cc dd."
    assert translation.cut_text("Aa bb.\nCc dd. Ee ff.", 100) == "Aa bb.\nCc dd. Ee ff."
    assert translation.cut_text("一二三四。五六", 2) == "一二三四。"


@given(st.lists(st.sampled_from(["▁a", "b", ",", "▁c,"]), max_size=60), st.integers(1, 9))
def test_cut_pieces_are_all_there_and_short(pieces, limit):
    runs = translation.cut_pieces(pieces, limit)
    assert [piece for run in runs for piece in run] == pieces
    assert all(1 <= len(run) <= limit for run in runs)


def test_pieces_are_cut_after_commas_then_before_words():
    assert translation.cut_pieces(["▁a", "b", ",", "▁c", "▁d"], 4) == [["▁a", "b", ","], ["▁c", "▁d"]]
    assert translation.cut_pieces(["▁a", "b", "▁c", "d", "e"], 3) == [["▁a", "b"], ["▁c", "d", "e"]]
    assert translation.cut_pieces(["a"] * 5, 2) == [["a", "a"], ["a", "a"], ["a"]]


def test_the_most_specific_model_of_a_language():
    models = {"pt-BR": "pt", "zh-Hans": "zh", "zh-Hant-HK": "zh-hant", "ZH": "zh", "ptx": None, "und": None}
    assert {tag: translation.find_language(tag, ("pt", "zh", "zh-hant")) for tag in models} == models


def plan_document(language):
    return DocumentTokens(make_doc_id(language), language, np.array([9], np.int32), np.array([9], np.int32), ())


@pytest.mark.parametrize(
    ("languages", "share", "refusal"),
    [
        (("fr", "fr", "de"), 1.0, None),
        (("it", "fr", "fr"), 1.0, None),  # the anchor stays as it is, so it needs no model
        (("en", "fr", "fr"), 1.0, "has_english"),
        (("fr", "fr", "en-GB"), 1.0, "has_english"),
        (("fr", "it", "fr"), 1.0, "no_model/it"),
        (("fr", "fr", "und"), 1.0, "no_model/und"),
        (("fr", "fr", "fr"), 0.0, "not_drawn"),
    ],
)
def test_which_triplets_are_translated(languages, share, refusal):
    plan = TranslationPlan(("de", "fr"), share)
    assert plan.refusal("key", *map(plan_document, languages)) == refusal


def test_the_digest_depends_on_every_byte_of_the_models(tmp_path):
    digests = [translation.models_digest(str(write_models(tmp_path / "a", "fr", "de")))]
    (tmp_path / "a/README.md").write_text("not read")
    (tmp_path / "a/fr/README.md").write_text("not read")
    assert translation.models_digest(str(tmp_path / "a/")) == digests[0]
    body = "x" * (5 << 20)
    for middle in ("y", "z"):  # as tuning a layer would change it: same size, same ends
        (tmp_path / "a/fr/model.bin").write_text(f"{body}{middle}{body}")
        digests.append(translation.models_digest(str(tmp_path / "a")))
    digests.append(translation.models_digest(str(write_models(tmp_path / "b", "fr", "nl", nl="de"))))
    assert len(set(digests)) == 4


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("fr/source.spm", "fr: no source.spm here"),
        ("fr/config.json", "fr: no config.json here"),
        ("fr", "no <language>/model.bin here"),
    ],
)
def test_a_model_that_lacks_a_file_is_named(tmp_path, path, problem):
    write_models(tmp_path, "fr")
    files.delete([str(tmp_path / path)])
    with pytest.raises(InputError, match=problem) as raised:
        translation.model_files(str(tmp_path))
    assert "ct2-transformers-converter" in raised.value.remedy


@pytest.mark.parametrize("language", ["en-GB", "no_language"])
def test_folders_must_be_named_by_languages_other_than_english(tmp_path, language):
    with pytest.raises(InputError, match="expected a language other than English"):
        translation.model_files(str(write_models(tmp_path, language)))


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(InputError, match="pip install newsembed\\[translate\\]"):
        Translator(str(write_models(tmp_path, "fr")), 1)


def test_nothing_is_translated_twice(tmp_path):
    inner = FakeTranslator(("de", "fr"), broken=["bad"])

    def cached(*texts, language="fr", folder=str(tmp_path)):
        return translation.cached(inner, folder, texts, language)

    for folder in (str(tmp_path), str(tmp_path), f"{tmp_path}/"):
        assert cached("titre", "corps é", folder=folder) == ["title", "body é"]
    assert cached("titre") == cached("titre", language="de") == ["title"]
    for _ in range(2):
        with pytest.raises(RuntimeError, match="on fire"):
            cached("bad")
    assert inner.calls == [("fr", "titre", "corps é"), ("fr", "titre"), ("de", "titre"), ("fr", "bad"), ("fr", "bad")]
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 3


@pytest.fixture
def marian(tmp_path):
    write_marian(tmp_path / "marian/fr")
    return str(tmp_path / "marian")


SENTENCES = ["Le fleuve a inondé.", "La maison!", "Les habitants ont quitté la ville."]


def test_a_real_model_translates_sentence_by_sentence(marian):
    translator = Translator(marian, 2)
    assert translator.languages == ("fr",)
    assert translator.translate([], "fr") == []
    alone = [translator.translate([sentence], "fr")[0] for sentence in SENTENCES]
    assert len(set(alone)) > 1
    assert all(alone)
    first, second, third = SENTENCES
    found = translator.translate([first, f"{second} {third}\n\n{first}", " \n"], "fr")
    assert found == [alone[0], f"{alone[1]} {alone[2]}\n{alone[0]}", ""]
    assert Translator(f"{marian}/", 2).translate(SENTENCES, "fr") == alone


def test_long_sentences_are_cut_to_what_the_model_takes(marian, monkeypatch):
    engine = translation.import_engine()
    seen = []

    class Watched:
        def __init__(self, *args, **options):
            self._inner = engine.Translator(*args, **options)

        def translate_batch(self, batch, **options):
            seen.extend(batch)
            return self._inner.translate_batch(batch, **options)

    monkeypatch.setattr(translation, "import_engine", lambda: type("Engine", (), {"Translator": Watched}))
    text = ", ".join(["le fleuve a inondé la ville"] * 60)
    (translated,) = Translator(marian, 1).translate([text], "fr")
    assert translated
    assert len(seen) > 5
    assert all(pieces[-1] == "</s>" and len(pieces) <= 129 for pieces in seen)
    assert "".join(piece for pieces in seen for piece in pieces[:-1]).replace("\u2581", "") == text.replace(" ", "")


def test_a_sentence_without_end_fails(tmp_path):
    write_marian(tmp_path / "fr", end_bias=-50.0)
    with pytest.raises(TranslationError, match="no end after 256 pieces of 'La maison!'"):
        Translator(str(tmp_path), 1).translate(["La maison!"], "fr")


@pytest.mark.parametrize("name", ["model.bin", "source.spm", "config.json"])
def test_a_broken_model_is_an_input_error(marian, tmp_path, name):
    (tmp_path / "marian/fr" / name).write_bytes(b"nonsense")
    with pytest.raises(InputError, match="fr: cannot be read: .*\n.*CTranslate2") as raised:
        Translator(marian).translate([], "fr")
    assert raised.value.path.endswith("marian/fr")
