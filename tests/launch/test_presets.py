"""`newsembed build --preset=paper` makes the data that the paper's run files read."""

import gin
import pytest
from newsembed.launch import build, cli
from newsembed.models.transformer import TransformerConfig
from newsembed.tasks.kinds import TOPICS, TRIPLETS
from newsembed.training.gin_config import load_gin

REQUIRED = ['MODEL_DIR = "m"', 'DATA_DIR = "d"', 'VOCABULARY_PATH = "v"']


def options_of(monkeypatch, *arguments):
    """The options that the build would run with."""
    given = {}

    def recorded(_inputs, _output, options, *_):
        given.update(options)
        raise KeyboardInterrupt

    monkeypatch.setattr(build, "build", recorded)
    assert cli.main(["build", "--articles", "a.jsonl", "--output", "work", *arguments]) == 130
    return given


def macro(name):
    return gin.query_parameter(f"{name}/macro.value")


def test_the_paper_s_run_files_read_what_the_preset_makes(monkeypatch):
    options = options_of(monkeypatch, "--preset=paper")
    load_gin(["runs/pretrain_paper.gin"], REQUIRED)
    assert options["vocabulary"].size == macro("VOCAB_SIZE") == 500_000
    assert macro("TASK_FEATURE_LENGTHS") == {"tokens": options["pack"].max_length} == {"tokens": 512}
    load_gin(["runs/weak_supervision_paper.gin"], [*REQUIRED, 'INITIAL_CHECKPOINT_PATH = "c"'])
    assert options["vocabulary"].size == macro("VOCAB_SIZE")
    assert options["vocabulary"].alpha == gin.query_parameter("DataOptions.smoothing") == 0.7
    texts = {*TRIPLETS.text_features, *TOPICS.text_features}
    assert macro("TASK_FEATURE_LENGTHS") == dict.fromkeys(texts, options["examples"].max_length)
    assert options["examples"].max_length == gin.query_parameter("EncoderConfig.max_length") == 512
    assert options["topics"].max_topics == macro("NUM_TOPICS") == TransformerConfig(5).num_topics == 600
    assert (options["topics"].positive_ratio, options["clean"].require_author) == (0.25, True)
    # A topic row has as many texts as a triplet, and no loss has a weight.
    assert options["examples"].documents_per_example == len(TRIPLETS.text_features) == 3
    with pytest.raises(ValueError, match="task_weights"):
        gin.query_parameter("DataOptions.task_weights")
    assert macro("MLM_WEIGHT") == 0
    assert (options["pack"].min_fill, options["pack"].capacity) == (0.99, 1_000)


def test_options_that_are_given_win_over_the_preset(monkeypatch):
    options = options_of(monkeypatch, "--preset=paper", "--pack.max_length=128")
    assert (options["pack"].max_length, options["examples"].max_length) == (128, 512)
    assert options_of(monkeypatch)["vocabulary"].size == 32_000


def test_a_preset_may_be_in_a_file_and_unknown_ones_are_refused(monkeypatch, tmp_path, refused):
    (tmp_path / "build.txt").write_text("--preset=paper --pack.max_length=64")
    options = options_of(monkeypatch, f"@{tmp_path}/build.txt", "--pack.max_length=128")
    assert (options["vocabulary"].size, options["pack"].max_length) == (500_000, 128)  # words after the file win
    assert "--preset: got newspaper, expected one of paper" in refused(
        "build", "--articles", "a", "--output", "work", "--preset=newspaper"
    )


def test_a_preset_without_its_value_is_an_error_of_the_build(capsys):
    with pytest.raises(SystemExit):
        cli.main(["build", "--preset"])
    assert capsys.readouterr().err.startswith("newsembed build: error: argument --preset: expected one argument\n")
