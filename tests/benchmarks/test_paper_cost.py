"""What the paper's runs would cost: the arithmetic, the records, and the page that gets the tables."""

import sys

import pytest

OPTIONS = ["--devices=4", "--hosts=2", "--peak_tflops=100", "--mfu=0.5", "--dollars=2", "--write_gigabytes=0.5"]


@pytest.fixture
def cost(script):
    return script("paper_cost")


def test_the_figures_follow_from_the_shapes(cost, monkeypatch, tmp_path):
    # 4e14 FLOPs at 4 x 50 TFLOP/s: 2 s a step, 1 hour, 8 dollars; 2,048 rows of 500 bytes on two hosts every 2 s.
    run = cost.Run("paper", 2_048, 1_800, {"a": 4e14, "b": 1e14}, 3_000_000, 4_000_000_000, 500)
    monkeypatch.setattr(cost, "RUNS", ["paper"])
    monkeypatch.setattr(cost, "describe", lambda name, devices: run)
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- paper_cost: begin -->\nold\n<!-- paper_cost: end -->\nafter\n")
    monkeypatch.setattr(sys, "argv", ["paper_cost.py", *OPTIONS, f"--write={page}"])
    cost.main()
    before, *_, line, end, after = page.read_text().splitlines()
    assert (before, end, after) == ("before", "<!-- paper_cost: end -->", "after")
    figures = ["`paper`", "3.0", "4.00e+14", "2.000", "1.0", "8", "0.0", "0.26", "0.500", "4.00", "8"]
    assert line.strip("| ").split(" | ") == figures


def test_a_page_without_marks_is_left_as_it_is(cost, monkeypatch, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("text\n")
    monkeypatch.setattr(cost, "RUNS", [])
    for path, message in (
        (page, "has no lines <!-- paper_cost: begin -->"),
        (tmp_path / "none.md", "--write: no such file: .*none.md"),
    ):
        monkeypatch.setattr(sys, "argv", ["paper_cost.py", f"--write={path}"])
        with pytest.raises(SystemExit, match=message):
            cost.main()
    assert page.read_text() == "text\n"


@pytest.mark.parametrize(("task", "texts"), [("mlm", 1), ("triplets", 3), ("topics", 3)])
def test_a_full_record_holds_all_texts(cost, task, texts):
    lengths = {"tokens": 512, "anchor_tokens": 512, "positive_tokens": 512, "negative_tokens": 512}
    size = cost.record_bytes(task, {**cost.LENGTHS, **lengths})
    assert 512 * texts * 2 < size < 512 * texts * 4 + 512 * 6


def test_the_paper_s_run(cost):
    run = cost.describe("weak_supervision_paper", 256)
    assert (run.rows, run.steps) == (8_192, 400_000)
    assert run.state == pytest.approx(12 * run.parameters, rel=1e-6)  # float32: itself and Adam's two moments
    # 6 FLOPs for each weight of the layers and the head and each token, and the products of attention.
    dense, tokens = 12 * (4 * 768**2 + 2 * 768 * 3_072) + 768**2, 8_192 * 3 * 512
    attention = 12 * 12 * 512 * 768 * tokens
    assert run.flops["triplets"] == pytest.approx(6 * dense * tokens + attention, rel=0.02)
