"""Two processes train what one does, stop together, and continue what they or one began."""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from json_lines import read_rows
from newsembed.errors import InputError
from newsembed.training import processes
from newsembed.training.gin_config import run_training
from toy_corpus import packed_row_of, saved_params, tiny_bindings, write_corpus, write_sets, write_vocabulary

WEAK, PRETRAIN = "runs/train_demo.gin", "runs/pretrain_demo.gin"
# Sums over two devices add in another order than over one, which eight steps of Adam carry on. Seen: 2e-7 at most.
TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}


def params(folder, step=8):
    return saved_params(folder, step)


def metrics(folder):
    return read_rows(folder / "metrics.jsonl")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def run_together(folder, jobs):
    """Runs the jobs in two processes of one device each; what each process found."""
    (folder / "runs.json").write_text(json.dumps(jobs))
    script = str(Path(__file__).with_name("process_cases.py"))
    port = str(free_port())
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    commands = [[sys.executable, script, str(number), port, str(folder / "runs.json")] for number in range(2)]
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
        for command in commands
    ]
    try:
        outputs = [process.communicate(timeout=1800)[0] for process in started]
    finally:
        for process in started:
            process.kill()
    assert [process.returncode for process in started] == [0, 0], "\n".join(outputs)
    return [json.loads((folder / f"results-{number}.json").read_text()) for number in range(2)]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """All runs: "alone" in this process, the others in two."""
    folder = tmp_path_factory.mktemp("processes")
    vocabulary = write_vocabulary(folder / "vocab.txt")
    corpus = write_corpus(folder / "data"), vocabulary
    held_out = write_corpus(folder / "held_out", seed=1)

    def weak(name, **changes):
        values = {
            "TRAIN_STEPS": 8,
            "CHECKPOINT_PERIOD": 4,
            "MIXTURE_OR_TASK_NAME": "triplets",  # one program to compile
            "INITIAL_CHECKPOINT_PATH": None,
            "EVAL_PERIOD": 4,
            "EVAL_DATA_DIR": held_out,
        }
        return {"gin": WEAK, "bindings": tiny_bindings(folder / name, *corpus, **(values | changes))}

    run_training([WEAK], weak("alone")["bindings"])
    shutil.copytree(folder / "alone", folder / "handed_over")
    shutil.rmtree(folder / "handed_over" / "checkpoints" / "8")
    results = run_together(
        folder,
        [
            weak("together"),
            weak("stopped", EVAL_PERIOD=0) | {"stop_at": 4},
            weak("stopped", EVAL_PERIOD=0),
            weak("handed_over", EVAL_PERIOD=0, MODEL_PARALLEL=2),
        ],
    )
    return folder, results


def assert_close(left, right):
    jax.tree.map(lambda one, two: np.testing.assert_allclose(one, two, **TOLERANCE), left, right)


def test_two_processes_train_what_one_does(world):
    folder, _ = world
    assert_close(params(folder / "together"), params(folder / "alone"))
    alone, together = metrics(folder / "alone"), metrics(folder / "together")
    assert [record["step"] for record in together] == [record["step"] for record in alone]
    for left, right in zip(together, alone, strict=True):
        kinds = ("loss", "accuracy", "eval/", "padding", "gradient", "learning", "model_flops")
        names = {name for name in right if name.startswith(kinds)}
        assert names == names & left.keys()
        for key in names:
            assert left[key] == pytest.approx(right[key], rel=1e-4, abs=1e-6), key


def test_both_choose_the_same_sets_and_each_checkpoint_is_written_once(world):
    folder, (first, second) = world
    assert first[0]["code"] == second[0]["code"] == 0
    assert first[0]["choices"] == second[0]["choices"]
    assert len(first[0]["choices"]) == 8
    assert sorted(os.listdir(folder / "together" / "checkpoints")) == ["4", "8"]
    assert len([record for record in metrics(folder / "together") if "gradient_norm" in record]) == 4
    assert len(list((folder / "together").glob("events.out.tfevents*"))) == 1


def test_sigterm_to_one_stops_both_at_the_same_step_and_they_continue_bit_identical(world):
    folder, (first, second) = world
    assert (first[1]["step"], second[1]["step"]) == (6, 6)
    assert {first[1]["interrupted"], second[1]["interrupted"]} == {"SIGTERM", "another process"}
    assert first[2]["origin"].startswith("resumed from step 6")
    jax.tree.map(np.testing.assert_array_equal, params(folder / "stopped"), params(folder / "together"))


def test_no_process_replaces_the_description_that_another_still_reads(world):
    _, (_, second) = world
    assert second[3]["rewritten"] == [False, False]  # of the two runs that continued


def test_two_processes_continue_what_one_began_on_another_mesh(world):
    folder, (first, _) = world
    assert first[3]["origin"].startswith("resumed from step 4")
    assert first[3]["choices"] == first[0]["choices"][4:]
    assert_close(params(folder / "handed_over"), params(folder / "alone"))


@pytest.mark.long  # `make attack`
def test_whitening_over_two_processes_is_that_of_one(tmp_path):
    rng = np.random.default_rng(0)
    data = write_sets(tmp_path / "rows", {"mlm/en": [packed_row_of(rng, 16) for _ in range(48)]})
    corpus = data, write_vocabulary(tmp_path / "vocab.txt")

    def pretrain(name):
        values = {"TRAIN_STEPS": 2, "WHITENING_ROWS": 40, "EVAL_PERIOD": 0}
        return {"gin": PRETRAIN, "bindings": tiny_bindings(tmp_path / name, *corpus, **values)}

    run_training([PRETRAIN], pretrain("alone")["bindings"])
    run_together(tmp_path, [pretrain("together")])
    alone, together = (params(tmp_path / name, 2) for name in ("alone", "together"))
    np.testing.assert_array_equal(together["pooling_logits"], alone["pooling_logits"])
    assert np.ptp(alone["pooling_logits"]) > 0.1
    heads = [alone["embedding_head"], together["embedding_head"]]
    # Directions of a covariance are known up to their sign: what the head does to distances is compared.
    grams = [np.asarray(head["kernel"]) @ np.asarray(head["kernel"]).T for head in heads]
    np.testing.assert_allclose(grams[1], grams[0], rtol=1e-2, atol=1e-2 * np.abs(grams[0]).max())


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({}, "got --coordinator_address without --num_processes, --process_id"),
        ({"num_processes": 2, "process_id": 2}, "--process_id: got 2, expected a number from 0 to 1"),
    ],
)
def test_options_that_do_not_fit_are_named(more, message):
    with pytest.raises(InputError, match=message):
        processes.join_processes(coordinator_address="host:1", **more)


def test_processes_are_expected_where_the_environment_announces_them(monkeypatch, capsys):
    joined = []
    monkeypatch.setattr(jax.distributed, "initialize", lambda *options: joined.append(options))
    monkeypatch.setattr(jax.config, "update", lambda *_: None)
    assert not processes.join_processes()
    assert joined == []
    for name, value in zip(processes._SLURM_STEP, ("7", "host[0-1]", "2", "0", "0"), strict=True):
        monkeypatch.setenv(name, value)
    processes.join_processes()
    monkeypatch.setenv("SLURM_NTASKS", "1")
    processes.join_processes()
    processes.join_processes(detect=True)
    monkeypatch.setenv("TPU_WORKER_HOSTNAMES", "host0,host1")
    processes.join_processes()
    assert joined == [(None, None, None)] * 3
    processes.join_processes("host:1", 2, 0)  # it may have to wait for minutes
    said = ["what JAX detects"] * 3 + ["host:1"]
    assert capsys.readouterr().err == "".join(
        f"connecting to the other processes by {by}: all must start within five minutes\n" for by in said
    )
