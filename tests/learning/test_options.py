"""The options of data and model: what they compute, and values that make no sense."""

import json

import pytest
from newsembed.beam_pipelines.texts import VOCABULARY_INPUT
from newsembed.errors import InputError
from newsembed.formats.vocabulary import VocabularyFile
from newsembed.learning.batches import DataSet
from newsembed.learning.options import DataOptions, ModelOptions
from toy_corpus import VOCAB_SIZE, toy_config


def data_options(directory="d", **changes):
    values = {"vocabulary_path": "v", "mixture": "weak_supervision", "feature_lengths": {"tokens": 16}, "batch_size": 8}
    return DataOptions(str(directory), **(values | changes))


def test_the_weight_of_a_task_multiplies_the_sampling_of_its_sets(tmp_path):
    counts = {"triplets/en": 100, "triplets/de": 25, "topics/en": 100, "mlm/en": 1000}
    (tmp_path / "manifest.json").write_text(json.dumps({"examples": counts}))
    weights = data_options(tmp_path, smoothing=0.5, task_weights={"topics": 3.0}).weights()
    # Square roots of the counts: 10 and 5 for the triplets, 3 x 10 for the topics.
    expected = {("triplets", "en"): 10 / 45, ("triplets", "de"): 5 / 45, ("topics", "en"): 30 / 45}
    assert weights == {DataSet(*name): pytest.approx(weight) for name, weight in expected.items()}


def test_records_of_another_vocabulary_are_refused(tmp_path):
    given, other = tmp_path / "vocab.txt", tmp_path / "other.txt"
    given.write_text("[PAD]\n")
    other.write_text("[UNK]\n")
    manifest = {"inputs": {"vocabulary": [VOCABULARY_INPUT.digest(str(given))]}}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    data_options(vocabulary_path=str(given)).check_vocabulary(str(tmp_path))
    with pytest.raises(InputError, match=r"other.txt: VOCABULARY_PATH: .* was written with another vocabulary"):
        data_options(vocabulary_path=str(other)).check_vocabulary(str(tmp_path))
    (tmp_path / "manifest.json").write_text('{"examples": {}}')  # no job wrote it
    data_options(vocabulary_path=str(other)).check_vocabulary(str(tmp_path))


@pytest.mark.parametrize("weights", [{"poems": 1.0}, {"topics": 0.0}])
def test_weights_of_unknown_tasks_and_weights_of_0_are_named(weights):
    with pytest.raises(InputError, match="task_weights: got .* expected positive factors for some of .*mlm"):
        data_options(task_weights=weights)


@pytest.mark.parametrize(
    ("chosen", "lengths", "expected"),
    [
        (None, None, None),
        (None, {"anchor_tokens": 5, "positive_tokens": 9, "topic_ids": 12}, 9),
        (None, {"tokens": 99}, 16),
        (16, {"tokens": 5}, 16),
    ],
)
def test_a_model_reads_as_many_tokens_as_it_was_told_or_trained_on(chosen, lengths, expected):
    assert ModelOptions(toy_config, text_length=chosen).text_length_of(lengths, toy_config()) == expected


@pytest.mark.parametrize("chosen", [0, 17])
def test_a_text_length_that_the_model_cannot_read_is_named(chosen):
    with pytest.raises(InputError, match=f"TEXT_LENGTH: got {chosen}, expected 1 to 16"):
        ModelOptions(toy_config, text_length=chosen).text_length_of(None, toy_config())


def test_the_vocabulary_gives_the_size_of_the_model():
    file = VocabularyFile("v.txt", b"", VOCAB_SIZE)
    assert ModelOptions(toy_config, vocab_size=VOCAB_SIZE).config(file) == toy_config()
    message = f"VOCAB_SIZE: the file has {VOCAB_SIZE} pieces, the model's vocab_size is 9"
    with pytest.raises(InputError, match=message) as caught:
        ModelOptions(toy_config, vocab_size=9).config(file)
    assert f"Set VOCAB_SIZE={VOCAB_SIZE}" in str(caught.value.remedy)


def test_rows_longer_than_the_model_reads_are_named():
    options = data_options(feature_lengths={"tokens": 17, "topic_ids": 2})
    with pytest.raises(InputError, match="TASK_FEATURE_LENGTHS: tokens: got 17, the architecture has 16 positions"):
        options.check_lengths({"topics"}, toy_config())
