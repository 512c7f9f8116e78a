"""The vectors of the three spaces and the job ``vectors``."""

import datetime

import numpy as np
import pytest
from newsembed.beam_pipelines import jobs
from newsembed.beam_pipelines.entities import tables
from newsembed.beam_pipelines.entities.linking import Mentions
from newsembed.beam_pipelines.vectors import (
    JOB,
    VectorsOptions,
    add_up,
    components_of,
    entity_vector,
    image_vector,
    remove_component,
    sif_weights,
    signs_of,
    text_statistics,
    text_vector,
)
from newsembed.errors import InputError
from newsembed.formats import parquet
from newsembed.formats.records import Article, Vector, make_doc_id
from newsembed.tests.example_inputs import manifest_of, split, write_stream

DAY = datetime.date(2020, 1, 1)


def mentions(entities=(), counts=(), words=()):
    return Mentions("0" * 16, DAY, "p", "en", entities, counts, words, None)


def test_entity_vector_is_a_weighted_mean():
    table = np.eye(3, dtype=np.float32)
    rarity = np.array([1, 3, 0], np.float32)
    np.testing.assert_allclose(entity_vector(mentions((0, 1), (1, 1)), table, rarity), [0.25, 0.75, 0])
    assert entity_vector(mentions(), table, rarity) is None
    assert entity_vector(mentions((2,), (5,)), table, rarity) is None  # every document mentions it
    twice = [1 + np.log(2), 3]  # weights of an entity that is mentioned twice, and of a rarer one
    expected = [twice[0] / sum(twice), twice[1] / sum(twice), 0]
    np.testing.assert_allclose(entity_vector(mentions((0, 1), (2, 1)), table, rarity), expected, rtol=1e-6)


def test_names_that_are_too_common_together_give_no_entity_vector():
    table, rarity = np.eye(3, dtype=np.float32), np.array([1, 3, 0], np.float32)
    assert entity_vector(mentions((0, 1), (1, 1)), table, rarity, least=4) is not None
    assert entity_vector(mentions((0, 2), (5, 5)), table, rarity, least=1.1) is None  # uses do not count


def test_signs_keep_cosines_within_a_language_and_leave_none_between_two():
    one, other = np.random.default_rng(0).normal(size=(2, 400)).astype(np.float32)
    english, german = signs_of("en-GB", 400), signs_of("de", 400)
    assert (one * english) @ (other * english) == pytest.approx(one @ other, rel=1e-5)
    assert np.array_equal(english, signs_of("en", 400))
    assert abs((one * english) @ (one * german)) < 0.2 * (one @ one)


def test_text_vector_weighs_rare_words_more():
    weights = sif_weights([0.0, 0.001])
    np.testing.assert_allclose(weights, [1, 0.5])
    np.testing.assert_allclose(text_vector(mentions(words=(0, 1)), np.eye(2, dtype=np.float32), weights), [0.5, 0.25])
    assert text_vector(mentions(), np.eye(2, dtype=np.float32), weights) is None


def test_image_cosine_is_the_hamming_distance():
    left, right = image_vector(b"\x00" * 8), image_vector(b"\x00" * 7 + b"\x0f")
    assert left @ right / 64 == 1 - 2 * 4 / 64


def test_the_common_component_goes_by_language():
    common = np.array([1, 0, 0], np.float32)
    random = np.random.default_rng(0)
    vectors = [common + 0.1 * random.normal(size=3).astype(np.float32) for _ in range(50)]
    few = [np.array([0, 1, 0], np.float32)] * 49  # too few for a component of its own
    components = components_of(add_up([text_statistics("en", vectors), text_statistics("pt-BR", few)]))
    assert set(components) == {"", "en"}
    assert abs(remove_component(common, "en", components) @ common) < 0.05
    np.testing.assert_allclose(
        remove_component(common, "pt-BR", components), common - components[""] * (common @ components[""]), atol=1e-6
    )
    assert components_of({}) == {}


@pytest.fixture
def inputs(tmp_path):
    """Six articles, one without anything, and hand-made tables."""
    entities = tmp_path / "entities"
    entities.mkdir()
    (entities / "manifest.json").write_text('{"digest": "e"}')
    tables.write_aliases(str(entities / "aliases.tsv"), [tables.Alias("Jane Roe", "jane", 1, "")])
    jane = tables.EmbeddingTable(("jane",), np.ones((1, 4), np.float32), (1,))
    tables.write_embeddings(str(entities / "entities"), jane)
    words = tables.EmbeddingTable(("flood", "vote"), np.eye(2, 3, dtype=np.float32), (0.1, 0.2))
    tables.write_embeddings(str(entities / "words"), words)
    logo, texts = b"\x01" * 8, {"a": "flood", "b": "vote", "c": "vote flood", "d": "x", "e": "x"}
    bodies, images = {"a": "Jane Roe came."}, {"d": b"\x02" * 8}
    articles = [
        Article(make_doc_id(name), name, "q" if name in "de" else "p", title, bodies.get(name, "x"), byline_date=DAY,
                image_hash=images.get(name, logo))
        for name, title in texts.items()
    ]  # fmt: skip
    return {
        "articles": write_stream(tmp_path / "clean", "articles", split(articles, 2), Article),
        "entities": [str(entities)],
    }


@pytest.mark.parametrize("uses", [3, 4])
def test_an_image_of_more_documents_than_the_limit_is_a_logo(tmp_path, inputs, uses):
    """Four documents of two shards and two publishers share an image."""
    options = VectorsOptions(max_image_uses=uses)
    manifest_of(JOB, inputs, tmp_path / "out", options)
    images = {row.doc_id for row in parquet.read_stream(str(tmp_path / "out/image"), Vector)}
    assert images == set(map(make_doc_id, "d" if uses == 3 else "abcde"))


def test_texts_lose_the_common_component(tmp_path, inputs):
    manifest_of(JOB, inputs, tmp_path / "out", VectorsOptions())
    found = {row.doc_id: np.array(row.values) for row in parquet.read_stream(str(tmp_path / "out/text"), Vector)}
    flood, vote = 1e-3 / (1e-3 + 0.1) * np.eye(3)[0], 1e-3 / (1e-3 + 0.2) * np.eye(3)[1]
    texts = {"a": flood, "b": vote, "c": (flood + vote) / 2}
    units = np.stack([text / np.linalg.norm(text) for text in texts.values()])
    common = np.linalg.eigh(units.T @ units)[1][:, -1]
    for name, text in (("a", flood), ("b", vote)):  # that of c is the common component, and nothing is left of it
        np.testing.assert_allclose(found[make_doc_id(name)], text - (text @ common) * common, atol=1e-6)


@pytest.mark.parametrize(("least", "found"), [(0.99, 1), (1.01, 0)])
def test_one_is_the_rarity_of_a_name_that_one_article_has(tmp_path, inputs, least, found):
    options = VectorsOptions(min_rarity=least)
    counts = manifest_of(JOB, inputs, tmp_path / "out", options)["counts"]
    assert counts["tallies"].get("entity_vectors", 0) == found


def test_user_tables_replace_ours(tmp_path, inputs):
    (tmp_path / "mine.tsv").write_text("came\tQ1\t1\n", encoding="utf-8")
    (tmp_path / "mine.txt").write_text("Q1 0 2\n", encoding="utf-8")
    given = {**inputs, "alias_file": [str(tmp_path / "mine.tsv")], "entity_embeddings": [str(tmp_path / "mine.txt")]}
    manifest_of(JOB, given, tmp_path / "out", None)
    (row,) = parquet.read_stream(str(tmp_path / "out/entity"), Vector)
    np.testing.assert_allclose(row.values, [0, 2])
    (tmp_path / "mine.txt").write_text("Q1 3 2\n", encoding="utf-8")
    assert not jobs.execute(JOB, given, str(tmp_path / "out"), None, ["--direct_num_workers=1"]).skipped
    (row,) = parquet.read_stream(str(tmp_path / "out/entity"), Vector)
    np.testing.assert_allclose(row.values, [3, 2])


def test_articles_without_a_date_are_named_and_a_lone_language_loses_nothing(tmp_path, inputs):
    more = [
        Article(make_doc_id("undated"), "u", "p", "flood", "Jane Roe came."),
        Article(make_doc_id("lone"), "l", "p", "flood vote", "Jane Roe came.", byline_date=DAY, language="fi"),
    ]
    for index, article in enumerate(more):
        place = f"part-{index:05d}-of-00002.parquet"
        kept = list(parquet.read_records(str(tmp_path / "clean/articles" / place), Article))
        parquet.write_shard(str(tmp_path / "clean/articles" / place), [*kept, article], Article)
    options = VectorsOptions(min_rarity=0)  # half of these articles name her
    counts = manifest_of(JOB, inputs, tmp_path / "out", options)["counts"]
    assert (counts["in"], counts["out"]) == (7, 6)
    assert counts["rejected"] == {"no_byline_date": 1}
    assert make_doc_id("lone") in {row.doc_id for row in parquet.read_stream(str(tmp_path / "out/entity"), Vector)}


def test_bad_tables_are_named(tmp_path, inputs):
    (tmp_path / "mine.tsv").write_text("came\tQ1\t1\n", encoding="utf-8")
    (tmp_path / "mine.txt").write_text("Q2 0 2\n", encoding="utf-8")
    with pytest.raises(InputError, match="belong together"):
        jobs.execute(JOB, {**inputs, "alias_file": [str(tmp_path / "mine.tsv")]}, str(tmp_path / "out"))
    given = {**inputs, "alias_file": [str(tmp_path / "mine.tsv")], "entity_embeddings": [str(tmp_path / "mine.txt")]}
    with pytest.raises(InputError, match="no entity of the alias table"):
        jobs.execute(JOB, given, str(tmp_path / "out"))
