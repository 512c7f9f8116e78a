"""Articles as a seqio task, and embeddings as lines of JSON."""

import numpy as np
import pytest
from json_lines import read_rows, write_rows
from newsembed.formats.articles import read_articles
from newsembed.t5x_bridge.inference import articles, write_embeddings
from newsembed.t5x_bridge.recipe import make_recipe
from newsembed.t5x_bridge.rows import ConverterClass
from newsembed.tasks.vocabulary import Vocabulary

import toy_corpus as toy  # isort: skip


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("articles") / "articles.jsonl"
    rows = [{"title": "w1 w2", "body": "w3 " * number, "url": f"https://a.example/{number}"} for number in (1, 30, 2)]
    return write_rows(path, rows)


@pytest.fixture(scope="module")
def examples(file, corpus):
    import seqio

    task = seqio.get_mixture_or_task(articles(file, corpus[1], toy.LENGTH))
    return task.get_dataset(sequence_length=None, split="test", shuffle=False)


def test_each_article_has_its_tokens_and_names(file, corpus, examples):
    found = list(examples.as_numpy_iterator())
    expected = list(read_articles(file))
    titles, bodies = [article.title for article in expected], [article.body for article in expected]
    rows = Vocabulary.load(corpus[1]).encode_documents(titles, bodies, toy.LENGTH)
    for example, article, row in zip(found, expected, rows, strict=True):
        np.testing.assert_array_equal(example["tokens"], row)
        assert (example["doc_id"].decode(), example["url"].decode()) == (article.doc_id, article.url)


@pytest.mark.parametrize(("text_length", "length"), [(12, 12), (None, toy.LENGTH)])
def test_the_rows_of_articles_are_padded_to_the_text_length(corpus, examples, text_length, length):
    from newsembed.learning.options import ModelOptions

    model = ModelOptions(lambda vocab_size: toy.toy_config(vocab_size=vocab_size), text_length=text_length)
    converter = ConverterClass(make_recipe(corpus[1], model))()
    rows = [row["tokens"] for row in converter(examples, None).as_numpy_iterator()]
    for row, example in zip(rows, examples.as_numpy_iterator(), strict=True):
        tokens = example["tokens"].tolist()
        whole = tokens if len(tokens) <= length else [*tokens[: length - 1], tokens[-1]]
        assert row.tolist() == whole + [0] * (length - len(whole))


def test_embeddings_are_lines_of_json_in_the_order_of_the_articles(tmp_path, examples):
    path = str(tmp_path / "out.jsonl")
    vectors = [[0.5, 1.0], [0.25, -1.0], [0.0, 3.0]]
    write_embeddings(path, (vectors, {}), examples, "predict")
    lines = read_rows(tmp_path / "out.jsonl")
    assert [line["embedding"] for line in lines] == vectors
    assert [line["url"] for line in lines] == [f"https://a.example/{number}" for number in (1, 30, 2)]
    assert all(len(line["doc_id"]) == 16 for line in lines)
