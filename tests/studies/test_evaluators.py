"""Same-event retrieval of a model in training equals the evaluation of its checkpoint."""

import json

import gin
import numpy as np
import pytest
from newsembed.evaluation.encoders import normalised
from newsembed.evaluation.retrieval import SameEventRetrieval
from newsembed.formats.vocabulary import SPECIAL_TOKENS
from newsembed.models.encoders.news import EncoderConfig
from newsembed.studies.evaluators import SameEventEvaluator
from newsembed.training.gin_config import load_gin
from newsembed.training.held_out import Snapshot

WORDS = [f"word{number}" for number in range(12)]


@pytest.fixture
def files(tmp_path):
    vocabulary, articles = tmp_path / "vocab.txt", tmp_path / "articles.jsonl"
    vocabulary.write_text("\n".join([*SPECIAL_TOKENS, *WORDS]) + "\n")
    rng = np.random.default_rng(0)
    rows = [
        {
            "id": str(number),
            "title": " ".join(rng.choice(WORDS, 3)),
            "body": " ".join(rng.choice(WORDS, 20)),
            "event": f"event{number % 3}",
        }
        for number in range(9)
    ]
    articles.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return str(vocabulary), str(articles)


def test_scores_are_those_of_the_benchmark_on_the_model_s_vectors(files):
    vocabulary, articles = files
    seen = {}

    def embed(tokens):
        assert len(tokens) % 4 == 0
        vectors = np.stack(
            [np.bincount(row[row > 4], minlength=20) + 0.1 * (row == 4 + 1).sum() + 1e-3 for row in tokens]
        ).astype(np.float32)
        seen.update({row[row > 0].tobytes(): vector for row, vector in zip(tokens, vectors, strict=True)})
        return vectors

    config = EncoderConfig(
        len(SPECIAL_TOKENS) + len(WORDS), hidden_size=4, num_heads=1, max_length=40, embedding_size=20
    )
    evaluator = SameEventEvaluator(articles, tokens_per_batch=128)
    scores = evaluator(Snapshot(1, config, vocabulary, embed, 4, 12))
    assert max(map(len, evaluator._rows)) == 12  # as many tokens as the run trains on
    vectors = np.stack([seen[row.tobytes()] for row in evaluator._rows])
    expected = {
        f"events/{score.metric}": score.value for score in SameEventRetrieval(articles).score(normalised(vectors))
    }
    assert scores == pytest.approx(expected)
    assert set(scores) == {"events/mAP", "events/hit@1"}


def test_gin_files_name_it():
    keys = ["MODEL_DIR", "DATA_DIR", "VOCABULARY_PATH", "INITIAL_CHECKPOINT_PATH"]
    bindings = [
        *(f'{key} = "x"' for key in keys),
        "EVALUATOR = @SameEventEvaluator()",
        'SameEventEvaluator.path = "heldout.jsonl"',
    ]
    load_gin(["runs/train_small.gin"], bindings)
    assert gin.query_parameter("SameEventEvaluator.path") == "heldout.jsonl"
    assert gin.query_parameter("%EVALUATOR").selector.endswith("SameEventEvaluator")
