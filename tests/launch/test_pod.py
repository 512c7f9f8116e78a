"""The commands that start a run on several machines."""

import shlex

import pytest
from newsembed.launch import cli, pod

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


@pytest.mark.parametrize("port", ["1", "65535"])
def test_the_first_and_the_last_port_can_be_used(capsys, port):
    assert f"--coordinator_address=a:{port}" in printed(capsys, "--hosts", "a", "--port", port)


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


def test_every_line_of_a_command_and_a_script():
    train = ["--gin_file=a.gin", "--gin.X='b c'"]
    quoted = shlex.join(train)
    assert pod.tpu_command("pod", "z", "p", "newsembed", train) == [
        *("gcloud", "compute", "tpus", "tpu-vm", "ssh", "pod", "--zone=z", "--project=p", "--worker=all"),
        f"--command=newsembed train --detect_processes {quoted}",
    ]
    remote = "newsembed train --coordinator_address=a:9000 --num_processes=1 --process_id=0"
    assert pod.ssh_commands(["a"], 9000, "newsembed", train) == [["ssh", "a", f"{remote} {quoted}"]]
    assert pod.slurm_script(1, 1, "/opt/newsembed", train).splitlines() == [
        "#!/bin/bash",
        "#SBATCH --job-name=newsembed",
        "#SBATCH --nodes=1",
        "#SBATCH --ntasks-per-node=1",
        "#SBATCH --gpus-per-node=1",
        "#SBATCH --signal=TERM@120",
        "#SBATCH --requeue",
        f"srun /opt/newsembed train {quoted}",
    ]


def test_a_host_is_one_word_of_the_remote_command(capsys):
    assert "--coordinator_address='a b;c:65535' --num" in pod.ssh_commands(["a b;c"], 65535, "newsembed", TRAIN)[0][2]


def test_the_options_have_defaults(capsys):
    assert "--coordinator_address=a:9000" in printed(capsys, "--hosts", "a")
    assert "#SBATCH --ntasks-per-node=8" in printed(capsys, "--slurm_nodes", "1").splitlines()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tpu", "pod", "--", *TRAIN], "--zone: got a TPU without its zone"),
        (["--tpu", "", "--zone", "z", "--", *TRAIN], "--tpu: got no name"),
        (["--hosts", "a", "--port", "65536", "--", *TRAIN], "--port: got 65536"),
        (["--hosts", "a", "--port", "0", "--", *TRAIN], "--port: got 0"),
        (["--hosts", "a,a", "--", *TRAIN], "expected different hosts"),
        (["--hosts", "a,,b", "--", *TRAIN], "expected different hosts"),
        (["--slurm_nodes", "1", "--gpus_per_node", "0", "--", *TRAIN], "got 1 nodes of 0 GPUs"),
        (["--hosts", "a,b"], "got no --gin_file"),
        (["--slurm_nodes", "0", "--", *TRAIN], "got 0 nodes"),
        (["--slurm_nodes", "1", "--run", "--", *TRAIN], "never run"),
        (["--hosts", "a", "--zone", "z", "--", *TRAIN], "--zone: is of a TPU, and none is given"),
        (["--slurm_nodes", "1", "--project", "p", "--", *TRAIN], "--project: is of a TPU, and none is given"),
    ],
)
def test_what_does_not_fit_is_named(capsys, options, message):
    assert cli.main(["launch", *options]) == 2
    assert message in capsys.readouterr().err
