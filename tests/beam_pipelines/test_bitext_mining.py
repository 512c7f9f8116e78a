"""The job ``bitext``: planted translations are found, every loss is counted, and the bytes do not depend on workers."""

import dataclasses
import datetime
import hashlib
import random

import numpy as np
import pytest
from newsembed.beam_pipelines.bitext import JOB, BitextOptions
from newsembed.beam_pipelines.bitext.documents import row_type, split_article
from newsembed.beam_pipelines.bitext.mine import (
    Side,
    copied_share,
    is_in_other_language,
    judge,
    length_ratio,
    margin_of,
    score_pairs,
)
from newsembed.beam_pipelines.bitext.readers import plan_parts
from newsembed.errors import InputError
from newsembed.formats import parquet
from newsembed.formats.manifest import write_manifest
from newsembed.formats.records import Article, MinedPair, Vector, make_doc_id
from newsembed.tests.example_inputs import dead_letters, manifest_of, split, tree
from vectors import unit

DAY = datetime.date(2020, 3, 2)
# A word of a language is its prefix and the number of its meaning, which is all that the encoder reads.
ENCODER = """
import re
import numpy as np

def embed(texts):
    found = np.zeros((len(texts), 256), np.float32)
    for row, text in enumerate(texts):
        words = re.findall("[0-9]+", text)
        found[row] += 3 * bool(words)  # so that any two texts have a cosine near 0.5
        for word in words:
            found[row] += np.random.default_rng(int(word)).normal(size=256)
    return found
"""
OPTIONS = {"min_language_probability": 0.0, "min_margin": 1.3}  # no identifier knows these languages


def sentence(language, meanings):
    return f"{language.upper()} {' '.join(f'{language}{meaning}' for meaning in meanings)}."


def meanings(seed, words=8):
    return random.Random(seed).sample(range(1000, 9999), words)


def article(language, name, sentences, gap=0, **fields):
    title = f"{language}title {language}is {language}short {language}here"
    url = f"https://{language}.example/{name}"
    when = DAY + datetime.timedelta(gap)
    one = Article(make_doc_id(url), url, "a.example", title, " ".join(sentences), byline_date=when, language=language)
    return dataclasses.replace(one, **fields)


def event(name, gap=0, languages=("de", "en", "fr"), sentences=3):
    """The reports of an event: each language translates all sentences, and has one of its own."""
    shared = [meanings(f"{name} {number}") for number in range(sentences)]
    return [
        article(one, name, [sentence(one, said) for said in [*shared, meanings(f"{name} {one}")]], gap)
        for one in languages
    ]


def true_pairs(names, source, target="en", sentences=3):
    said = [meanings(f"{name} {number}") for name in names for number in range(sentences)]
    return {(sentence(source, one), sentence(target, one)) for one in said}


@pytest.fixture
def corpus(tmp_path):
    """Writes articles as the clean job does, and vectors of the given spaces; returns the inputs of the job."""
    return writer(tmp_path)


def writer(tmp_path):
    (tmp_path / "toy.py").write_text(ENCODER)

    def write(articles, vectors=None):
        clean = tmp_path / "clean"
        for number, part in enumerate(split(articles, 2)):
            name = f"part-{number:05d}-of-00002.parquet"
            parquet.write_shard(f"{clean}/articles/{name}", part, Article)
            for space in ("entity", "image") if vectors is not None else ():
                found = ((one, vectors.get(one.url, {}).get(space)) for one in part)
                rows = [
                    Vector(one.doc_id, space, one.byline_date, one.publisher, one.language, tuple(values))
                    for one, values in found
                    if values
                ]
                parquet.write_shard(f"{tmp_path}/vectors/{space}/{name}", rows, Vector)
        write_manifest(str(clean), {"job": "clean", "digest": hashlib.sha256(repr(articles).encode()).hexdigest()[:16]})
        inputs = {"articles": [str(clean)], "encoder": [f"{tmp_path}/toy.py:embed"]}
        if vectors is not None:
            write_manifest(f"{tmp_path}/vectors", {"job": "vectors", "digest": "1" * 16})
            inputs["vectors"] = [f"{tmp_path}/vectors"]
        return inputs

    return write


def mine(inputs, output, workers=1, **options):
    return manifest_of(JOB, inputs, output, BitextOptions(**OPTIONS | options), workers)


def pairs_in(output, source="de"):
    rows = [line.split("\t") for path in output.glob("pairs/*.tsv") for line in path.read_text().splitlines()]
    assert all(len(row) == 4 for row in rows)
    return {(row[2], row[3]) for row in rows if row[:2] == [source, "en"]}


NAMES = [f"event{number}" for number in range(12)]
NOISE = [
    article(one, f"n{number}", [sentence(one, meanings(f"{one} {number}"))])
    for one in ("de", "en")
    for number in range(8)
]
EVENTS = [one for number, name in enumerate(NAMES) for one in event(name, gap=number % 9)]


@pytest.fixture(scope="module")
def mined(tmp_path_factory):
    """The manifest and the folder of the job on all events, and its inputs."""
    folder = tmp_path_factory.mktemp("mined")
    inputs = writer(folder)(EVENTS)
    return mine(inputs, folder / "out"), folder / "out", inputs


def test_exactly_the_translations_are_found_and_every_candidate_is_counted(mined):
    manifest, output, _ = mined
    assert pairs_in(output, "de") == true_pairs(NAMES, "de")
    assert pairs_in(output, "fr") == true_pairs(NAMES, "fr")
    counts = manifest["counts"]
    assert counts["out"] == 2 * 3 * len(NAMES) == sum(manifest["pairs"].values())
    assert counts["in"] == counts["out"] + sum(counts["rejected"].values())
    assert counts["failed"] == {}
    assert counts["rejected"].keys() <= {"below_margin", "sentence_taken"}
    letters = dead_letters(output, "mine") + dead_letters(output, "write")
    assert len(letters) == sum(counts["rejected"].values())
    embedded = manifest["phases"]["embed"]
    assert embedded["in"] == embedded["out"] == len(EVENTS)
    assert embedded["tallies"] == {"sentences": 5 * len(EVENTS), "sentences_embedded": 5 * len(EVENTS)}
    assert len(plan_parts(str(output))) == 2  # `pack` reads the folder: one file for each pair of languages
    articles = {one.doc_id: one for one in EVENTS}
    for pair in parquet.read_stream(f"{output}/scores", MinedPair):
        source, target = articles[pair.source_doc], articles[pair.target_doc]
        assert split_article(source.title, source.body)[pair.source_number] == pair.source
        assert split_article(target.title, target.body)[pair.target_number] == pair.target
        assert pair.margin >= 1.3
        assert pair.cosine == pytest.approx(1, abs=1e-5)


def test_two_workers_write_the_same_bytes(tmp_path, mined):
    mine(mined[2], tmp_path / "out", workers=2)
    assert tree(tmp_path / "out") == tree(mined[1])


def test_articles_outside_the_window_are_not_compared(corpus, tmp_path):
    far = event("far", languages=("de",)) + event("far", gap=2, languages=("en",))
    near = event("near", gap=6, languages=("de",)) + event("near", gap=7, languages=("en",))
    other = event("other", languages=("de", "en"))
    mine(corpus([*far, *near, *other]), tmp_path / "out", block_days=1)
    # Day 6 and 7 are in two blocks of one day.
    assert pairs_in(tmp_path / "out") == true_pairs(["near", "other"], "de")


def test_only_linked_articles_are_compared(corpus, tmp_path):
    first, second, third = (event(name, languages=("de", "en")) for name in ("one", "two", "three"))
    image, articles = [1.0] * 64, [*first, *second, *third]
    entities = [[1.0, 0.0], [0.9, 0.2], None, [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
    images = [None, None, image, image[:62] + [-1.0] * 2, None, None]
    spaces = ({"entity": entity, "image": image} for entity, image in zip(entities, images, strict=True))
    vectors = {one.url: own for one, own in zip(articles, spaces, strict=True)}
    manifest = mine(corpus(articles, vectors), tmp_path / "out")
    assert pairs_in(tmp_path / "out") == true_pairs(["one", "two"], "de")
    assert manifest["phases"]["embed"]["rejected"] == {"no_candidate": 2}
    assert manifest["phases"]["link"]["tallies"] == {"linked_articles/de-en": 2}


def test_inputs_that_do_not_fit_are_refused(corpus, tmp_path):
    with pytest.raises(InputError, match="no articles of two languages are within 1 day "):
        mine(corpus(event("x", languages=("de", "fr"))), tmp_path / "out")
    inputs = corpus(event("one"), {})
    (tmp_path / "vectors/image/part-00001-of-00002.parquet").unlink()
    with pytest.raises(InputError, match="shards of vectors"):
        mine(inputs, tmp_path / "out")


def test_copies_lengths_and_repeats_are_rejected_under_their_names(corpus, tmp_path):
    said = [meanings(f"rules {number}") for number in range(6)]
    copied = sentence("en", said[0])
    long = sentence("en", said[1])[:-1] + " en en en en en en en en en en en en en en en en en en."
    german = article("de", "rules", [copied, sentence("de", said[1]), sentence("de", said[2])])
    english = article("en", "rules", [copied, long, sentence("en", said[2])])
    again = [article(one, "later", [sentence(one, said[2])], gap=30) for one in ("de", "en")]
    manifest = mine(corpus([german, english, *again, *NOISE]), tmp_path / "out")
    assert pairs_in(tmp_path / "out") == {(sentence("de", said[2]), sentence("en", said[2]))}
    found = manifest["counts"]["rejected"]
    assert [found[name] for name in ("copied_text", "length_ratio", "repeated_pair")] == [1, 1, 1]


def test_a_sentence_in_the_wrong_language_is_rejected(corpus, tmp_path):
    german = "Der Minister sprach am Montag lange mit den Bauern 1111 2222 3333."
    english = "The minister spoke for a long time with farmers 4444 5555 6666."
    french = "Le ministre a longtemps parlé avec les agriculteurs 4444 5555 6666."
    translated = "The minister had long talks with the farmers on Monday 1111 2222 3333."
    articles = [article("de", "x", [german, french]), article("en", "x", [translated, english])]
    manifest = mine(corpus([*articles, *NOISE]), tmp_path / "out", min_language_probability=0.1)
    assert pairs_in(tmp_path / "out") == {(german, translated)}
    assert manifest["counts"]["rejected"]["wrong_language"] == 1


def test_articles_that_take_no_part_are_counted_by_reason(corpus, tmp_path):
    (sound,) = event("sound", languages=("de",))
    broken = [
        article("de", "no-date", ["Eins."], byline_date=None),
        article("", "no-language", ["Eins."]),
        Article(make_doc_id("short"), "short", "p", "Kurz", "Ja.", byline_date=DAY, language="de-AT"),
    ]
    manifest = mine(corpus([sound, *event("sound", languages=("en",)), *broken]), tmp_path / "out")
    documents = manifest["phases"]["documents"]
    assert (documents["in"], documents["out"]) == (5, 3)
    assert documents["rejected"] == {"no_byline_date": 1, "unknown_language": 1}
    embedded = manifest["phases"]["embed"]
    assert embedded["rejected"] == {"no_sentence": 1}
    assert embedded["tallies"]["sentences_too_short"] == 2


def test_known_pairs_choose_the_margin_of_their_languages(corpus, tmp_path):
    said = (meanings(f"k{n}") for n in range(40))
    known = "".join(f"de-DE\ten\t{sentence('de', one)}\t{sentence('en', one)}\n" for one in said)
    (tmp_path / "known.tsv").write_text(known + "de\ten\tonly three columns\n")
    inputs = corpus(EVENTS) | {"known_pairs": [str(tmp_path / "known.tsv")]}
    manifest = mine(inputs, tmp_path / "out", min_margin=50.0)  # which nothing has
    assert set(manifest["margins"]) == {"de-en", ""}
    chosen = manifest["margins"]["de-en"]
    assert chosen["known_sentences"] == 60  # both of every first two of four pairs, one of the others
    assert chosen["recall"] == 1
    assert chosen["precision"] >= 0.9
    assert pairs_in(tmp_path / "out", "de") == true_pairs(NAMES, "de")
    assert pairs_in(tmp_path / "out", "fr") <= true_pairs(NAMES, "fr")
    assert manifest["phases"]["calibrate"]["failed"] == {"broken_record": 1}


@pytest.mark.parametrize(
    ("lines", "sentences"),
    [
        (["de\ten\tGrüße 1 2 3\tGreetings 1 2 3\n"] * 100, 0),  # in Latin-1, below
        ([f"de\ten\teins {number}\tone {number}\n" for number in range(25)], 38),
    ],
)
def test_too_few_known_pairs_are_an_error_and_not_the_margin_of_the_options(corpus, tmp_path, lines, sentences):
    (tmp_path / "known.tsv").write_bytes("".join(lines).encode("latin-1"))
    with pytest.raises(InputError, match=rf"--known_pairs: got {sentences} known .* mined .*, expected at least 40"):
        mine(corpus(EVENTS) | {"known_pairs": [str(tmp_path / "known.tsv")]}, tmp_path / "out")


def test_known_sentences_without_their_translation_are_weighed_as_the_corpus_has_them():
    # Eight pairs, so both sides of 0, 1, 4, 5, the left of 2 and 6, the right of 3 and 7. One other sentence on the
    # right is near that of pair 2; nothing else is near anything.
    axes = np.eye(12, dtype=np.float32)
    left = axes[[0, 1, 2, 4, 5, 6]]
    right, other = axes[[0, 1, 3, 4, 5, 7]], axes[[2]]
    found, known = judge([(left, axes[:0]), (right, other)], 8, BitextOptions(neighbors=1))
    assert known.tolist() == [8, 4]
    assert found[:, 1:].sum(axis=0).tolist() == [8, 0, 1]
    assert margin_of(found, known, BitextOptions()) is None  # of too few sentences
    many = np.concatenate([found] * 10), 10 * known
    # All pairs have the margin 1. Half of the corpus: .5 of .5 + .5 / 4; a twentieth: .05 of .05 + .95 / 4.
    half = margin_of(*many, BitextOptions(translated_share=0.5, precision=0.75))
    assert half == {"margin": 1.0, "precision": 0.8, "recall": 1.0, "known_sentences": 120}
    assert margin_of(*many, BitextOptions(precision=0.2))["margin"] is None
    assert margin_of(*many, BitextOptions(precision=0.17))["margin"] == 1.0


def rows_of(vectors, docs):
    rows = np.zeros(len(vectors), row_type(vectors.shape[1]))
    rows["doc_id"], rows["number"], rows["vector"] = docs, np.arange(len(vectors)), vectors
    return rows


def test_linked_candidates_are_the_best_of_plain_loops():
    random_vectors = unit(3, 34, 6)
    left_docs, right_docs = np.arange(16) // 4 + 1, np.arange(18) // 3 + 1
    left = Side(rows_of(random_vectors[:16], left_docs), [f"l{n}" for n in range(16)])
    right = Side(rows_of(random_vectors[16:], right_docs), [f"r{n}" for n in range(18)])
    links = {(1, 1), (1, 2), (2, 3), (4, 6)}
    cosines = left.vectors.astype(np.float64) @ right.vectors.T.astype(np.float64)
    first = np.sort(cosines, 1)[:, -4:].mean(1)
    second = np.sort(cosines, 0)[-4:].mean(0)
    margins = cosines / ((first[:, None] + second) / 2)
    allowed = np.array([[(a, b) in links for b in right_docs] for a in left_docs]) & (margins > 0)
    scores = np.where(allowed, margins, -1)
    expected = {(i, int(scores[i].argmax())) for i in range(16) if allowed[i].any()}
    expected |= {(int(scores[:, j].argmax()), j) for j in range(18) if allowed[:, j].any()}
    linked = np.array(sorted(links), [("source", np.uint64), ("target", np.uint64)])
    found = score_pairs(left, right, linked, BitextOptions())
    assert set(zip(found.left.tolist(), found.right.tolist(), strict=True)) == expected
    np.testing.assert_allclose(found.margins, margins[found.left, found.right], rtol=1e-4)


def test_rules_on_texts():
    assert copied_share("Paris, Rome, Bonn", "PARIS and ROME today") == pytest.approx(2 / 3)
    assert (copied_share("...", "..."), copied_share("...", "!!!")) == (1, 0)
    assert length_ratio("one two three", "eins") == pytest.approx(5 / 3)
    assert is_in_other_language("Москва сегодня", "en", 0.1)
    assert is_in_other_language("The prime minister resigned on Monday after the vote.", "de", 0.1)
    assert not is_in_other_language("The prime minister resigned on Monday after the vote.", "en", 0.1)
    assert not is_in_other_language("Москва", "en", 0)
