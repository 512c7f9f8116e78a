"""The job `examples` with a translator: which texts are English, what is counted, resume, one cache for all."""

import collections
import dataclasses

import pytest
from newsembed.beam_pipelines import translation
from newsembed.beam_pipelines.examples import JOB, ExamplesOptions
from newsembed.errors import InputError
from newsembed.formats.records import Article, make_doc_id
from newsembed.tasks.kinds import Augmentation
from newsembed.tests import example_inputs
from newsembed.tests.example_inputs import manifest_of, read_examples, tfrecords, triplet, write_stream, write_triplets
from newsembed.tests.translators import FakeTranslator, write_marian, write_models

LENGTH = 24


def article(name, language, title="titre", body="corps"):
    return Article(make_doc_id(name), "u", "p", language=language, title=f"{title} {name}", body=f"{body} {name}")


ARTICLES = [
    *(article(f"fr{n}", "fr") for n in range(6)),
    *(article(f"it{n}", "it", "titolo", "testo") for n in range(2)),
    *(article(f"en{n}", "en", "title", "body") for n in range(2)),
]
TRIPLETS = [triplet(f"fr{n}", f"fr{(n + 1) % 6}", f"fr{(n + 2) % 6}", "fr") for n in range(6)]
MIXED = [
    triplet("it0", "fr0", "fr1", "it"),
    triplet("fr0", "it0", "fr1", "fr"),
    triplet("fr0", "fr1", "en0", "fr"),
    triplet("en0", "fr0", "fr1", "en"),
]


@pytest.fixture
def inputs(tmp_path):
    return {
        "articles": write_stream(tmp_path / "clean", "articles", [ARTICLES[:3], ARTICLES[3:]], Article),
        "triplets": write_triplets(tmp_path / "triplets", TRIPLETS),
        "vocabulary": example_inputs.write_vocabulary(tmp_path),
        "translation_models": [str(write_models(tmp_path / "models", "fr"))],
    }


@pytest.fixture
def fake(monkeypatch):
    """The translator of the job, which runs in this process."""
    translator = FakeTranslator()
    monkeypatch.setattr(translation, "open_translator", lambda folder, workspace: translator)
    return translator


def run_job(inputs, output, workers=1, **options):
    options = ExamplesOptions(**{"max_length": LENGTH, "augmentations_per_triplet": 4, **options})
    return manifest_of(JOB, inputs, output, options, workers=workers)


def translations(manifest):
    prefix, tallies = "translation/", manifest["phases"]["examples"]["tallies"]
    return {name.removeprefix(prefix): count for name, count in tallies.items() if name.startswith(prefix)}


def encode(title, body):
    return example_inputs.VOCABULARY.encode_documents([title], [body], LENGTH)[0].tolist()


def names_of(example, *parts):
    """Names of the documents that parts of an example are of."""
    names = {article.doc_id: article.title.split()[1] for article in ARTICLES}
    return tuple(names[one] for part in parts for one in example_inputs.doc_ids_of(example, part))


def test_positives_and_negatives_are_english_by_row(inputs, tmp_path, fake):
    manifest = run_job(inputs, tmp_path / "out")
    examples = read_examples(tmp_path / "out", "triplets")
    assert collections.Counter(int(example["augmentation"]) for example in examples) == {0: 6, 2: 6, 3: 6}
    for example in examples:
        anchor, positive, negative = names_of(example, "anchor", "positive", "negative")
        row = Augmentation(int(example["augmentation"]))
        with_title = row is not Augmentation.TITLE_TO_BODY
        assert example["translated"] == 1
        assert example["language"].item() == b"fr"
        assert (positive == anchor) == (row is Augmentation.TITLE_TO_BODY)
        for part, name in (("positive", positive), ("negative", negative)):
            title = f"title {name}" if with_title else ""
            assert example[f"{part}_tokens"].tolist() == encode(title, f"body {name}")
        body = f"corps {anchor}" if row is Augmentation.DOCUMENT_TO_DOCUMENT else ""
        assert example["anchor_tokens"].tolist() == encode(f"titre {anchor}", body)
    counts = manifest["counts"]
    assert (counts["in"], counts["out"], counts["rejected"], counts["failed"]) == (6, 6, {}, {})
    assert manifest["phases"]["translate"] == {"in": 6, "out": 6, "rejected": {}, "failed": {}, "tallies": {}}
    assert translations(manifest) == {"translated": 18}
    assert sorted(fake.calls) == sorted(("fr", f"titre fr{n}", f"corps fr{n}") for n in range(6))


def test_triplets_that_are_not_translated_are_tallied_by_reason(inputs, tmp_path, fake):
    inputs["triplets"] = write_triplets(tmp_path / "mixed", MIXED)
    manifest = run_job(inputs, tmp_path / "out", weights=(0.0, 0.0, 0.0, 1.0))
    assert translations(manifest) == {"translated": 1, "no_model/it": 1, "has_english": 2}
    found = read_examples(tmp_path / "out", "triplets")
    flags = {" ".join(names_of(one, "anchor", "positive", "negative")): int(one["translated"]) for one in found}
    assert flags == {"it0 fr0 fr1": 1, "fr0 it0 fr1": 0, "fr0 fr1 en0": 0, "en0 fr0 fr1": 0}
    untranslated = next(example for example in found if names_of(example, "positive") == ("it0",))
    assert untranslated["positive_tokens"].tolist() == encode("titolo it0", "testo it0")
    assert untranslated["negative_tokens"].tolist() == encode("titre fr1", "corps fr1")
    assert sorted(call[1] for call in fake.calls) == ["titre fr0", "titre fr1"]  # only what a translated example needs


def test_a_row_that_takes_the_anchors_own_text_needs_no_model_for_the_positive(inputs, tmp_path, fake):
    triplets = [triplet("fr0", "it0", "fr1", "fr"), triplet("fr2", "en0", "fr3", "fr")]
    inputs["triplets"] = write_triplets(tmp_path / "own", triplets)
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
    translated, counts = manifest["phases"]["translate"], manifest["counts"]
    assert (translated["in"], translated["out"], translated["failed"]) == (6, 5, {"translation_error": 1})
    assert (counts["in"], counts["out"], counts["failed"]) == (6, 6, {})  # triplets, not documents
    assert translations(manifest) == {"translated": 4, "failed": 2}
    found = read_examples(tmp_path / "out", "triplets")
    flags = {names_of(example, "positive", "negative"): int(example["translated"]) for example in found}
    assert flags == {(f"fr{(n + 1) % 6}", f"fr{(n + 2) % 6}"): int(n not in {0, 1}) for n in range(6)}
    (letter,) = example_inputs.dead_letters(tmp_path / "out", "translate")
    assert (letter.key, letter.reason) == (make_doc_id("fr2"), "translation_error")
    nothing = "TranslationError: the translation of the body is empty: ''"
    assert letter.detail == f"fr: {'RuntimeError: engine on fire' if broken else nothing}"
    assert letter.sample.startswith("titre fr2")


def test_without_models_nothing_changes(inputs, tmp_path, fake):
    manifest = run_job(inputs | {"translation_models": []}, tmp_path / "none")
    assert set(manifest["phases"]) == {"tokens", "send", "examples"}
    assert translations(manifest) == {}
    assert {int(example["translated"]) for example in read_examples(tmp_path / "none", "triplets")} == {0}
    run_job(inputs, tmp_path / "share", translate_share=0.0)
    assert tfrecords(tmp_path / "none") == tfrecords(tmp_path / "share") != {}
    assert fake.calls == []
    with pytest.raises(InputError, match="only one negative"):
        run_job(inputs, tmp_path / "both", negatives_per_example=2)


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
    assert tfrecords(tmp_path / "resumed") == tfrecords(tmp_path / "whole")
    assert sorted(fake.calls) == sorted(("fr", f"titre fr{n}", f"corps fr{n}") for n in range(6))


def test_worker_processes_translate_with_a_real_model_the_same_as_one(inputs, tmp_path):
    write_marian(tmp_path / "marian/fr")
    inputs["translation_models"] = [str(tmp_path / "marian")]
    for workers in (1, 2):
        manifest = run_job(inputs, tmp_path / str(workers), workers)
        translated = manifest["phases"]["translate"]
        assert (translated["in"], translated["out"], translated["failed"]) == (6, 6, {})
    assert {int(example["translated"]) for example in read_examples(tmp_path / "1", "triplets")} == {1}
    assert tfrecords(tmp_path / "1") == tfrecords(tmp_path / "2")
