"""Benchmarks of a model in training equal the evaluation of its checkpoint."""

import gin
import numpy as np
import pytest
from json_lines import write_rows
from newsembed.errors import InputError
from newsembed.evaluation.benchmarks.mldoc import MlDoc
from newsembed.evaluation.benchmarks.retrieval import SameEventRetrieval
from newsembed.evaluation.encoders import normalised
from newsembed.evaluation.heads import Perceptron
from newsembed.formats.vocabulary import SPECIAL_TOKENS
from newsembed.models.encoders.news import EncoderConfig
from newsembed.studies.evaluators import MlDocEvaluator, SameEventEvaluator
from newsembed.training.gin_config import load_gin
from newsembed.training.held_out import Snapshot

WORDS = [f"word{number}" for number in range(12)]


@pytest.fixture
def files(tmp_path):
    vocabulary, articles = tmp_path / "vocab.txt", tmp_path / "articles.jsonl"
    vocabulary.write_text("\n".join([*SPECIAL_TOKENS, *WORDS]) + "\n")
    rng = np.random.default_rng(0)
    texts = [[" ".join(rng.choice(WORDS, length)) for length in (3, 20)] for _ in range(9)]
    rows = [{"id": f"{n}", "title": title, "body": body, "event": f"e{n % 3}"} for n, (title, body) in enumerate(texts)]
    return str(vocabulary), write_rows(articles, rows)


@pytest.fixture
def counting():
    """Embeds rows of token ids as their counts, and keeps the vector of each row."""
    seen = {}

    def embed(tokens):
        assert len(tokens) % 4 == 0
        vectors = np.stack(
            [np.bincount(row[row > 4], minlength=20) + 0.1 * (row == 4 + 1).sum() + 1e-3 for row in tokens]
        ).astype(np.float32)
        seen.update({row[row > 0].tobytes(): vector for row, vector in zip(tokens, vectors, strict=True)})
        return vectors

    return embed, seen


def snapshot(vocabulary, embed, step=1):
    config = EncoderConfig(
        len(SPECIAL_TOKENS) + len(WORDS), hidden_size=4, num_heads=1, max_length=40, embedding_size=20
    )
    return Snapshot(step, config, vocabulary, lambda method, tokens: {"embed": embed}[method](tokens), 4, 12)


def test_scores_are_those_of_the_benchmark_on_the_model_s_vectors(files, counting):
    (vocabulary, articles), (embed, seen) = files, counting
    evaluator = SameEventEvaluator(articles)
    scores = evaluator(snapshot(vocabulary, embed))
    rows = evaluator.rows
    assert max(map(len, rows)) == 12  # as many tokens as the run trains on
    vectors = np.stack([seen[row.tobytes()] for row in rows])
    expected = {
        f"events/{score.metric}": score.value for score in SameEventRetrieval(articles).score(normalised(vectors))
    }
    assert scores == pytest.approx(expected)
    assert set(scores) == {"events/mAP", "events/hit@1"}


@pytest.fixture
def mldoc(tmp_path):
    """Three languages with the same words, of which the classes share eight; the test parts cannot be read."""
    folder = tmp_path / "mldoc"
    folder.mkdir()
    rng = np.random.default_rng(1)
    for language in ("english", "german", "spanish"):
        for part in ("train.1000", "dev"):
            lines = [
                f"{label}\t{' '.join(rng.choice(np.roll(WORDS, -6 * (label == 'b'))[:10], 3))}\n" for label in "ab" * 12
            ]
            (folder / f"{language}.{part}").write_text("".join(lines))
        (folder / f"{language}.test").write_text("not read")
    return str(folder)


@pytest.mark.parametrize("svm", [False, True])
def test_accuracies_on_dev_are_those_of_mldoc_s_protocol(files, counting, mldoc, svm):
    (vocabulary, _), (embed, seen) = files, counting
    chosen = ("german", "english")
    evaluator = MlDocEvaluator(mldoc, chosen, svm=svm, seeds=2)
    scores = evaluator(snapshot(vocabulary, embed))
    head = None if svm else Perceptron()
    benchmark = MlDoc(mldoc, "m", languages=chosen, seeds=2, head=head, on_dev=True)
    rows = evaluator.rows
    assert len(rows) == len(benchmark.documents()) == 2 * 2 * 24
    values = benchmark.score(normalised(np.stack([seen[row.tobytes()] for row in rows])))
    assert scores == {f"mldoc_dev/{score.part}": score.value for score in values[:3]}
    assert 0.5 < scores["mldoc_dev/Cross"] < 1


def test_the_scores_follow_the_parameters_and_the_documents_are_read_once(files, counting, mldoc):
    (vocabulary, _), (embed, _) = files, counting
    evaluator = MlDocEvaluator(mldoc, svm=True)
    first = evaluator(snapshot(vocabulary, embed))
    rows = evaluator.rows
    later = evaluator(snapshot(vocabulary, lambda tokens: np.ones((len(tokens), 20), np.float32), 2))
    assert evaluator.rows is rows
    assert later["mldoc_dev/Cross"] == 0.5 < first["mldoc_dev/Cross"]


def test_one_language_has_no_cross(files, counting, mldoc):
    with pytest.raises(InputError, match="found 1 language, expected at least 2"):
        MlDocEvaluator(mldoc, ("english",), svm=True)(snapshot(files[0], counting[0]))


def test_missing_files_are_an_error_before_the_training():
    for evaluator in (SameEventEvaluator, MlDocEvaluator):
        with pytest.raises(InputError, match="no such folder|No such file"):
            evaluator("not_there")


def test_gin_files_name_the_best_cross():
    keys = ["MODEL_DIR", "DATA_DIR", "VOCABULARY_PATH"]
    bindings = [
        *(f'{key} = "x"' for key in keys),
        "EVAL_PERIOD = 100",
        "CHECKPOINT_PERIOD = 100",
        "EVALUATOR = @MlDocEvaluator()",
        'MlDocEvaluator.path = "mldoc"',
        'MlDocEvaluator.languages = ("english", "german")',
        'KEEP_BEST = "eval/mldoc_dev/Cross"',
        'KEEP_BEST_MODE = "max"',
    ]
    load_gin(["runs/tmde_small.gin"], bindings)
    assert gin.query_parameter("%EVALUATOR").selector.endswith("MlDocEvaluator")
