"""The centring of a start, against its embeddings before they are scaled to length 1."""

import dataclasses

import jax
import numpy as np
import pytest
from manifests import doc
from newsembed.formats.articles import ArticleText
from newsembed.formats.vocabulary import SPECIAL_TOKENS
from newsembed.serving.encoder import JaxEncoder
from newsembed.serving.model import Model
from newsembed.studies.lift import centring
from newsembed.studies.lift.centring import centred_head, head_without_languages, sampled, words_without_languages
from newsembed.studies.shared.static import Corpus
from newsembed.training.lexical import LexicalPart
from scipy.sparse import csr_array
from small_encoders import static

UNITS = 8


@pytest.fixture
def model(tmp_path):
    """A static model of letters: the embedding of a text is the mean of its letters' vectors and a bias."""
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("".join(f"{piece}\n" for piece in (*SPECIAL_TOKENS, *"abcdefgh")))
    config = static(13, hidden_size=UNITS, embedding_size=UNITS - 2, pooling="mean", max_length=40)
    rng = np.random.default_rng(0)
    params = {"token_embedding": rng.normal(size=(13, UNITS)), "mlm_bias": np.zeros(13)}
    params |= {"output_norm": {"scale": np.ones(UNITS), "bias": np.zeros(UNITS)}}
    kernel, bias = rng.normal(size=(UNITS, UNITS - 2)), rng.normal(size=UNITS - 2) + 3  # all texts are alike
    params = jax.tree.map(np.float32, params | {"embedding_head": {"kernel": kernel, "bias": bias}})
    return Model("", config, str(vocabulary), 40, params=params)


def article(number, letters, language):
    rng = np.random.default_rng(number)
    return ArticleText(doc(number), "", "p", "a", " ".join(rng.choice(list(letters), 12)), language)


def texts(articles):
    return [article.title for article in articles], [article.body for article in articles]


def unscaled(model, articles):
    """Directly from the parameters."""
    pieces = {piece: row for row, piece in enumerate("abcdefgh", len(SPECIAL_TOKENS))}
    means = []
    for title, body in zip(*texts(articles), strict=True):
        rows = [2, *(pieces[word] for word in title.split()), 3, *(pieces[word] for word in body.split()), 3]
        vectors = model.params["token_embedding"][rows].astype(np.float64)
        vectors = vectors - vectors.mean(axis=1, keepdims=True)
        means.append((vectors / np.sqrt((vectors**2).mean(axis=1, keepdims=True) + 1e-12)).mean(axis=0))
    head = model.params["embedding_head"]
    return np.stack(means) @ head["kernel"] + head["bias"]


def test_unrelated_texts_of_one_language_have_a_cosine_near_0(model):
    articles = [article(number, "abcdefgh", "en") for number in range(100)]
    before = JaxEncoder(model).encode(*texts(articles))
    assert np.mean(before @ before.T) > 0.9
    head = centred_head(model, articles, 40)
    np.testing.assert_allclose(head["kernel"], model.params["embedding_head"]["kernel"], atol=1e-6)
    expected = model.params["embedding_head"]["bias"] - unscaled(model, articles).mean(axis=0)
    np.testing.assert_allclose(head["bias"], expected, atol=1e-3)
    after = JaxEncoder(with_head(model, head)).encode(*texts(articles))
    assert abs(np.mean(after @ after.T)) < 0.05


def with_head(model, head):
    return dataclasses.replace(model, params={**model.params, "embedding_head": head})


def test_the_directions_of_languages_are_taken_out_and_each_language_counts_the_same(model):
    articles = [article(number, "abcdef", "en-GB") for number in range(100)]
    articles += [article(number, "cdefgh", "de") for number in range(100, 164)]
    articles += [article(number, "gh", "fr") for number in range(164, 170)]  # too few to know their direction
    vectors = unscaled(model, articles)
    en, de = vectors[:100].mean(axis=0), vectors[100:164].mean(axis=0)
    direction = (en - de) / np.linalg.norm(en - de)
    rest = vectors - (en + de) / 2
    expected = rest - np.outer(rest @ direction, direction)
    changed = with_head(model, centred_head(model, articles, 40))
    np.testing.assert_allclose(unscaled(changed, articles), expected, atol=2e-3)
    np.testing.assert_allclose(unscaled(changed, articles)[:100].mean(axis=0), 0, atol=2e-3)


def test_the_reports_are_ten_in_each_of_25_languages():
    reports = centring._reports()
    assert len(reports) == 25
    assert {len(texts) for texts in reports.values()} == {10}
    assert len({text for texts in reports.values() for text in texts}) == 250


@pytest.mark.parametrize("unknown", [1, 2])
def test_a_model_that_knows_most_languages_loses_what_tells_them_apart(model, monkeypatch, unknown):
    """German is English in other letters, whose vectors have one more direction; other languages are noise."""
    letters = np.random.default_rng(0).choice(list("abcd"), (10, 12))
    english = [" ".join(row) for row in letters]
    german = [text.translate(str.maketrans("abcd", "efgh")) for text in english]
    noise = {f"n{number}": english[number + 1 :] + english[: number + 1] for number in range(unknown)}
    reports = {"de": german, **noise, "en": english}
    monkeypatch.setattr(centring, "_reports", lambda: reports)
    table = model.params["token_embedding"]
    table[9:13] = table[5:9] + np.linspace(-0.5, 0.5, UNITS, dtype=np.float32)
    head = head_without_languages(model)
    if unknown == 2:  # as many as are known
        assert head is None
        return
    before, after = (
        [centring._unscaled(one, [""] * 10, reports[name], 40) for name in ("en", "de")]
        for one in (model, with_head(model, head))
    )
    apart = before[0].mean(axis=0) - before[1].mean(axis=0)
    direction = apart / np.linalg.norm(apart)
    for own, found in zip(before, after, strict=True):
        np.testing.assert_allclose(found, own - np.outer(own @ direction, direction), atol=2e-3)


def test_a_head_with_an_activation_has_no_directions_to_take_out(model):
    config = dataclasses.replace(model.config, embedding_activation="tanh")
    assert head_without_languages(dataclasses.replace(model, config=config)) is None


def test_a_sample_has_as_many_of_each_language_and_none_without_text(monkeypatch):
    monkeypatch.setattr(centring, "MOST_ARTICLES", 2)
    articles = [article(number, "ab", language) for number, language in enumerate(["en", "en-GB", "en", "de"])]
    empty = dataclasses.replace(article(9, "ab", "fr"), title="", body="")
    lowest = sorted(articles[:3], key=lambda article: article.doc_id)[:2]
    assert sampled([*articles, empty]) == [articles[3], *lowest]


def test_words_lose_the_direction_between_languages_and_keep_the_rest():
    rng = np.random.default_rng(0)
    terms = csr_array(rng.poisson(0.5, (200, 20)) * np.where(np.arange(20) < 5, 0, 1))
    words = LexicalPart(rng.normal(size=(20, 6)), np.append(np.full(5, -200), rng.normal(size=15)), 64)
    corpus = Corpus(None, None, None, terms, ["en"] * 120 + ["de"] * 75 + ["fr"] * 5, None)
    vectors = np.exp(words.logits)[:, None] * words.table
    texts = terms @ vectors
    texts /= np.linalg.norm(texts, axis=1, keepdims=True)
    between = texts[:120].mean(axis=0) - texts[120:195].mean(axis=0)
    between /= np.linalg.norm(between)
    found = words_without_languages(words, corpus)
    np.testing.assert_allclose(found.vectors, vectors - np.outer(vectors @ between, between), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(found.table[5:], axis=1), 1, atol=1e-6)
    assert found.lead_length == 64
    one = dataclasses.replace(corpus, languages=["en"] * 200)
    assert words_without_languages(words, one) is words
