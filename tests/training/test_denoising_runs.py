"""Runs of the denoising auto-encoder: the bias from the first texts, and both terms of the loss."""

import numpy as np
from json_lines import read_rows
from newsembed.training.gin_config import run_training
from toy_corpus import LENGTH, VOCAB_SIZE, bindings_of, saved_params, write_corpus, write_vocabulary


def test_it_logs_both_terms_and_descends_by_sgd(tmp_path):
    given = write_corpus(tmp_path / "data"), write_vocabulary(tmp_path / "vocab.txt")
    values = {"LOG_PERIOD": 1, "EMBEDDING_SIZE": 8, "MAX_LENGTH": LENGTH, "WHITENING_ROWS": 40}
    lengths = dict.fromkeys(["anchor_tokens", "positive_tokens", "negative_tokens"], LENGTH)

    def trained(name, steps, **changes):
        values_of_run = {**values, "TRAIN_STEPS": steps, "TASK_FEATURE_LENGTHS": lengths, **changes}
        run_training(["runs/okura_small.gin"], bindings_of(tmp_path / name, *given, **values_of_run))
        return saved_params(tmp_path / name, steps)

    fresh, moved = trained("still", 2, LEARNING_RATE=0.0), trained("whole", 6)
    names = {name.split("/")[0] for row in read_rows(tmp_path / "whole" / "metrics.jsonl") for name in row}
    assert {"loss", "reconstruction", "similarity_loss", "accuracy"} <= names
    assert fresh["decoder_bias"].shape == (VOCAB_SIZE,)
    assert fresh["decoder_bias"].std() > 0.1  # from the texts, not 0
    assert np.abs(moved["encoder_kernel"] - fresh["encoder_kernel"]).max() > 1e-3
