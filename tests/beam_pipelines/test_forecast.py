"""What a job says before it reads, and once the rate of a long phase is known."""

import pytest
from newsembed.beam_pipelines import forecast


class Clock:
    now = 100.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(forecast, "time", clock)
    return clock


def test_the_rest_of_a_phase_is_forecast_from_its_rate_once(clock, tmp_path):
    said = []
    state = forecast.Forecast("clean", str(tmp_path), said.append)
    (tmp_path / "earlier").write_bytes(bytes(5_000_000))  # of another phase
    state("rules", 1, 21)  # a resumed job has a part
    clock.now += 40
    state("rules", 2, 21)
    assert said == []  # one part tells no rate
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "part").write_bytes(bytes(8_000_000))
    clock.now += 40
    state("rules", 5, 21)
    # 4 parts in 80 s with 8 MB: 16 parts take 320 s and 32 MB.
    assert said == ["clean: rules: 5 of 21 parts in 80 s; the rest will take about 5 min and 32.0 MB of disk"]
    clock.now += 40
    state("rules", 9, 21)
    assert len(said) == 1


def test_a_phase_that_is_short_or_complete_says_nothing(clock, tmp_path):
    said = []
    state = forecast.Forecast("clean", str(tmp_path), said.append)
    state("rules", 0, 10)
    clock.now += 29
    state("rules", 9, 10)
    clock.now += 10
    state("rules", 10, 10)
    assert said == []


def test_phases_have_a_rate_of_their_own(clock, tmp_path):
    said = []
    state = forecast.Forecast("clean", str(tmp_path), said.append)
    for phase, seconds in (("first", 50), ("second", 1_000)):
        state(phase, 0, 4)
        clock.now += seconds
        state(phase, 2, 4)
    assert [line.partition("about ")[2] for line in said] == ["50 s and 0 bytes of disk", "17 min and 0 bytes of disk"]


def test_a_workspace_that_shrinks_needs_no_disk(clock, tmp_path):
    said = []
    (tmp_path / "intermediate").write_bytes(bytes(1_000_000))
    state = forecast.Forecast("clean", str(tmp_path), said.append)
    state("rules", 0, 4)
    (tmp_path / "intermediate").unlink()
    clock.now += 50
    state("rules", 2, 4)
    assert said[0].endswith("50 s and 0 bytes of disk")


def test_the_input_is_counted_in_files_and_folders(tmp_path):
    (tmp_path / "a.warc.gz").write_bytes(bytes(1_500_000))
    (tmp_path / "clean" / "articles").mkdir(parents=True)
    for name in ("manifest.json", "articles/part-0"):
        (tmp_path / "clean" / name).write_bytes(bytes(1_000_000))
    warc, clean = str(tmp_path / "a.warc.gz"), str(tmp_path / "clean")
    assert forecast.input_size("extract", [warc]) == "extract: input: 1 file, 1.5 MB"
    assert forecast.input_size("pack", [clean, warc]) == "pack: input: 3 files, 3.5 MB"
    stored = ["s3://bucket/a", "gs://bucket/b"]
    assert forecast.input_size("pack", stored) == "pack: input: 2 paths elsewhere"
    assert forecast.input_size("pack", [warc, *stored[:1]]) == "pack: input: 1 file, 1.5 MB; 1 path elsewhere"


def test_a_job_without_inputs_says_nothing_of_them(tmp_path):
    said = []
    forecast.announced("toy", {"articles": ()}, str(tmp_path), lambda *_: None, said.append)
    assert said == []


def test_times_change_their_unit():
    assert [forecast.duration(seconds) for seconds in (99.4, 100, 5_999, 6_000)] == [
        "99 s",
        "2 min",
        "100 min",
        "1.7 h",
    ]
