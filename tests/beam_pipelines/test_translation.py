"""Translation: splitting, folders of models, a tiny CTranslate2 model, the cache, the job with a fake translator."""

import collections
import dataclasses
import functools
import io
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from newsembed.beam_pipelines import jobs, translation
from newsembed.beam_pipelines.examples import JOB, ExamplesOptions
from newsembed.beam_pipelines.token_store import DocumentTokens
from newsembed.beam_pipelines.translated_documents import (
    STREAM,
    TranslationPlan,
    TranslationSettings,
    translate_documents,
)
from newsembed.beam_pipelines.translation import CachingTranslator, CTranslate2Translator, TranslationError
from newsembed.errors import InputError
from newsembed.formats import files, parquet
from newsembed.formats.records import Article, Triplet, make_doc_id, words_to_doc_id
from newsembed.formats.tfrecords.example import decode_example
from newsembed.formats.tfrecords.reader import RecordFile
from newsembed.formats.vocabulary import SPECIAL_TOKENS
from newsembed.tasks import registry
from newsembed.tasks.triplets import Augmentation
from newsembed.tasks.vocabulary import Vocabulary

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
VOCABULARY = Vocabulary([*SPECIAL_TOKENS, *LETTERS, *(f"##{letter}" for letter in LETTERS)])
NAN = (float("nan"),) * 3
LENGTH = 24


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
    languages = ("pt", "zh", "zh-hant")
    found = {
        tag: translation.find_language(tag, languages) for tag in ("pt-BR", "zh-Hans", "zh-Hant-HK", "ZH", "ptx", "und")
    }
    assert found == {"pt-BR": "pt", "zh-Hans": "zh", "zh-Hant-HK": "zh-hant", "ZH": "zh", "ptx": None, "und": None}
    assert [translation.is_english(tag) for tag in ("en", "en-US", "EN-gb", "enm", "und")] == [
        True,
        True,
        True,
        False,
        False,
    ]


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


def test_the_share_is_drawn_by_key():
    documents = [plan_document("fr")] * 3
    drawn = [
        [TranslationPlan(("fr",), 0.3).refusal(str(key), *documents) is None for key in range(2_000)] for _ in range(2)
    ]
    assert drawn[0] == drawn[1]
    assert np.mean(drawn[0]) == pytest.approx(0.3, abs=0.04)


NAMES = ("config.json", "model.bin", "shared_vocabulary.json", "source.spm", "target.spm")


def write_models(folder, *languages, **contents):
    for language in languages:
        for name in NAMES:
            files.make_folder(f"{folder}/{language}")
            (folder / language / name).write_text(contents.get(language, language))
    return folder


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
        ("fr/model.bin", "fr: no model.bin here"),
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


@pytest.mark.parametrize("language", ["en-GB", "no_language", "f"])
def test_folders_must_be_named_by_languages_other_than_english(tmp_path, language):
    with pytest.raises(InputError, match="expected a language other than English"):
        translation.model_files(str(write_models(tmp_path, language)))


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(InputError, match="pip install newsembed\\[translate\\]"):
        CTranslate2Translator(str(write_models(tmp_path, "fr")), 1)


class FakeTranslator:
    """Translates by a table of words; counts what it was asked for."""

    def __init__(self, languages=("fr",), broken=()):
        self.languages = languages
        self.broken = broken
        self.calls = []

    def identity(self, language):
        return f"fake-{language}"

    def translate(self, texts, language):
        if texts:
            self.calls.append((language, *texts))
        if any(word in text for text in texts for word in self.broken):
            raise RuntimeError("engine on fire")
        return [text.replace("titre", "title").replace("corps", "body").replace("vide", "") for text in texts]


def test_nothing_is_translated_twice(tmp_path):
    inner = FakeTranslator(("de", "fr"), broken=["bad"])
    cached = CachingTranslator(inner, str(tmp_path))
    assert cached.languages == ("de", "fr")
    for _ in range(2):
        assert cached.translate(["titre", "corps é"], "fr") == ["title", "body é"]
    assert CachingTranslator(inner, f"{tmp_path}/").translate(["titre", "corps é"], "fr") == ["title", "body é"]
    assert cached.translate(["titre"], "fr") == ["title"]
    assert cached.translate(["titre"], "de") == ["title"]
    for _ in range(2):
        with pytest.raises(RuntimeError, match="on fire"):
            cached.translate(["bad"], "fr")
    assert inner.calls == [("fr", "titre", "corps é"), ("fr", "titre"), ("de", "titre"), ("fr", "bad"), ("fr", "bad")]
    assert len(list(tmp_path.rglob("*.json"))) == 3
    assert all(path.suffix == ".json" for path in tmp_path.rglob("*") if path.is_file())


# The job, with articles in French ("titre", "corps"), Italian and English.


def article(name, language, title="titre", body="corps"):
    return Article(make_doc_id(name), "u", "p", language=language, title=f"{title} {name}", body=f"{body} {name}")


def triplet(anchor, positive, negative, language="fr"):
    return Triplet(make_doc_id(anchor), make_doc_id(positive), make_doc_id(negative), language, NAN, NAN, 0, 400, 0.1)


def write_stream(folder, stream, shards, record_type):
    for index, shard in enumerate(shards):
        parquet.write_shard(f"{folder}/{stream}/part-{index:05d}-of-{len(shards):05d}.parquet", shard, record_type)
    files.write_json(f"{folder}/manifest.json", {"digest": f"{folder.name}"})
    return [str(folder)]


ARTICLES = [
    *(article(f"fr{n}", "fr") for n in range(6)),
    *(article(f"it{n}", "it", "titolo", "testo") for n in range(2)),
    *(article(f"en{n}", "en", "title", "body") for n in range(2)),
]
TRIPLETS = [triplet(f"fr{n}", f"fr{(n + 1) % 6}", f"fr{(n + 2) % 6}") for n in range(6)]
MIXED = [
    triplet("it0", "fr0", "fr1", "it"),
    triplet("fr0", "it0", "fr1"),
    triplet("fr0", "fr1", "en0"),
    triplet("en0", "fr0", "fr1", "en"),
]


@pytest.fixture
def inputs(tmp_path):
    (tmp_path / "vocab.txt").write_text("".join(f"{piece}\n" for piece in VOCABULARY.pieces))
    return {
        "articles": write_stream(tmp_path / "clean", "articles", [ARTICLES[:3], ARTICLES[3:]], Article),
        "triplets": write_stream(tmp_path / "triplets", "triplets", [TRIPLETS], Triplet),
        "vocabulary": [str(tmp_path / "vocab.txt")],
        "translation_models": [str(write_models(tmp_path / "models", "fr"))],
    }


@pytest.fixture
def fake(monkeypatch):
    """The translator of the job, which runs in this process."""
    translator = FakeTranslator()
    monkeypatch.setattr(translation, "open_translator", lambda folder, beam_size, workspace: translator)
    return translator


def run_job(inputs, output, **options):
    options = ExamplesOptions(**{"max_length": LENGTH, "augmentations_per_triplet": 4, **options})
    return jobs.execute(JOB, inputs, str(output), options, ["--direct_num_workers=1"]).manifest


def read_triplets(output):
    paths = sorted(map(str, output.glob("task=triplets/language=*/part-*.tfrecord")))
    return [
        decode_example(record, registry.get("triplets").features, path) for path in paths for record in RecordFile(path)
    ]


def letters(output, phase):
    paths = sorted((output / "dead_letters" / phase).iterdir())
    return [row for path in paths for batch in parquet.read_batches(str(path)) for row in batch.to_pylist()]


def translations(manifest):
    tallies = manifest["phases"]["examples"]["tallies"]
    return {
        name.removeprefix("translation/"): count for name, count in tallies.items() if name.startswith("translation/")
    }


def tree(folder):
    return {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "timing.json"
    }


def encode(title, body):
    return VOCABULARY.encode_documents([title], [body], LENGTH)[0].tolist()


def names_of(example, parts):
    """Names of the documents that parts of an example are of."""
    names = {article.doc_id: article.title.split()[1] for article in ARTICLES}
    return [names[words_to_doc_id(tuple(example[f"{part}_doc_id"].tolist()))] for part in parts]


def test_positives_and_negatives_are_english_by_row(inputs, tmp_path, fake):
    manifest = run_job(inputs, tmp_path / "out")
    examples = read_triplets(tmp_path / "out")
    assert collections.Counter(int(example["augmentation"]) for example in examples) == {0: 6, 2: 6, 3: 6}
    for example in examples:
        anchor, positive, negative = names_of(example, ("anchor", "positive", "negative"))
        row = Augmentation(int(example["augmentation"]))
        with_title = row is not Augmentation.TITLE_TO_BODY
        assert example["translated"] == 1
        assert example["language"].item() == b"fr"
        assert (positive == anchor) == (row is Augmentation.TITLE_TO_BODY)
        assert example["positive_tokens"].tolist() == encode(
            f"title {positive}" if with_title else "", f"body {positive}"
        )
        assert example["negative_tokens"].tolist() == encode(
            f"title {negative}" if with_title else "", f"body {negative}"
        )
        body = f"corps {anchor}" if row is Augmentation.DOCUMENT_TO_DOCUMENT else ""
        assert example["anchor_tokens"].tolist() == encode(f"titre {anchor}", body)
    counts = manifest["counts"]
    assert (counts["in"], counts["out"], counts["rejected"], counts["failed"]) == (6, 6, {}, {})
    assert manifest["phases"]["translate"] == {"in": 6, "out": 6, "rejected": {}, "failed": {}, "tallies": {}}
    assert translations(manifest) == {"translated": 18}
    assert sorted(fake.calls) == sorted(("fr", f"titre fr{n}", f"corps fr{n}") for n in range(6))


def test_triplets_that_are_not_translated_are_tallied_by_reason(inputs, tmp_path, fake):
    inputs["triplets"] = write_stream(tmp_path / "mixed", "triplets", [MIXED], Triplet)
    manifest = run_job(inputs, tmp_path / "out", weights=(0.0, 0.0, 0.0, 1.0))
    assert translations(manifest) == {"translated": 1, "no_model/it": 1, "has_english": 2}
    flags = {
        tuple(names_of(example, ("anchor", "positive", "negative"))): int(example["translated"])
        for example in read_triplets(tmp_path / "out")
    }
    assert flags == {
        ("it0", "fr0", "fr1"): 1,
        ("fr0", "it0", "fr1"): 0,
        ("fr0", "fr1", "en0"): 0,
        ("en0", "fr0", "fr1"): 0,
    }
    untranslated = next(
        example for example in read_triplets(tmp_path / "out") if names_of(example, ("positive",)) == ["it0"]
    )
    assert untranslated["positive_tokens"].tolist() == encode("titolo it0", "testo it0")
    assert untranslated["negative_tokens"].tolist() == encode("titre fr1", "corps fr1")
    assert sorted(call[1] for call in fake.calls) == ["titre fr0", "titre fr1"]  # only what a translated example needs


def test_a_row_that_takes_the_anchors_own_text_needs_no_model_for_the_positive(inputs, tmp_path, fake):
    inputs["triplets"] = write_stream(
        tmp_path / "own", "triplets", [[triplet("fr0", "it0", "fr1"), triplet("fr2", "en0", "fr3")]], Triplet
    )
    manifest = run_job(inputs, tmp_path / "out", weights=(1.0, 0.0, 0.0, 0.0))
    assert translations(manifest) == {"translated": 2}
    assert sorted(call[1] for call in fake.calls) == ["titre fr0", "titre fr1", "titre fr2", "titre fr3"]


@pytest.mark.parametrize(("broken", "empty"), [("fr2", ""), ("", "fr2")])
def test_a_failed_document_is_a_dead_letter_and_its_triplets_stay_french(inputs, tmp_path, fake, broken, empty):
    articles = [article(f"fr{n}", "fr") for n in range(6)]
    if empty:
        articles[2] = dataclasses.replace(articles[2], body="vide")
    inputs["articles"] = write_stream(tmp_path / "some", "articles", [articles], Article)
    fake.broken = [broken] if broken else []
    manifest = run_job(inputs, tmp_path / "out", weights=(0.0, 0.0, 0.0, 1.0))
    assert manifest["phases"]["translate"] == {
        "in": 6,
        "out": 5,
        "rejected": {},
        "failed": {"translation_error": 1},
        "tallies": {},
    }
    assert (manifest["counts"]["in"], manifest["counts"]["out"], manifest["counts"]["failed"]) == (
        6,
        6,
        {},
    )  # triplets, not documents
    assert translations(manifest) == {"translated": 4, "failed": 2}
    flags = {
        tuple(names_of(example, ("positive", "negative"))): int(example["translated"])
        for example in read_triplets(tmp_path / "out")
    }
    assert flags == {(f"fr{(n + 1) % 6}", f"fr{(n + 2) % 6}"): int(n not in {0, 1}) for n in range(6)}
    (letter,) = letters(tmp_path / "out", "translate")
    assert (letter["key"], letter["outcome"], letter["reason"]) == (make_doc_id("fr2"), "failed", "translation_error")
    assert letter["detail"] == (
        "fr: RuntimeError: engine on fire"
        if broken
        else "fr: TranslationError: the translation of the body is empty: ''"
    )
    assert letter["sample"].startswith("titre fr2")


def test_without_models_nothing_changes(inputs, tmp_path, fake):
    manifest = run_job(inputs | {"translation_models": []}, tmp_path / "none")
    assert set(manifest["phases"]) == {"tokens", "send", "examples"}
    assert translations(manifest) == {}
    assert {int(example["translated"]) for example in read_triplets(tmp_path / "none")} == {0}
    run_job(inputs, tmp_path / "share", translate_share=0.0)
    shards = [path.relative_to(tmp_path / "none") for path in (tmp_path / "none").rglob("*.tfrecord")]
    assert shards
    assert all(
        (tmp_path / "none" / shard).read_bytes() == (tmp_path / "share" / shard).read_bytes() for shard in shards
    )
    assert fake.calls == []


def test_output_depends_on_records_only(inputs, tmp_path, fake):
    run_job(inputs, tmp_path / "one", translate_share=0.6)
    inputs["articles"] = write_stream(tmp_path / "other", "articles", [ARTICLES[:7:-1], ARTICLES[7::-1]], Article)
    inputs["triplets"] = write_stream(tmp_path / "reversed", "triplets", [TRIPLETS[:1:-1], TRIPLETS[1::-1]], Triplet)
    run_job(inputs, tmp_path / "two", translate_share=0.6)
    shards = [path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*.tfrecord")]
    assert 0 < sum(int(example["translated"]) for example in read_triplets(tmp_path / "one")) < 18
    assert all((tmp_path / "one" / shard).read_bytes() == (tmp_path / "two" / shard).read_bytes() for shard in shards)


def test_a_resumed_job_writes_the_same_bytes_and_translates_nothing_twice(inputs, tmp_path, fake, monkeypatch):
    run_job(inputs, tmp_path / "whole")
    fake.calls.clear()
    translate = FakeTranslator.translate

    def failing(self, texts, language):
        if len(self.calls) == 4:
            monkeypatch.setattr(FakeTranslator, "translate", translate)
            raise OSError("disk full")  # no fault of the document: it ends the job
        return translate(self, texts, language)

    monkeypatch.setattr(FakeTranslator, "translate", failing)
    with pytest.raises(OSError, match="disk full"):
        run_job(inputs, tmp_path / "resumed")
    assert len(fake.calls) == 4
    run_job(inputs, tmp_path / "resumed")
    assert tree(tmp_path / "resumed") == tree(tmp_path / "whole")
    assert sorted(fake.calls) == sorted(("fr", f"titre fr{n}", f"corps fr{n}") for n in range(6))


def test_a_shared_cache_serves_other_runs_and_survives_them(inputs, tmp_path, fake):
    cache = str(tmp_path / "cache")
    run_job(inputs, tmp_path / "one", translation_cache=cache)
    assert len(fake.calls) == 6
    run_job(inputs, tmp_path / "two", translation_cache=cache, max_length=12)
    assert len(fake.calls) == 6
    assert len(list((tmp_path / "cache").rglob("*.json"))) == 6
    assert not [path for path in (tmp_path / "one").rglob("*") if "translat" in path.name]


def test_another_model_runs_the_job_again(inputs, tmp_path, fake):
    def skipped():
        return jobs.execute(
            JOB, inputs, str(tmp_path / "out"), ExamplesOptions(max_length=LENGTH), ["--direct_num_workers=1"]
        ).skipped

    assert (skipped(), skipped()) == (False, True)
    (tmp_path / "models/fr/model.bin").write_text("tuned")
    assert (skipped(), skipped()) == (False, True)


# A real model of CTranslate2: a Marian of one layer with random weights, which therefore babbles.


def write_pieces(path):
    sentencepiece = pytest.importorskip("sentencepiece", reason="sentencepiece is not installed")
    lines = [
        "le fleuve a inondé la ville",
        "les habitants ont quitté la maison",
        "the river flooded the town",
        "people left home",
    ] * 5
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=40,
        hard_vocab_limit=False,
        bos_id=-1,
        num_threads=1,
        minloglevel=2,
    )
    path.write_bytes(model.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    return [processor.id_to_piece(number) for number in range(processor.get_piece_size())]


def write_marian(folder, end_bias=2.0, seed=0, width=16):
    """Writes a converted Marian model; with a high ``end_bias`` it ends its sentences, with a low one it never does."""
    specs = pytest.importorskip("ctranslate2", reason="ctranslate2 (the extra `translate`) is not installed").specs
    folder.mkdir(parents=True)
    pieces = [write_pieces(folder / name) for name in ("source.spm", "target.spm")][0]
    tokens = ["</s>", "<unk>", *(piece for piece in pieces if piece not in {"</s>", "<unk>"})]
    random = np.random.default_rng(seed)
    spec = specs.TransformerSpec.from_config(1, 2, pre_norm=False, activation=specs.Activation.SWISH)

    def weights(*shape):
        return (random.normal(size=shape) / np.sqrt(shape[-1])).astype(np.float32)

    def fill(linear, outputs, inputs):
        linear.weight, linear.bias = weights(outputs, inputs), np.zeros(outputs, np.float32)

    def fill_norm(norm):
        norm.gamma, norm.beta = np.ones(width, np.float32), np.zeros(width, np.float32)

    def fill_attention(attention, *outputs):
        fill_norm(attention.layer_norm)
        for linear, size in zip(attention.linear, outputs, strict=True):
            fill(linear, size, width)

    embeddings, positions = weights(len(tokens), width), weights(512, width)
    for side in (spec.encoder, spec.decoder):
        (side.embeddings[0] if isinstance(side.embeddings, list) else side.embeddings).weight = embeddings
        side.position_encodings.encodings = positions
        fill_attention(side.layer[0].self_attention, 3 * width, width)
        fill_norm(side.layer[0].ffn.layer_norm)
        fill(side.layer[0].ffn.linear_0, 32, width)
        fill(side.layer[0].ffn.linear_1, width, 32)
    fill_attention(spec.decoder.layer[0].attention, width, 2 * width, width)
    spec.decoder.start_from_zero_embedding = True
    spec.decoder.projection.weight = embeddings.copy()
    spec.decoder.projection.bias = np.array([end_bias, *[0] * (len(tokens) - 1)], np.float32)
    spec.config.eos_token, spec.config.unk_token, spec.config.decoder_start_token = "</s>", "<unk>", "</s>"
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    spec.validate()
    spec.optimize(quantization="int8")
    spec.save(str(folder))


@pytest.fixture
def marian(tmp_path):
    write_marian(tmp_path / "marian/fr")
    return str(tmp_path / "marian")


SENTENCES = ["Le fleuve a inondé.", "La maison!", "Les habitants ont quitté la ville."]


def test_a_real_model_translates_sentence_by_sentence(marian):
    translator = CTranslate2Translator(marian, 2)
    assert translator.languages == ("fr",)
    assert translator.translate([], "fr") == []
    alone = [translator.translate([sentence], "fr")[0] for sentence in SENTENCES]
    assert len(set(alone)) > 1
    assert all(alone)
    title, body, empty = translator.translate(
        [SENTENCES[0], f"{SENTENCES[1]} {SENTENCES[2]}\n\n{SENTENCES[0]}", " \n"], "fr"
    )
    assert (title, body, empty) == (alone[0], f"{alone[1]} {alone[2]}\n{alone[0]}", "")
    assert CTranslate2Translator(f"{marian}/", 2).translate(SENTENCES, "fr") == alone


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
    (translated,) = CTranslate2Translator(marian, 1).translate([text], "fr")
    assert translated
    assert len(seen) > 5
    assert all(pieces[-1] == "</s>" and len(pieces) <= 129 for pieces in seen)
    assert "".join(piece for pieces in seen for piece in pieces[:-1]).replace("\u2581", "") == text.replace(" ", "")


def test_a_sentence_without_end_fails(tmp_path):
    write_marian(tmp_path / "fr", end_bias=-50.0)
    with pytest.raises(TranslationError, match="no end after 256 pieces of 'La maison!'"):
        CTranslate2Translator(str(tmp_path), 1).translate(["La maison!"], "fr")


def test_the_identity_names_model_and_beam(marian, tmp_path):
    identities = [CTranslate2Translator(marian, beam).identity("fr") for beam in (1, 2, 2)]
    write_marian(tmp_path / "other/fr", seed=1)
    identities.append(CTranslate2Translator(str(tmp_path / "other"), 2).identity("fr"))
    assert identities[1] == identities[2]
    assert len(set(identities)) == 3


@pytest.mark.parametrize("name", ["model.bin", "source.spm", "config.json", "shared_vocabulary.json"])
def test_a_broken_model_is_an_input_error(marian, inputs, tmp_path, name):
    (tmp_path / "marian/fr" / name).write_bytes(b"nonsense")
    with pytest.raises(InputError, match="CTranslate2 cannot read the model") as raised:
        run_job(inputs | {"translation_models": [marian]}, tmp_path / "out")
    assert raised.value.path.endswith("marian/fr")


def test_the_job_runs_with_a_real_model(marian, inputs, tmp_path):
    manifest = run_job(inputs | {"translation_models": [marian]}, tmp_path / "out")
    translated = manifest["phases"]["translate"]
    assert (translated["in"], translated["out"], translated["failed"]) == (6, 6, {})
    assert {int(example["translated"]) for example in read_triplets(tmp_path / "out")} == {1}


def test_worker_processes_translate_the_same_as_one(marian, inputs, tmp_path):
    articles = [f"{inputs['articles'][0]}/articles/part-0000{index}-of-00002.parquet" for index in range(2)]
    settings = TranslationSettings(marian, 2, 400, f"{tmp_path}/cache-@", inputs["vocabulary"][0], LENGTH)
    doc_ids = [[make_doc_id(f"fr{n}") for n in range(6)]] * 2

    def translate(run):
        cached = dataclasses.replace(settings, cache=settings.cache.replace("@", run.workspace.split("/")[-2]))
        run.map_shards("translate", functools.partial(translate_documents, articles=articles, settings=cached), doc_ids)
        for path in files.list_files(f"{run.workspace}/{STREAM}/*"):
            files.move(path, path.replace(f"/{STREAM}/", "/tokens/"))  # published, so that they can be compared

    for workers in (1, 2):
        job = jobs.Job("toy", "", "", (), ExamplesOptions, translate)
        outcome = jobs.execute(job, {}, f"{tmp_path}/workers{workers}", None, [f"--direct_num_workers={workers}"])
        assert (outcome.manifest["counts"]["in"], outcome.manifest["counts"]["out"]) == (6, 6)
    assert tree(tmp_path / "workers1") == tree(tmp_path / "workers2")
    assert len(tree(tmp_path / "workers1")) == 1 + 2 * 6
    assert tree(tmp_path / "cache-workers1") == tree(tmp_path / "cache-workers2")
