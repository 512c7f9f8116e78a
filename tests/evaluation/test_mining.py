"""The suite of mined translations: scores by hand, files as BUCC distributes them, and broken ones."""

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.evaluation.benchmarks.bitext import BitextMining
from newsembed.evaluation.encoders import Document
from newsembed.tasks.margin import DEFAULT_MARGIN
from refusals import refuses


@pytest.fixture
def folder(tmp_path):
    """Two German and three English sentences, of which one pair translates each other."""
    (tmp_path / "de-en.test.de").write_text("de-1\tEins.\nde-2\tZwei.\n")
    (tmp_path / "de-en.test.en").write_text("en-1\tNoise.\nen-2\tOne.\nen-3\tMore noise.\n")
    (tmp_path / "de-en.test.gold").write_text("de-1\ten-2\n")
    return tmp_path


# Margins with k = 4 (all neighbors): pair (0, 1) = 1 / ((1 + .5) / 3 ...), see the test.
EMBEDDINGS = np.float32([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 0.6, 0.8]])


def test_scores_of_a_set_worked_by_hand(folder):
    # German 0 has the cosines (0, 1, 0) and German 1 (0, 0, .6). Means of German: 1/3, .2; of English: 0, .5, .3.
    # Margins: 1 / ((1/3 + .5) / 2) = 2.4 for (0, 1), .6 / ((.2 + .3) / 2) = 2.4 for (1, 2): both are accepted.
    benchmark = BitextMining(str(folder))
    scores = {(score.metric, score.part): score.value for score in benchmark.score(EMBEDDINGS)}
    assert scores["precision", "all"] == 0.5
    assert scores["recall", "all"] == 1
    assert scores["F1", "de-en"] == pytest.approx(2 / 3)
    assert scores["best margin", "de-en"] == pytest.approx(2.4)
    assert scores[f"F1 at {DEFAULT_MARGIN:g}", "de-en"] == pytest.approx(2 / 3)


def test_an_excluded_sentence_takes_its_gold_pair_with_it(folder):
    refuses("no gold pair is left", BitextMining(str(folder), excluded=frozenset({Document("", "One.")})).documents)
    assert len(BitextMining(str(folder), excluded=frozenset({Document("", "Noise.")})).documents()) == 4
    with pytest.raises(InputError, match="no sentence is left"):
        BitextMining(
            str(folder), excluded=frozenset(Document("", text) for text in ("Eins.", "Zwei.", "Noise."))
        ).documents()


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("de-en.test.gold", "de-1\ten-9\n", "not in both files"),
        ("de-en.test.de", "de-1 no tab\n", "two columns"),
        ("de-en.test.de", "", "two columns"),
        ("de-en.test.de", "de-1\tone\nde-1\ttwo\n", "twice"),
    ],
)
def test_broken_files_are_named(folder, name, content, problem):
    (folder / name).write_text(content)
    refuses(problem, BitextMining(str(folder)).documents)


def test_a_folder_without_sets_is_refused(tmp_path):
    refuses("no file xx-yy", BitextMining(str(tmp_path)).documents)
