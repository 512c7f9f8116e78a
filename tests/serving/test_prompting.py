"""Prompts stand before documents and queries in every command, count as tokens, and can be replaced."""

import json

import numpy as np
import pytest
from letters import client_of, exported
from newsembed.formats.huggingface import read_modules
from newsembed.launch import cli
from newsembed.serving.encoder import load_encoder
from newsembed.serving.index import DocumentIndex
from newsembed.serving.interface import with_prompt
from newsembed.serving.saved_model import SavedModelEncoder
from newsembed.serving.server import Service
from refusals import refuses

TITLES, BODIES = ["Storm hits the coast", "", "", "Budget"], ["Wind and rain.", "a goal", "", ""]
QUERY, DOCUMENT = "the vote: ", "a storm "
PROMPTS = {"query": QUERY, "passage": DOCUMENT}
JAX = {"atol": 1e-6}


@pytest.fixture(scope="module")
def plain(tiny, tmp_path_factory):
    return tiny.made(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def prompted(tiny, tmp_path_factory):
    """The same model with prompts."""
    return tiny.made(tmp_path_factory.mktemp("prompted"), prompts=PROMPTS)


def by_hand(plain, **options):
    """Documents and queries with their prompts written out, by the model without prompts."""
    encoder = load_encoder(plain, **options)
    titles = [f"{DOCUMENT}{title}" if title else "" for title in TITLES]
    bodies = [body if title else f"{DOCUMENT}{body}" for title, body in zip(TITLES, BODIES, strict=True)]
    return encoder.encode(titles, bodies), encoder.encode([f"{QUERY}{title}" for title in TITLES], [""] * len(TITLES))


def test_documents_and_queries_get_their_prompt(plain, prompted):
    documents, queries = by_hand(plain)
    encoder = load_encoder(prompted)
    np.testing.assert_allclose(encoder.encode(TITLES, BODIES), documents, **JAX)
    np.testing.assert_allclose(encoder.encode_queries(TITLES), queries, **JAX)
    assert np.abs(documents - load_encoder(plain).encode(TITLES, BODIES)).max() > 0.01
    assert encoder.encode_queries([]).shape == (0, 8)
    without = load_encoder(plain)
    np.testing.assert_allclose(without.encode_queries(TITLES), without.encode(TITLES, [""] * 4), **JAX)


def test_a_prompt_may_be_replaced(plain, prompted):
    documents, queries = by_hand(plain)
    ours = load_encoder(plain, document_prompt=DOCUMENT, query_prompt=QUERY)
    np.testing.assert_allclose(ours.encode(TITLES, BODIES), documents, **JAX)
    np.testing.assert_allclose(ours.encode_queries(TITLES), queries, **JAX)
    none = load_encoder(prompted, document_prompt="")
    np.testing.assert_allclose(none.encode(TITLES, BODIES), load_encoder(plain).encode(TITLES, BODIES), **JAX)
    assert none.digest == load_encoder(plain).digest
    assert ours.digest == load_encoder(prompted).digest != none.digest  # whoever says the prompt, it is the same
    assert load_encoder(plain, query_prompt=QUERY).digest == none.digest  # queries change no document


def test_only_the_first_text_gets_the_prompt():
    assert with_prompt("p: ", ["a", "", "", "b"], ["c", "d", "", ""]) == (
        ["p: a", "", "", "p: b"],
        ["c", "p: d", "p: ", ""],
    )
    assert with_prompt("", ["a"], ["b"]) == (["a"], ["b"])


@pytest.fixture(scope="module")
def saved(prompted, tmp_path_factory):
    return exported(prompted, tmp_path_factory.mktemp("saved") / "model")


def test_a_saved_model_adds_the_prompts_itself(plain, saved):
    import tensorflow as tf

    documents, queries = by_hand(plain)
    assert saved.max_difference <= 1e-5
    signatures = tf.saved_model.load(saved.output).signatures
    parts = signatures["serving_default"](title=tf.constant(TITLES), body=tf.constant(BODIES))["embedding"]
    np.testing.assert_allclose(parts, documents, atol=1e-5)
    np.testing.assert_allclose(
        signatures["text"](text=tf.constant(BODIES[1:2]))["embedding"], documents[1:2], atol=1e-5
    )
    np.testing.assert_allclose(signatures["query"](text=tf.constant(TITLES))["embedding"], queries, atol=1e-5)
    encoder = SavedModelEncoder(saved.output)
    np.testing.assert_allclose(encoder.encode(TITLES, BODIES), documents, atol=1e-5)
    np.testing.assert_allclose(encoder.encode_queries(TITLES), queries, atol=1e-5)
    assert encoder.encode_queries([]).shape == (0, 8)
    assert SavedModelEncoder(saved.output, document_prompt=DOCUMENT, query_prompt=QUERY).digest == encoder.digest
    for options, message in (
        ({"document_prompt": "other "}, "--prompt: got 'other ', and the SavedModel itself puts 'a storm ' before"),
        ({"query_prompt": ""}, "--prompt: got '', and the SavedModel itself puts 'the vote: ' before each query"),
    ):
        refuses(message, SavedModelEncoder, saved.output, **options)


def test_a_saved_model_without_prompts_takes_any(plain, tmp_path):
    output = exported(plain, tmp_path / "saved").output
    documents, queries = by_hand(plain)
    encoder = SavedModelEncoder(output, document_prompt=DOCUMENT, query_prompt=QUERY)
    np.testing.assert_allclose(encoder.encode(TITLES, BODIES), documents, atol=1e-5)
    np.testing.assert_allclose(encoder.encode_queries(TITLES), queries, atol=1e-5)
    assert encoder.digest != SavedModelEncoder(output).digest
    assert encoder.facts["prompts"] == {"document": "", "query": ""}


def found(capsys, *arguments):
    assert cli.main([*arguments, "--json"]) == 0
    return ranked((hit["doc_id"], hit["score"]) for hit in json.loads(capsys.readouterr().out))


def expected_hits(index, vector):
    return ranked((hit.document.doc_id, hit.score) for hit in DocumentIndex.load(index).search(vector, 10))


def ranked(hits):
    """Hits by score, in which scores that differ by rounding are equal; then by id."""
    return sorted(((doc_id, round(score, 4)) for doc_id, score in hits), key=lambda hit: (-hit[1], hit[0]))


def test_the_commands_use_the_prompts(plain, prompted, articles, tmp_path, capsys):
    index, vectors = str(tmp_path / "index"), tmp_path / "vectors"
    assert cli.main(["index", "--model", prompted, "--input", articles, "--output", index]) == 0
    assert cli.main(["embed", "--model", prompted, "--input", articles, "--output", str(vectors)]) == 0
    np.testing.assert_allclose(np.load(vectors / "embeddings.npy"), DocumentIndex.load(index).embeddings, **JAX)
    ours = load_encoder(plain)
    first = ours.encode([f"{DOCUMENT}Storm hits the coast"], ["Wind and rain."])
    np.testing.assert_allclose(np.load(vectors / "embeddings.npy")[0], first[0], **JAX)
    capsys.readouterr()
    query = ours.encode([f"{QUERY}storm"], [""])[0]
    assert found(capsys, "search", "--index", index, "storm", "--mode=vectors") == expected_hits(index, query)
    other = ours.encode(["cup storm"], [""])[0]
    assert found(capsys, "search", "--index", index, "--prompt", "cup ", "storm", "--mode=vectors") == expected_hits(
        index, other
    )
    assert DocumentIndex.load(index).settings["document_prompt"] is None
    encoder = load_encoder(prompted)
    client = client_of(Service(encoder, DocumentIndex.load(index)))
    hits = client.get("/search", params={"q": "storm", "mode": "vectors"}).json()["hits"]
    assert ranked((hit["doc_id"], hit["score"]) for hit in hits) == expected_hits(index, query)
    body = {"documents": [{"title": "Storm hits the coast", "body": "Wind and rain."}]}
    np.testing.assert_allclose(client.post("/embed", json=body).json()["embeddings"], first, **JAX)


def test_exports_keep_the_prompts(prompted, tmp_path):
    weights = exported(prompted, tmp_path / "weights", format="safetensors").output
    assert load_encoder(weights).digest == load_encoder(prompted).digest
    folder = exported(prompted, tmp_path / "folder", format="huggingface").output
    assert dict(read_modules(folder, {}).prompts.texts) == PROMPTS
    assert read_modules(folder, {}).text_length == 48
