"""What a log shows where no bar can be drawn."""

from newsembed.formats import bars


def test_a_log_has_lines_of_what_takes_long(capsys, monkeypatch):
    monkeypatch.setattr(bars, "_LINES", {**bars._LINES, "delay": 0.0, "mininterval": 0.0})
    with bars.bar(3, "text") as shown:
        shown.update(2)
        shown.update(1)
    said = capsys.readouterr().err
    assert "\r" not in said
    assert [line.split("[")[0].split("|")[-1].strip() for line in said.splitlines()] == ["0/3", "2/3", "3/3"]


def test_what_is_soon_done_says_nothing_in_a_log(capsys):
    assert list(bars.bar(3, "text", over="abc")) == ["a", "b", "c"]
    assert capsys.readouterr().err == ""


def test_a_hidden_bar_says_nothing(capsys, monkeypatch):
    monkeypatch.setattr(bars, "_LINES", {"delay": 0.0, "mininterval": 0.0})
    bars.bar(3, "text", shown=False).update(3)
    assert capsys.readouterr().err == ""
