"""Run files named `*_paper.gin` have the values that the papers print, and say where a value is ours."""

from pathlib import Path

import gin
import pytest
from newsembed.training.gin_config import load_gin

RUNS = Path(__file__).parents[2] / "gin" / "runs"
REQUIRED = ("MODEL_DIR", "DATA_DIR", "VOCABULARY_PATH", "EVAL_DATA_DIR", "INITIAL_CHECKPOINT_PATH")
TRANSLATION = {
    "VOCAB_SIZE": 50_000,
    "Translation.negatives": 40,
    "Translation.negative_weight": 1.0,
    "Translation.margin": 0.5,
}
NTDV = {"VOCAB_SIZE": 85_000, "BATCH_SIZE": 80, "TASK_FEATURE_LENGTHS": {"source_tokens": 50, "target_tokens": 50}}
SIMLTE = {"LEARNING_RATE": 5e-5, "BATCH_SIZE": 36, "Contrastive.temperature": 0.05, "MLM_WEIGHT": 0.1}
PRINTED = {  # and the options that no paper prints, which are off
    "weak_supervision_paper": {  # NewsEmbed, B.1 and B.2; it prints 8,196
        "BATCH_SIZE": 8_192,
        "TRAIN_STEPS": 400_000,
        "LEARNING_RATE": 5e-5,
        "DECAY": "constant",
        "VOCAB_SIZE": 500_000,
        "DataOptions.smoothing": 0.7,
        "Contrastive.temperature": 0.05,
        "Contrastive.mask_same_event": False,
        "adam.clip_norm": None,
    },
    "pretrain_paper": {  # NewsEmbed, 3.1; BERT, A.2
        "MASKING_RATE": 0.15,
        "VOCAB_SIZE": 500_000,
        "BATCH_SIZE": 256,
        "TRAIN_STEPS": 1_000_000,
        "LEARNING_RATE": 1e-4,
        "WARMUP_STEPS": 10_000,
        "DECAY": "linear",
        "adam.weight_decay": 0.01,
    },
    "simlte_paper": {**SIMLTE, "TRAIN_STEPS": -(-6_218_825 // 36), "adam.clip_norm": None},
    "simlte_long_paper": {**SIMLTE, "BATCH_SIZE": 12, "EncoderConfig.local_distance": 256, "adam.clip_norm": None},
    "ast_paper": {
        "BATCH_SIZE": 128,
        "LEARNING_RATE": 1e-3,
        "TRAIN_STEPS": 10 * 247,
        "PATIENCE": 5,
        "adam.clip_norm": None,
    },
    "tmde_paper": {
        **TRANSLATION,
        "LEARNING_RATE": 5e-4,
        "DECAY": "inverse_root",
        "WARMUP_STEPS": 4_000,
        "DROPOUT_RATE": 0.3,
        "Moments.b2": 0.98,
        "adam.weight_decay": 1e-4,
        "Translation.label_smoothing": 0.1,
        "adam.clip_norm": None,
    },
    "laser_paper": {  # Artetxe and Schwenk 2019
        **TRANSLATION,
        "LEARNING_RATE": 1e-3,
        "DECAY": "constant",
        "WARMUP_STEPS": 0,
        "DROPOUT_RATE": 0.1,
        "adam.weight_decay": 0.0,
        "adam.clip_norm": None,
    },
    "ntdv_paper": {**NTDV, "DISTANCE_WEIGHT": 0.5, "BilingualConfig.num_heads": 4, "adam.clip_norm": None},
    "ntdv_translator_paper": {**NTDV, "AttentiveConfig.hidden_size": 1_024, "adam.clip_norm": None},
    "okura_paper": {"MASKING_SHARE": 0.3, "EMBEDDING_SIZE": 500, "MOMENTUM": 0.0, "CLIP_NORM": None},
}


def test_every_run_file_of_a_paper_is_compared():
    assert set(PRINTED) == {path.stem for path in RUNS.glob("*_paper.gin")}


@pytest.mark.parametrize("run", PRINTED)
def test_a_run_file_has_the_printed_values(run):
    text = (RUNS / f"{run}.gin").read_text() + (RUNS / "tmde_paper.gin").read_text() * (run == "laser_paper")
    needed = [f'{name} = "x"' for name in REQUIRED if f"{name} = %gin.REQUIRED" in text]
    needed += ['MIXTURE_OR_TASK_NAME = "translation/de-en"'] if run == "ntdv_translator_paper" else []
    load_gin([f"runs/{run}.gin"], needed)
    found = {name: gin.query_parameter(name if "." in name else f"%{name}") for name in PRINTED[run]}
    assert found == PRINTED[run]
