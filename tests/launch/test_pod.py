"""The commands that start a run on several machines."""

import shlex

import pytest
from newsembed.launch import cli

TRAIN = ["--gin_file=runs/pretrain_paper.gin", '--gin.MODEL_DIR="/mnt/a model"']


def printed(capsys, *options):
    assert cli.main(["launch", *options, "--", *TRAIN]) == 0
    return capsys.readouterr().out


def test_a_tpu_slice_gets_one_command_for_all_hosts(capsys):
    command = shlex.split(printed(capsys, "--tpu", "pod", "--zone", "us-central2-b", "--program", "/opt/newsembed"))
    assert command[:7] == ["gcloud", "compute", "tpus", "tpu-vm", "ssh", "pod", "--zone=us-central2-b"]
    assert command[7] == "--worker=all"
    remote = shlex.split(command[8].removeprefix("--command="))
    assert remote == ["/opt/newsembed", "train", "--detect_processes", *TRAIN]


def test_every_host_gets_its_number_and_the_first_one_s_address(capsys):
    lines = printed(capsys, "--hosts", "me@gpu0,gpu1", "--port", "7000").splitlines()
    assert [shlex.split(line)[:2] for line in lines] == [["ssh", "me@gpu0"], ["ssh", "gpu1"]]
    for number, line in enumerate(lines):
        remote = shlex.split(shlex.split(line)[2])
        assert remote[2:] == ["--coordinator_address=gpu0:7000", "--num_processes=2", f"--process_id={number}", *TRAIN]


def test_a_slurm_script_runs_one_process_per_gpu_and_asks_for_time_to_save(capsys):
    lines = printed(capsys, "--slurm_nodes", "4", "--gpus_per_node", "2").splitlines()
    assert lines[0] == "#!/bin/bash"
    assert {"#SBATCH --nodes=4", "#SBATCH --ntasks-per-node=2", "#SBATCH --signal=TERM@120"} <= set(lines)
    assert shlex.split(lines[-1]) == ["srun", "newsembed", "train", *TRAIN]


def test_run_performs_the_commands_and_returns_the_highest_code(capsys, tmp_path, monkeypatch):
    ssh = tmp_path / "ssh"
    ssh.write_text('#!/bin/sh\necho "$1" >> "$0.log"\n[ "$1" = a ]\n')
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert cli.main(["launch", "--hosts", "a,b", "--run", "--", *TRAIN]) == 1
    assert sorted((tmp_path / "ssh.log").read_text().split()) == ["a", "b"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tpu", "pod", "--", *TRAIN], "--zone: got a TPU without its zone"),
        (["--hosts", "a,a", "--", *TRAIN], "expected different hosts"),
        (["--hosts", "a,b"], "got no --gin_file"),
        (["--slurm_nodes", "0", "--", *TRAIN], "got 0 nodes"),
        (["--slurm_nodes", "1", "--run", "--", *TRAIN], "never run"),
    ],
)
def test_what_does_not_fit_is_named(capsys, options, message):
    assert cli.main(["launch", *options]) == 2
    assert message in capsys.readouterr().err
