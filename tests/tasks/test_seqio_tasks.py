"""seqio over the same TFRecords: the same examples as our reader, and mixtures by the paper's rates."""

import collections

import numpy as np
import pytest
import toy_corpus as toy
from newsembed.errors import InputError
from newsembed.formats.manifest import DataSet
from newsembed.learning.batches import BatchOptions, GrainBatches
from newsembed.tasks.seqio_tasks import register_tasks, task_name

SETS = [("mlm", "en"), ("tlm", "de"), ("triplets", "en"), ("triplets", "de"), ("topics", "en")]
# What seqio cuts to the lengths of a run as our reader does: all but scalars, which have no length.
LENGTHS = (
    toy.LENGTHS
    | dict.fromkeys(["anchor_doc_id", "positive_doc_id", "negative_doc_id", "doc_id"], 2)
    | dict.fromkeys(["anchor_event", "positive_event", "negative_event"], 3)
    | dict.fromkeys(["augmentation", "translated"])
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    pytest.importorskip("seqio", reason="seqio is not installed (Python 3.13)")
    folder = tmp_path_factory.mktemp("seqio")
    return toy.write_corpus(folder / "data"), toy.write_vocabulary(folder / "vocab.txt")


def test_registered_tasks_have_our_examples_and_mixtures_their_rates(corpus):
    import seqio

    names = register_tasks(*corpus)
    mixtures = ["newsembed_pretrain", "newsembed_triplets", "newsembed_topics"]
    assert names == [*(task_name(*key) for key in sorted(SETS)), *mixtures]
    assert register_tasks(*corpus) == names
    task = seqio.get_mixture_or_task("newsembed_triplets_en")
    theirs = list(task.get_dataset(LENGTHS, split="train", shuffle=False).as_numpy_iterator())
    ours = GrainBatches(DataSet("triplets", "en"), BatchOptions(corpus[0], toy.LENGTHS, 1, toy.BOUNDS))
    rows = [{name: values[0] for name, values in next(ours).items()} for _ in theirs]

    def counted(examples):
        """Each example as one hashable value. A text that we cut keeps its last piece; unknown events are there."""
        names = [name for name in rows[0] if not name.endswith(("tokens", "negative_event"))]
        return collections.Counter(tuple(np.asarray(row[name]).tobytes() for name in names) for row in examples)

    assert len(theirs) == 23
    assert counted(theirs) == counted(rows)
    mixture = seqio.get_mixture_or_task("newsembed_pretrain")
    rates = {member.name: mixture.get_rate(member) for member in mixture.tasks}
    assert rates["newsembed_tlm_de"] == pytest.approx(23 * (11 / 23) ** 0.7)
    assert rates["newsembed_mlm_en"] == pytest.approx(23)


def test_bad_input_is_named(corpus, tmp_path):
    with pytest.raises(InputError, match=r"manifest.json: cannot be read"):
        register_tasks(str(tmp_path), corpus[1])
    with pytest.raises(InputError, match=r"vocab.txt: cannot be read"):
        register_tasks(corpus[0], str(tmp_path / "vocab.txt"))
