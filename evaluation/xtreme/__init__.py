"""The supervised tasks of XTREME (Hu et al. 2020): their files as its scripts lay them out, and their metrics.

A model is trained on English and tested on all languages. ``scripts/download_data.sh`` of
https://github.com/google-research/xtreme makes a folder for each task, in one folder. It takes the labels out of the
test files; where it did not, they are read there. Labels beside them are in ``TASK/test-LANGUAGE.tsv`` (``.json`` for
questions), as its ``evaluate.py`` reads them.
"""

import dataclasses
from collections.abc import Mapping
from typing import Final, Literal

SOURCE: Final = "get it by scripts/download_data.sh of https://github.com/google-research/xtreme"
_UPOS: Final = "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X _"
_XQUAD: Final = "en es de el ru tr ar vi th zh hi"
_XNLI: Final = "ar bg de el en es fr hi ru sw th tr ur vi zh"


@dataclasses.dataclass(frozen=True)
class XtremeTask:
    """A task.

    Attributes:
      name: its folder below that of the data.
      head: what is labelled: "pair" of sentences, each "word", or a "span" of a text that answers a question.
      languages: those of XTREME's table.
      labels: of pairs or words.
      metric: the one of XTREME's table.
      training: the folder whose training part is learned; tasks may share one.
      test: name of the test file of a language, below the folder.
      train: name of the training file, below the folder of the training.
      dev: name of the file that chooses the checkpoint; "" takes the last checkpoint, as XTREME does for questions.
    """

    name: str
    head: Literal["pair", "word", "span"]
    languages: tuple[str, ...]
    labels: tuple[str, ...]
    metric: str
    training: str
    test: str = "test-{}.tsv"
    train: str = "train-en.tsv"
    dev: str = "dev-en.tsv"

    @property
    def labels_file(self) -> str:
        """Name of the file of labels, and of predictions, of a language."""
        return f"{self.name}/test-{{}}.{'json' if self.head == 'span' else 'tsv'}"


def _task(name: str, head: Literal["pair", "word"], languages: str, labels: str, metric: str) -> XtremeTask:
    return XtremeTask(name, head, tuple(languages.split()), tuple(labels.split()), metric, training=name)


def _questions(name: str, languages: str, test: str, training: str, train: str) -> XtremeTask:
    return XtremeTask(name, "span", tuple(languages.split()), (), "F1", training, test, train, dev="")


_TASKS: Final = (
    _task("xnli", "pair", _XNLI, "contradiction entailment neutral", "accuracy"),
    _task("pawsx", "pair", "de en es fr ja ko zh", "0 1", "accuracy"),
    _task(
        *("udpos", "word"),
        "af ar bg de el en es et eu fa fi fr he hi hu id it ja kk ko mr nl pt ru ta te th tl tr ur vi yo zh",
        *(_UPOS, "F1"),
    ),
    _task(
        *("panx", "word"),
        "ar he vi id jv ms tl eu ml ta te af nl en de el bn hi mr ur fa fr it pt es bg ru ja ka ko th sw yo my zh kk "
        "tr et fi hu",
        *("B-LOC B-ORG B-PER I-LOC I-ORG I-PER O", "F1"),
    ),
    _questions("xquad", _XQUAD, "xquad.{}.json", "squad", "train-v1.1.json"),
    _questions(
        "mlqa", "en es de ar hi vi zh", "MLQA_V1/test/test-context-{0}-question-{0}.json", "squad", "train-v1.1.json"
    ),
    _questions(
        *("tydiqa", "en ar bn fi id ko ru sw te", "tydiqa-goldp-v1.1-dev/tydiqa.goldp.{}.dev.json", "tydiqa"),
        "tydiqa-goldp-v1.1-train/tydiqa.goldp.en.train.json",
    ),
)
TASKS: Final[Mapping[str, XtremeTask]] = {task.name: task for task in _TASKS}
