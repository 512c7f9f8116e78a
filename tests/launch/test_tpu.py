"""A run on a TPU slice, with a stand-in for gcloud that keeps slices and runs what hosts would run."""

import json
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from json_lines import read_rows
from newsembed.launch import cli, tpu

# Its folder has state.json, the state of the slice, and a home folder for each host.
GCLOUD = """
import json, os, pathlib, signal, subprocess, sys
here = pathlib.Path(__file__).parent
words, state = sys.argv[1:], here / "state.json"
with (here / "calls").open("a") as log:
    log.write(json.dumps(words) + "\\n")
if words[0] == "storage":
    source, target = pathlib.Path(os.path.expanduser(words[-2].removeprefix("gs://"))), pathlib.Path(words[-1])
    target = target / source.name if target.is_dir() else target
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(source.read_bytes())
    sys.exit()
action = words[3]
if action == "create":
    state.write_text(json.dumps("PROVISIONING"))
elif action == "describe":
    if not state.exists():
        sys.exit("NOT_FOUND: no such request")
    found = json.loads(state.read_text())
    print(json.dumps({"state": {"state": found}}))
    if found == "PROVISIONING":
        state.write_text(json.dumps("ACTIVE"))
elif action == "delete":
    state.unlink()
    for home in here.glob("host*"):
        subprocess.run(["rm", "-rf", home])
elif action == "scp":
    for number in range(2):
        (here / f"host{number}").mkdir(exist_ok=True)
        (here / f"host{number}" / pathlib.Path(words[4]).name).write_bytes(pathlib.Path(words[4]).read_bytes())
elif action == "ssh":
    if (here / "unreachable").exists():
        (here / "unreachable").unlink()
        sys.exit("connection lost")
    if json.loads(state.read_text()) != "ACTIVE":
        sys.exit("the node is not there")
    script = next(word for word in words if word.startswith("--command=")).partition("=")[2]
    for number in range(2):
        home = here / f"host{number}"
        home.mkdir(exist_ok=True)
        environment = {**os.environ, "HOME": str(home), "HOST": f"w-{number}"}
        done = subprocess.run(["bash", "-c", script], env=environment, cwd=home, capture_output=True, text=True)
        print(done.stdout, end="")
        if done.returncode:
            sys.exit(done.stderr or "failed")
"""
PROGRAMS = {
    "hostname": "echo $HOST",
    "sudo": 'exec "$@"',
    "pip": '[ ! -e "$STANDIN/no_pip" ]',
    # It installs a wheel that is there.
    "uv": """
for last; do :; done; echo "$last" >> $STANDIN/installed
file=${last##*file://}; [ "$file" = "$last" ] || cat $file""",
    "systemd-run": """
while [[ $1 = --* ]]; do shift; done
setsid "$@" < /dev/null > /dev/null 2>&1 &
echo $! > $HOME/unit""",
    # A process that has ended may stay a zombie: the first one of a container need not wait for it.
    "systemctl": """
unit=$(cat $HOME/unit 2> /dev/null)
runs() { [[ -n "$unit" && "$(ps -o stat= -p $unit)" = [^Z]* ]]; }
if [ "$1" = stop ]; then kill -TERM -- -$unit; while runs; do sleep 0.05; done; exit; fi
runs && state=active || state=inactive
[ "$2" = --quiet ] || echo $state
[ $state = active ]""",
    # Both hosts count to 6 in steps that they save.
    "newsembed": """
trap 'echo saved; exit 143' TERM
[ -e "$STANDIN/fail-$HOST" ] && { echo it is broken; exit 3; }
for step in 1 2 3 4 5 6; do
  [ -e "$STANDIN/saved-$HOST-$step" ] && continue
  sleep $([ -e "$STANDIN/slow" ] || [ -e "$STANDIN/slow-$HOST" ] && echo 30 || echo 0.1) & wait $!
  echo "$HOST $step" >> "$STANDIN/steps"; touch "$STANDIN/saved-$HOST-$step"
done""",
}
# Both hosts train, with four devices each; the stand-in for a slice has no way to let them find each other.
TRAINER = f"""
shift 2
export XLA_FLAGS=--xla_force_host_platform_device_count=4 JAX_PLATFORMS=cpu
exec {sys.executable} -m newsembed train --coordinator_address=localhost:$(cat "$STANDIN/port") --num_processes=2 \\
    --process_id=${{HOST#w-}} "$@"
"""
RUN = ["launch", "tpu", "run", "news", "--zone=z", "--type=v4-16", f"--install={__file__}", "--poll_seconds=0.2"]
PATHS = [f"--gin.{name}='x'" for name in ("MODEL_DIR", "DATA_DIR", "VOCABULARY_PATH")]
TRAIN = ["--", "--gin_file=runs/pretrain_paper.gin", *PATHS]


def kill(unit):
    subprocess.run(["bash", "-c", f"kill -KILL -- -{unit.read_text().strip()}"], capture_output=True, check=False)


def when(path, action):
    """A thread that waits for a file and then acts."""

    def wait():
        while not path.exists():
            time.sleep(0.02)
        action()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


ALL_STEPS = {f"{host} {step}" for host in ("w-0", "w-1") for step in range(1, 7)}


@pytest.fixture
def cloud(tmp_path, monkeypatch):
    """The folder of the stand-in."""
    for name, text in {**PROGRAMS, "gcloud": f'exec {sys.executable} "$STANDIN/gcloud.py" "$@"'}.items():
        path = tmp_path / name
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)
    (tmp_path / "gcloud.py").write_text(GCLOUD)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("STANDIN", str(tmp_path))
    yield tmp_path
    for unit in tmp_path.glob("host*/unit"):
        kill(unit)


def trained_while(path, action):
    """The exit code of a run; the action is done when the path is there."""
    thread = when(path, action)
    code = cli.main([*RUN, "--yes", *TRAIN])
    thread.join()
    return code


def calls(cloud):
    return [words[3] for words in read_rows(cloud / "calls") if words[0] == "compute" and words[3] != "describe"]


def test_a_run_asks_for_a_slice_trains_on_all_hosts_and_keeps_their_logs(cloud):
    assert cli.main([*RUN, "--yes", "--spot", f"--logs={cloud}/logs", *TRAIN]) == 0
    assert set((cloud / "steps").read_text().splitlines()) == ALL_STEPS
    assert len((cloud / "steps").read_text().splitlines()) == len(ALL_STEPS)
    assert {path.name for path in (cloud / "logs").iterdir()} == {"w-0.log", "w-1.log"}
    assert cli.main(["launch", "tpu", "down", "news", "--zone=z"]) == 0
    assert not (cloud / "state.json").exists()


def test_a_slice_that_is_taken_away_is_asked_for_again_and_the_run_goes_on(cloud, capsys):
    def take_away():
        (cloud / "state.json").write_text(json.dumps("SUSPENDED"))
        for unit in cloud.glob("host*/unit"):
            kill(unit)

    assert trained_while(cloud / "saved-w-0-2", take_away) == 0
    assert "taken away" in capsys.readouterr().err
    assert calls(cloud).count("create") == 2
    assert set((cloud / "steps").read_text().splitlines()) == ALL_STEPS


def test_a_host_that_fails_stops_the_others_and_its_code_and_log_are_shown(cloud, ended, printed):
    (cloud / "slow").touch()
    (cloud / "fail-w-1").touch()
    said = ended(3, *RUN, "--yes", *TRAIN).err
    assert "it is broken" in said
    assert "w-1 ended with 3; the other hosts were stopped" in said
    assert "saved" in (cloud / "host0/newsembed-train.log").read_text()
    status = printed("launch", "tpu", "status", "news", "--zone=z").splitlines()
    assert status == ["news: ACTIVE", "  w-0: ended with 143", "  w-1: ended with 3"]
    assert "== w-1\nit is broken" in printed("launch", "tpu", "logs", "news", "--zone=z")


def test_a_host_that_was_restarted_goes_on_with_the_others_on_the_same_slice(cloud, capsys):
    def restart():
        (cloud / "host1/newsembed-train.boot").write_text("another\n")
        kill(cloud / "host1/unit")
        (cloud / "slow-w-0").unlink()

    (cloud / "slow-w-0").touch()  # it waits for the other
    assert trained_while(cloud / "saved-w-1-2", restart) == 0
    said = capsys.readouterr().err
    assert "w-1 no run" in said
    assert "a host of it was restarted" in said
    assert calls(cloud).count("create") == 1
    assert set((cloud / "steps").read_text().splitlines()) == ALL_STEPS


def test_a_run_that_was_killed_ends_the_others(cloud, capsys):
    (cloud / "slow").touch()
    assert trained_while(cloud / "host1/newsembed-train.log", lambda: kill(cloud / "host1/unit")) == 1
    assert "w-1 was killed; the other hosts were stopped" in capsys.readouterr().err


def test_a_command_that_comes_back_starts_all_hosts_again_where_one_has_ended(cloud, monkeypatch):
    def watch(*_):  # this machine is switched off, and one host ends
        while not (cloud / "host1/newsembed-train.code").exists():
            time.sleep(0.02)
        raise KeyboardInterrupt

    for name in ("slow-w-0", "fail-w-1"):
        (cloud / name).touch()
    with monkeypatch.context() as patch:
        patch.setattr(tpu, "_watch", watch)
        assert cli.main([*RUN, "--yes", *TRAIN]) == 130
    unit = (cloud / "host0/unit").read_text()
    for name in ("slow-w-0", "fail-w-1"):
        (cloud / name).unlink()
    assert cli.main([*RUN, "--yes", *TRAIN]) == 0
    assert (cloud / "host0/unit").read_text() != unit
    assert calls(cloud).count("create") == 1


@pytest.mark.parametrize("where", ["here", "gs://"])
def test_a_wheel_is_installed_on_all_hosts(cloud, where):
    wheel = cloud / "newsembed-1-py3-none-any.whl"
    wheel.write_text("content\n")
    path = str(wheel) if where == "here" else f"gs://{wheel}"
    assert cli.main(["launch", "tpu", "up", "a", "--zone=z", "--type=t", "--yes", f"--install={path}", RUN[-1]]) == 0
    wanted = [f"newsembed[train,tpu,gcs] @ file://{cloud}/host{number}/{wheel.name}" for number in range(2)]
    assert (cloud / "installed").read_text().splitlines() == wanted


def test_the_hosts_of_a_slice_that_is_not_there_are_not_asked(cloud, printed):
    assert printed("launch", "tpu", "status", "news", "--zone=z") == "news: not there\n"
    assert "ssh" not in calls(cloud)


def test_a_lost_connection_ends_nothing(cloud):
    assert trained_while(cloud / "saved-w-0-1", (cloud / "unreachable").touch) == 0
    assert calls(cloud).count("create") == 1


def test_money_is_spent_only_if_that_is_said(cloud, refused):
    assert "--yes: 1 x v4-16 costs money" in refused(*RUN, *TRAIN)
    assert calls(cloud) == []


def test_mistyped_options_of_the_training_are_refused_before_money_is_spent(cloud, capsys, refused):
    assert "TRAIN_STEP: got a key that nothing uses" in refused(*RUN, "--yes", *TRAIN, "--gin.TRAIN_STEP=3")
    assert "VOCABULARY_PATH: the key is required" in refused(*RUN, "--yes", *TRAIN[:-1])
    with pytest.raises(SystemExit, match="2"):
        cli.main([*RUN, "--yes", *TRAIN, "--num_process=2"])
    assert "did you mean --num_processes" in capsys.readouterr().err
    assert not (cloud / "calls").exists()


def test_an_installation_that_fails_ends_the_command(cloud, refused):
    (cloud / "no_pip").touch()
    assert "gcloud: `gcloud compute tpus tpu-vm ssh news" in refused(*RUN, "--yes", *TRAIN)


def test_several_slices_are_one_request(cloud, printed):
    lines = printed(*RUN, "--num_slices=2", "--print", *TRAIN).splitlines()
    assert "--node-count=2 --node-prefix=news" in lines[0]
    assert [line.split()[5] for line in lines if " ssh " in line] == ["news-0", "news-1"] * 2
    assert not (cloud / "calls").exists()


@pytest.mark.long  # `make attack`
def test_a_preempted_run_of_two_hosts_ends_with_the_parameters_of_an_undisturbed_one(cloud, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "learning")
    import jax
    import numpy as np
    from toy_corpus import saved_params, tiny_bindings, write_corpus, write_vocabulary

    (cloud / "newsembed").write_text(f"#!/bin/bash\n{TRAINER}")
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        (cloud / "port").write_text(str(probe.getsockname()[1]))
    data, vocabulary = write_corpus(cloud / "data"), write_vocabulary(cloud / "vocab.txt")

    def train(name):
        bindings = tiny_bindings(cloud / name, data, vocabulary, TRAIN_STEPS=60)
        options = [f"--gin.{one}" for one in bindings]
        return cli.main(
            [*RUN, "--yes", "--", "--gin_file=runs/train_demo.gin", *options, "--gin.INITIAL_CHECKPOINT_PATH=None"]
        )

    def take_away():
        (cloud / "state.json").write_text(json.dumps("SUSPENDED"))
        for unit in cloud.glob("host*/unit"):
            kill(unit)

    assert train("undisturbed") == 0
    thread = when(cloud / "preempted/checkpoints/8/params", take_away)
    assert train("preempted") == 0
    thread.join()
    assert calls(cloud).count("create") == 2
    log = (cloud / "host0/newsembed-train.log").read_text()
    assert "resumed from step" in log
    one, other = (saved_params(cloud / name, 60) for name in ("undisturbed", "preempted"))
    for (path, left), right in zip(jax.tree_util.tree_leaves_with_path(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(left, right, err_msg=str(path))
