"""Tasks of MTEB: what the adapter gives to the library, what the command refuses, and a task of a local folder."""

import enum
import json
import re
import sys

import numpy as np
import pytest
from json_lines import write_rows
from newsembed.errors import InputError
from newsembed.evaluation.encoders import Document
from newsembed.evaluation.mteb_tasks import MtebEncoder, run_tasks
from refusals import refuses


class Recorded:
    """Vectors of the length of a text; keeps the documents that it was given."""

    digest = "file.py:function/1"

    def __init__(self):
        self.documents = []

    def encode(self, documents):
        self.documents += documents
        return np.float32([[len(one.text), 1] for one in documents])


class PromptType(enum.Enum):
    """As in mteb."""

    query = "query"
    document = "document"


def test_texts_titles_and_queries_reach_the_encoder_and_empty_texts_stay_zero():
    encoder = Recorded()
    adapter = MtebEncoder(encoder, "mine")
    facts = {"task_metadata": None, "hf_split": "test", "hf_subset": "default", "batch_size": 32}
    rows = adapter.encode(iter([{"text": ["a", ""]}, {"text": ["bcd"]}]), **facts)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), [1, 0, 1], rtol=1e-6)
    assert rows.dtype == np.float32
    assert rows[2, 0] == pytest.approx(3 / np.sqrt(10))
    corpus = {"text": ["T b", "c"], "title": ["T", ""], "body": ["b", "c"]}
    adapter.encode([corpus], prompt_type=PromptType.document, **facts)
    adapter.encode([{"text": ["q"], "query": ["q"]}], prompt_type=PromptType.query, **facts)
    texts = [("", "a"), ("", "bcd"), ("T", "b"), ("", "c")]
    assert encoder.documents == [*(Document(*text) for text in texts), Document("", "q", is_query=True)]
    refuses("no text", adapter.encode, [{"text": [""]}], **facts)


def test_the_command_refuses_what_mteb_cannot_use(tmp_path, refused, monkeypatch):
    given = ["evaluate", "--mteb", "STS12", "--data", str(tmp_path), "--output", str(tmp_path / "out")]
    assert re.search(r"got base=lsa:100\n.*fitted on a collection", refused(*given, "--encoder", "base=lsa:100"))
    assert "--mteb: given with --suite" in refused(*given, "--encoder", "base=lsa:100", "--suite", "sts")
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
        monkeypatch.setenv(name, "1")  # as the command sets them, but not for other tests
    monkeypatch.setitem(sys.modules, "mteb", None)
    remedy = r"mteb is not installed\n.*newsembed\[mteb\]"
    refuses(remedy, run_tasks, ["STS12"], str(tmp_path), {}, {}, str(tmp_path))
    (tmp_path / "mteb.py").write_text("import a_library_that_mteb_needs\n")
    monkeypatch.delitem(sys.modules, "mteb")
    monkeypatch.syspath_prepend(str(tmp_path))
    refuses("a_library_that_mteb_needs is not installed", run_tasks, ["STS12"], str(tmp_path), {}, {}, str(tmp_path))


def test_mteb_scores_a_task_of_a_local_folder_and_writes_its_own_results(tmp_path):
    pytest.importorskip("mteb", reason="pip install 'newsembed[mteb]'")
    folder = tmp_path / "data" / "STS12"
    folder.mkdir(parents=True)
    rows = [{"sentence1": "a", "sentence2": "b" * n, "score": 5.0 - n} for n in range(1, 6)]
    write_rows(folder / "test.jsonl", rows)
    output = tmp_path / "out"
    found = run_tasks(["STS12"], str(tmp_path / "data"), {"mine": Recorded}, {"mine": "x:y"}, str(output))
    assert found == [("mine", "STS12", pytest.approx(1.0))]
    (path,) = output.glob("results/newsembed__mine/*/STS12.json")
    result = json.loads(path.read_text())
    assert result["dataset_revision"].startswith("local-")
    assert result["scores"]["test"][0]["cosine_spearman"] == pytest.approx(1.0)
    with pytest.raises(InputError, match="no such folder"):
        run_tasks(["STS13"], str(tmp_path / "data"), {"mine": Recorded}, {"mine": "x:y"}, str(output))
    refuses("--mteb", run_tasks, ["STS99"], str(tmp_path / "data"), {"mine": Recorded}, {"mine": "x:y"}, str(output))
