"""Trainings in processes of their own: killed and continued, failed with their last words, never two in one folder."""

import dataclasses
import fcntl
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
import toy_corpus
from newsembed.errors import InputError, Terminated
from newsembed.studies.shared import runs
from newsembed.studies.shared.runs import Run, core_shares, run_command, train_all, train_in_process, write_run_file
from newsembed.studies.shared.study import load_checkpoint


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A training of some seconds, with a checkpoint every 5 of its 20 steps."""
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "compiled"))
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false")
    data, vocabulary = toy_corpus.write_corpus(tmp_path / "data"), toy_corpus.write_vocabulary(tmp_path / "vocab.txt")
    periods = {"TRAIN_STEPS": 20, "CHECKPOINT_PERIOD": 5, "KEEP_PERIOD": 10, "LOG_PERIOD": 5}
    given = (tmp_path / "run" / "model", data, vocabulary)
    bindings = toy_corpus.tiny_bindings(*given, INITIAL_CHECKPOINT_PATH=None, **periods)
    bindings.append("MIXTURE_OR_TASK_NAME = 'triplets/en'")  # one program to compile
    bindings = [one for one in bindings if not one.startswith("WHITENING")]
    made = Run(str(tmp_path / "run"), "\n".join(['include "runs/train_demo.gin"', *bindings]), (10, 20))
    write_run_file(made)
    return made


@pytest.mark.long  # `make attack`
def test_a_killed_training_goes_on_from_its_checkpoint(run, monkeypatch):
    popen = subprocess.Popen

    def started(*words, **options):
        process = popen(*words, **options)
        threading.Thread(target=kill_after_first_checkpoint, args=(process,)).start()
        return process

    def kill_after_first_checkpoint(process):
        while process.returncode is None and not (Path(run.model) / "checkpoints" / "5").exists():
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)

    monkeypatch.setattr(runs.subprocess, "Popen", started)
    problem = train_in_process(run, [])
    assert problem.startswith("the training was ended by signal 9 (SIGKILL)")
    assert not run.is_trained()
    monkeypatch.setattr(runs.subprocess, "Popen", popen)
    assert train_in_process(run, []) == ""
    assert run.is_trained()
    assert {"10", "20"} <= set(os.listdir(f"{run.model}/checkpoints"))
    assert "resumed from step" in Path(run.folder, "train.log").read_text()
    assert run.seconds() > 0


def send_after_first_checkpoint(run, find, number):
    """Starts a thread that waits for the first checkpoint and sends a signal to the process that `find` returns."""

    def send():
        deadline = time.monotonic() + 300
        while not (Path(run.model) / "checkpoints" / "5").exists() and time.monotonic() < deadline:
            time.sleep(0.005)
        os.kill(find(), number)

    threading.Thread(target=send, daemon=True).start()


def saved_steps(run):
    return sorted(int(name) for name in os.listdir(f"{run.model}/checkpoints") if name.isdigit())


@pytest.mark.long  # `make attack`
def test_sigterm_to_what_waits_for_a_training_saves_and_stops_both(run, monkeypatch):
    popen, started = subprocess.Popen, []

    def note(*words, **options):
        started.append(popen(*words, **options))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", note)
    before = signal.getsignal(signal.SIGTERM)
    send_after_first_checkpoint(run, os.getpid, signal.SIGTERM)
    with pytest.raises(Terminated):
        run_command(run.command)
    assert started[0].poll() == 143
    assert signal.getsignal(signal.SIGTERM) == before
    assert 5 <= saved_steps(run)[-1] < 20
    monkeypatch.setattr(subprocess, "Popen", popen)
    assert run_command(run.command) == 0
    assert saved_steps(run)[-1] == 20


def test_a_training_that_cannot_start_says_why_and_a_long_one_what_its_log_says(run, monkeypatch, capsys):
    monkeypatch.setattr(runs, "SECONDS_BETWEEN_LINES", 0.01)
    broken = dataclasses.replace(run, folder=f"{run.folder}-broken", gin=run.gin.replace("vocab.txt", "gone.txt"))
    write_run_file(broken)
    problem = train_in_process(broken, [])
    assert problem.startswith("exit code 2: ")
    assert "gone.txt" in problem
    assert f"{broken.folder}: starting\n" in capsys.readouterr().err  # nothing is in the log yet


def test_an_evaluation_shows_what_it_embeds(run, monkeypatch):
    monkeypatch.setattr("newsembed.serving.factories", lambda **given: {"model": lambda spec: (spec, given)})
    assert load_checkpoint(run, 3) == (f"{run.model}@3", {})


def test_a_second_process_waits_for_the_first_and_finds_it_done(run):
    other = threading.Event()
    with open(f"{run.folder}/lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = threading.Thread(target=lambda: (train_in_process(run, []), other.set()))
        waiting.start()
        assert not other.wait(0.3)
        os.makedirs(f"{run.model}/checkpoints/20")
    waiting.join(10)
    assert other.is_set()
    assert not (Path(run.folder) / "train.log").read_text()


def test_a_folder_of_another_training_is_refused(run):
    write_run_file(run)
    with pytest.raises(InputError, match="a training with nothing, this one has SEED = 3"):
        write_run_file(dataclasses.replace(run, gin=run.gin + "\nSEED = 3\n"))


def make_runs(tmp_path, count):
    made = [Run(str(tmp_path / str(number)), "", (1,)) for number in range(count)]
    for one in made:
        os.makedirs(one.folder)
    return made


def test_one_failure_stops_no_other_and_finished_ones_are_left_alone(tmp_path):
    made = make_runs(tmp_path, 4)
    os.makedirs(f"{made[0].model}/checkpoints/1")
    asked = []

    def trainer(run, _cores):
        asked.append(run.folder)
        if run is made[2]:
            raise OSError("no space")
        return "exit code 1" if run is made[1] else ""

    said = []
    problems = train_all(made, 2, trainer, said.append)
    assert problems == {made[1].folder: "exit code 1", made[2].folder: "OSError: no space"}
    assert sorted(asked) == [one.folder for one in made[1:]]
    assert len(said) == 4


def test_a_training_that_was_stopped_stops_the_others(tmp_path):
    made, asked = make_runs(tmp_path, 4), []

    def trainer(run, _cores):
        asked.append(run)
        if run is made[1]:
            raise Terminated
        return ""

    with pytest.raises(Terminated):
        train_all(made, 1, trainer)
    assert asked == made[:2]


def test_trainings_at_a_time_share_the_cores(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1, 2, 3, 4}, raising=False)
    assert core_shares(2) == [[0, 2, 4], [1, 3]]
    assert core_shares(1) == [[]]
    assert core_shares(9) == [[]] * 9
    running, most, lock = [], [], threading.Lock()

    def trainer(run, cores):
        with lock:
            running.append(tuple(cores))
            most.append(len(running))
            assert len(set(running)) == len(running)
        time.sleep(0.01)
        with lock:
            running.remove(tuple(cores))
        return ""

    train_all(make_runs(tmp_path, 6), 2, trainer)
    assert max(most) == 2


@pytest.mark.parametrize(("number", "cause"), [(signal.SIGKILL, "memory ran out"), (signal.SIGSEGV, "a crash")])
def test_a_step_that_a_signal_ends_says_so(monkeypatch, number, cause):
    popen = subprocess.Popen
    monkeypatch.setattr(
        subprocess, "Popen", lambda *_, **options: popen(["sh", "-c", f"kill -{int(number)} $$"], **options)
    )
    with pytest.raises(InputError, match=f"`newsembed train` was ended by signal.*{number.name}.*{cause}.* GB") as told:
        run_command(["train", "--gin_file=x"])
    assert "the same command" in told.value.remedy
    assert "BATCH_SIZE" in told.value.remedy
