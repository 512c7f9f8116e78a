"""Translation pairs as records: directions, pivots, documents, counts, and the same bytes in every run."""

import pytest
from newsembed.beam_pipelines.translations import JOB, TranslationsOptions
from newsembed.errors import InputError
from newsembed.formats.vocabulary import CLS_ID, SEP_ID
from newsembed.tests.example_inputs import VOCABULARY, manifest_of, read_examples, write_vocabulary


@pytest.fixture
def folder(tmp_path):
    write_vocabulary(tmp_path)
    return tmp_path


def run_job(folder, output="out", bitext=("pairs.tsv",), ids=(), **options):
    inputs = {"vocabulary": [str(folder / "vocab.txt")], "bitext": [str(folder / name) for name in bitext]}
    inputs["document_ids"] = [str(folder / name) for name in ids]
    return manifest_of(JOB, inputs, folder / output, TranslationsOptions(**options))


def read_back(output, languages):
    """(source, target, number of the target language) of every record, as text."""
    found = []
    for row in read_examples(output, "translation", languages):
        texts = []
        for ids in (row["source_tokens"], row["target_tokens"]):
            assert (ids[0], ids[-1]) == (CLS_ID, SEP_ID)
            assert not set(ids[1:-1]) & {CLS_ID, SEP_ID}
            texts.append(VOCABULARY.decode(ids))
        found.append((*texts, int(row["target_language"])))
    return found


def test_every_direction_into_a_pivot_and_every_loss_is_counted(folder):
    lines = ["de\ten\ta b\tc d", "en\tes\te\tf", "fr\tes\tg\th", "de\tfr\ti\tj", "de\ten\t\x01\tk", "de\ten\tonly"]
    (folder / "pairs.tsv").write_text("\n".join([*lines, "es\ten-GB\tl\tm"]) + "\n")
    manifest = run_job(folder, pivots=("en", "es"))
    expected = {
        "de-en": [("a b", "c d", 0)],
        "en-es": [("e", "f", 1)],
        "es-en": [("f", "e", 0)],
        "fr-es": [("g", "h", 1)],
        "es-en-GB": [("l", "m", 0)],
        "en-GB-es": [("m", "l", 1)],
    }
    assert manifest["examples"] == {f"translation/{name}": len(rows) for name, rows in sorted(expected.items())}
    for name, rows in expected.items():
        assert read_back(folder / "out", name) == rows, name
    assert manifest["pivots"] == ["en", "es"]
    counts = manifest["counts"]
    assert (counts["in"], counts["out"]) == (7, 4)
    assert (counts["rejected"], counts["failed"]) == ({"no_pivot": 1, "too_short_to_pack": 1}, {"broken_record": 1})


def test_long_texts_are_cut_behind_a_closing_separator(folder):
    (folder / "pairs.tsv").write_text("de\ten\ta b c d e\tf\n")
    manifest = run_job(folder, max_length=5)
    assert read_back(folder / "out", "de-en") == [("a b c", "f", 0)]
    assert manifest["counts"]["tallies"]["pairs_cut"] == 1


def test_documents_join_the_pairs_that_follow_each_other(folder):
    (folder / "n.de").write_text("a\nb\n\nc\nd\ne\n")
    (folder / "n.en").write_text("f\ng\nx\nh\ni\nj\n")
    (folder / "ids.txt").write_text("one\none\none\ntwo\none\n\n")
    (folder / "p.tsv").write_text("de\ten\ta\tb\nfr\ten\tc\td\n\nde\ten\te\tf\nde\ten\tg\th\n")
    (folder / "p.txt").write_text("x\nx\nx\nx\nx\n")
    manifest = run_job(folder, bitext=(f"n.de,{folder}/n.en", "p.tsv"), ids=("ids.txt", "p.txt"), unit="document")
    assert read_back(folder / "out", "de-en") == [
        ("a b", "f g", 0),
        ("c", "h", 0),
        ("d", "i", 0),
        ("a", "b", 0),
        ("e g", "f h", 0),
    ]
    assert read_back(folder / "out", "fr-en") == [("c", "d", 0)]
    counts = manifest["counts"]
    assert (counts["in"], counts["out"]) == (10, 8)
    assert (counts["rejected"], counts["failed"]) == ({"empty_side": 1}, {"missing_field": 1})


@pytest.mark.parametrize(
    ("options", "ids", "message"),
    [
        ({"pivots": ("fr",)}, (), "--pivots: got fr, and no translation pair has such a side: they are de-en\n"),
        ({"min_tokens": 9}, (), "--bitext: no translation pair is left: too_short_to_pack 2\n"),
        ({}, ("ids.txt",), "--document_ids: is read for documents only"),
        ({"unit": "document"}, (), "got 0 files of document ids for 1"),
        ({"unit": "document"}, ("ids.txt",), "got 1 lines for 2 lines"),
    ],
)
def test_what_does_not_fit_is_a_clear_error(folder, options, ids, message):
    (folder / "pairs.tsv").write_text("de\ten\ta\tb\nde\ten\tc\td\n")
    (folder / "ids.txt").write_text("one\n")
    with pytest.raises(InputError, match=message):
        run_job(folder, ids=ids, **options)


def test_pairs_that_are_none_of_the_pivots_are_named(folder):
    lines = "".join(f"d{letter}\ten\ta\tb\n" for letter in "abcdefghij")
    for text, message in (("", "holds no translation pairs"), (lines, "they are da-en, .*dh-en and 2 more")):
        (folder / "pairs.tsv").write_text(text)
        with pytest.raises(InputError, match=message):
            run_job(folder, pivots=("fr",))


def test_documents_of_tmx_are_refused(folder):
    (folder / "m.tmx").write_text("<tmx><header srclang='en'/><body></body></tmx>")
    (folder / "ids.txt").write_text("one\n")
    with pytest.raises(InputError, match="TMX has no lines"):
        run_job(folder, bitext=("m.tmx",), ids=("ids.txt",), unit="document")
