"""seqio over the same TFRecords: the same examples as our reader, exact continuation, mixtures by the paper's rates."""

import collections
import importlib.util
from pathlib import Path

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.formats.manifest import DataSet
from newsembed.learning.batches import BatchIterator, BatchOptions, GrainBatches
from newsembed.tasks.seqio_tasks import SeqioBatches, register_tasks, task_name

_SPEC = importlib.util.spec_from_file_location("toy_corpus", Path(__file__).parents[1] / "learning" / "toy_corpus.py")
toy = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(toy)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("seqio")
    return toy.write_corpus(folder / "data"), toy.write_vocabulary(folder / "vocab.txt")


def options(corpus, **changes):
    values = {
        "lengths": toy.LENGTHS,
        "batch_size": 1,
        "bounds": toy.BOUNDS,
        "seed": 3,
    } | changes
    return BatchOptions(directory=corpus[0], **values)


def rows(batches, count):
    """Each example as one hashable value."""
    taken = [next(batches) for _ in range(count)]
    return [tuple((name, values[0].tobytes()) for name, values in sorted(batch.items())) for batch in taken]


@pytest.mark.parametrize(
    ("task", "language", "count"),
    [("mlm", "en", 23), ("triplets", "en", 23), ("triplets", "de", 11), ("topics", "en", 23)],
)
def test_an_epoch_holds_the_same_examples_as_the_tensorflow_free_reader(corpus, task, language, count):
    data_set = DataSet(task, language)
    theirs, ours = (rows(reader(data_set, options(corpus)), count) for reader in (SeqioBatches, GrainBatches))
    assert collections.Counter(theirs) == collections.Counter(ours)


def test_a_state_continues_exactly(corpus):
    data_set = DataSet("triplets", "en")
    batches, again = (SeqioBatches(data_set, options(corpus, batch_size=4)) for _ in range(2))
    assert isinstance(batches, BatchIterator)
    for _ in range(7):
        next(batches)
    again.set_state(batches.get_state())
    for _ in range(7):
        left, right = next(batches), next(again)
        assert all((values == right[name]).all() for name, values in left.items())
    with pytest.raises(InputError, match="trained with the seed 3, this run has 4"):
        SeqioBatches(data_set, options(corpus, seed=4)).set_state(batches.get_state())


def test_processes_share_the_batches_of_one(corpus):
    data_set = DataSet("topics", "en")
    whole = rows(SeqioBatches(data_set, options(corpus)), 10)
    parts = [
        rows(SeqioBatches(data_set, options(corpus, process_count=2, process_index=index)), 5) for index in range(2)
    ]
    assert whole == [row for pair in zip(*parts, strict=True) for row in pair]


def test_registered_tasks_and_mixtures(corpus):
    seqio = pytest.importorskip("seqio")
    names = register_tasks(*corpus)
    assert names == [
        *(
            task_name(*key)
            for key in sorted([("mlm", "en"), ("tlm", "de"), ("triplets", "en"), ("triplets", "de"), ("topics", "en")])
        ),
        "newsembed_pretrain",
        "newsembed_triplets",
        "newsembed_topics",
    ]
    assert register_tasks(*corpus) == names
    task = seqio.get_mixture_or_task("newsembed_triplets_en")
    lengths = toy.LENGTHS | dict.fromkeys(["anchor_doc_id", "positive_doc_id", "negative_doc_id"], 2)
    lengths |= dict.fromkeys(["anchor_event", "positive_event", "negative_event"], 3)
    lengths |= dict.fromkeys(["augmentation", "translated"])  # a scalar has no length
    examples = list(task.get_dataset(lengths, split="train", shuffle=False).as_numpy_iterator())
    assert len(examples) == 23
    assert all(example["translated"].shape == () and example["anchor_doc_id"].dtype == np.int32 for example in examples)
    mixture = seqio.get_mixture_or_task("newsembed_pretrain")
    rates = {member.name: mixture.get_rate(member) for member in mixture.tasks}
    assert rates["newsembed_tlm_de"] == pytest.approx(23 * (11 / 23) ** 0.7)
    assert rates["newsembed_mlm_en"] == pytest.approx(23)


def test_bad_input_is_named(corpus, tmp_path):
    with pytest.raises(InputError, match=r"manifest.json: cannot be read"):
        register_tasks(str(tmp_path), corpus[1])
    with pytest.raises(InputError, match=r"vocab.txt: cannot be read"):
        register_tasks(corpus[0], str(tmp_path / "vocab.txt"))
    with pytest.raises(InputError, match="tokens: got ids from"):
        rows(SeqioBatches(DataSet("topics", "en"), options(corpus, bounds={"pieces": 9})), 9)
    with pytest.raises(InputError, match="BATCH_DAYS: got 7, but seqio cannot group rows by day"):
        SeqioBatches(DataSet("triplets", "en"), options(corpus, batch_days=7))
    with pytest.raises(InputError, match="no file of topics/fr is here"):
        SeqioBatches(DataSet("topics", "fr"), options(corpus))
