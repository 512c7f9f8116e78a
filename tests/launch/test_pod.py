"""The commands that start a run on several machines."""

import os
import shlex
import subprocess
import time

import pytest
from newsembed.launch import cli

PATHS = ["--gin.DATA_DIR='d'", "--gin.VOCABULARY_PATH='v'"]
TRAIN = ["--gin_file=runs/pretrain_paper.gin", '--gin.MODEL_DIR="/mnt/a model"', *PATHS]


@pytest.fixture
def launched(printed):
    """What `newsembed launch` prints with these options."""
    return lambda *options: printed("launch", *options, "--", *TRAIN)


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Writes a program that is found before others."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    def write(name, text):
        path = tmp_path / name
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)
        return path

    return write


def test_every_host_gets_its_number_and_the_first_one_s_address(launched):
    lines = launched("hosts", "run", "me@gpu0,gpu1", "--port", "7000", "--print").splitlines()
    assert [shlex.split(line)[:3] for line in lines] == [["ssh", "-tt", "me@gpu0"], ["ssh", "-tt", "gpu1"]]
    for number, line in enumerate(lines):
        remote = shlex.split(shlex.split(line)[3])
        assert remote[2:] == ["--coordinator_address=gpu0:7000", "--num_processes=2", f"--process_id={number}", *TRAIN]


@pytest.mark.parametrize("port", ["1", "65535"])
def test_the_first_and_the_last_port_can_be_used(launched, port):
    assert f"--coordinator_address=a:{port}" in launched("hosts", "run", "a", "--port", port, "--print")


@pytest.mark.parametrize(("end", "code"), [("exit 7", 7), ("kill -KILL $$", 137)])
def test_a_host_that_fails_ends_the_others_with_its_code(programs, end, code):
    programs("ssh", f'if [ "$2" = b ]; then {end}; fi; exec sleep 60')
    started = time.monotonic()
    assert cli.main(["launch", "hosts", "run", "a,b", "--", *TRAIN]) == code
    assert time.monotonic() - started < 30


def test_all_hosts_that_end_well_end_well(programs):
    programs("ssh", "exit 0")
    assert cli.main(["launch", "hosts", "run", "a,b", "--", *TRAIN]) == 0


def slurm(launched, tmp_path):
    script = tmp_path / "train.sbatch"
    script.write_text(launched("slurm", "print", "4", "--gpus_per_node", "2", "--time_limit", "24:00:00"))
    return script


def test_a_slurm_script_runs_one_process_per_gpu(launched, tmp_path):
    lines = slurm(launched, tmp_path).read_text().splitlines()
    assert lines[0] == "#!/bin/bash"
    wanted = {"--nodes=4", "--ntasks-per-node=2", "--signal=B:USR1@120", "--time=24:00:00"}
    assert {f"#SBATCH {option}" for option in wanted} <= set(lines)
    assert ["srun", "--kill-on-bad-exit=1", "newsembed", "train", *TRAIN, "&"] in [
        shlex.split(line) for line in lines if line.startswith("srun")
    ]


@pytest.mark.parametrize(("train", "code", "again"), [("exit 0", 0, False), ("exit 3", 3, False), ("", 0, True)])
def test_a_slurm_job_goes_into_the_queue_again_only_before_its_time_limit(
    programs, launched, tmp_path, train, code, again
):
    programs("srun", train or f"trap 'touch {tmp_path}/saved; exit 143' TERM; touch {tmp_path}/up; sleep 60 & wait")
    programs("scontrol", f'echo "$@" > {tmp_path}/requeued')
    environment = {**os.environ, "SLURM_JOB_ID": "17"}
    with subprocess.Popen(["bash", slurm(launched, tmp_path)], env=environment) as job:
        if again:
            while not (tmp_path / "up").exists():
                time.sleep(0.05)
            job.send_signal(10)  # SIGUSR1
        assert job.wait(30) == code
    assert (tmp_path / "requeued").exists() == (tmp_path / "saved").exists() == again
    assert not again or (tmp_path / "requeued").read_text() == "requeue 17\n"


def test_a_manifest_of_gke_has_a_job_for_each_slice_and_a_pod_for_each_host(launched):
    import yaml

    options = [
        "--image=i",
        "--type=tpu-v5p-slice",
        "--topology=2x2x4",
        "--hosts_per_slice=4",
        "--num_slices=2",
        "--spot",
    ]
    spec = yaml.safe_load(launched("gke", "print", "news", *options))["spec"]
    jobs = spec["replicatedJobs"]
    assert [job["replicas"] for job in jobs] == [2]
    job = jobs[0]["template"]["spec"]
    assert (job["parallelism"], job["completions"]) == (4, 4)
    # Bad input fails again: all pods are started again after other failures only.
    (rule,) = job["podFailurePolicy"]["rules"]
    assert (rule["action"], rule["onExitCodes"]) == ("FailJob", {"operator": "In", "values": [2]})
    (rule,) = spec["failurePolicy"]["rules"]
    assert (rule["action"], rule["onJobFailureReasons"]) == ("FailJobSet", ["PodFailurePolicy"])
    pod = job["template"]["spec"]
    assert pod["nodeSelector"]["cloud.google.com/gke-spot"] == "true"
    (container,) = pod["containers"]
    assert container["resources"]["limits"] == {"google.com/tpu": 4}
    assert shlex.split(container["command"][2]) == ["newsembed", "train", "--detect_processes", *TRAIN]


def test_a_gin_file_of_the_other_machines_is_not_checked(capsys):
    assert cli.main(["launch", "hosts", "run", "a", "--print", "--", "--gin_file=theirs.gin", "--gin.NEW=1"]) == 0
    assert "theirs.gin is not here" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["hosts", "run", "a", "--port", "65536", "--", *TRAIN], "--port: got 65536"),
        (["hosts", "up", "a", "--", *TRAIN], "ACTION: hosts has no action up\n  remedy: choose run"),
        (["hosts", "run", "a,b"], "got no --gin_file"),
        (["slurm", "print", "0", "--", *TRAIN], "TARGET: got '0' nodes"),
        (["moon", "run", "a", "--", *TRAIN], "PLACE: got moon"),
        (["tpu", "up", "a"], "--zone: tpu up needs it"),
        (["tpu", "up", "a", "--zone=z", "--type=t"], "--install: not a file here or on gs://"),
        (["gke", "print", "a", "--type", "t", "--", *TRAIN], "--image: gke print needs it"),
    ],
)
def test_what_does_not_fit_is_named(refused, options, message):
    assert message.replace("PLACE", "--place") in refused("launch", *options)
