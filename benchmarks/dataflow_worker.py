"""All jobs by workers that have what a job stages for Dataflow, and nothing else: the same records as the local runner?

    python benchmarks/dataflow_worker.py --demo demo-output --output build/dataflow-worker

It makes a virtual environment as a worker of Dataflow does when it starts: Beam, then the requirements and the packages
that Beam's stager takes from the options of the job. Its processes are the workers of Prism, Beam's runner in Go, which
``go install`` builds. The crawl of the demo is built there and on the local runner, with `bitext`, `translations`,
`pairs` and `categories`, and the newsroom is crawled again; the table compares counts and digests of files.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.stager import Stager
from newsembed.beam_pipelines import dataflow
from newsembed.benchmarks import engines
from newsembed.formats.manifest import read_manifest
from newsembed.newsroom import NewsroomServer


def make_environment(output: Path) -> tuple[str, dict[str, str]]:
    """A Python with what Dataflow's workers install; returns its path, and environment variables for it."""
    folder = output / "environment"
    python = f"{folder}/bin/python"
    hidden = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    variables = hidden | {"PATH": f"{folder}/bin:{os.environ['PATH']}"}
    if (output / "installed").exists():
        return python, variables
    venv.create(folder, with_pip=True, clear=True)
    pip = [python, "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, f"apache-beam=={beam.version.__version__}"], env=variables, check=True)
    wheel, requirements = dataflow.write(f"{output}/packages", (*dataflow.JOBS, "jax"))
    options = [f"--requirements_file={requirements}", "--requirements_cache=skip", f"--extra_package={wheel}"]
    (output / "staged").mkdir(exist_ok=True)
    resources = Stager.create_job_resources(PipelineOptions(options), f"{output}/staged")
    staged = [
        beam.portability.api.beam_runner_api_pb2.ArtifactFilePayload.FromString(one.type_payload) for one in resources
    ]
    for payload in staged:  # the list of packages (extra_packages.txt) is for the boot program
        if payload.path.endswith("requirements.txt"):
            subprocess.run([*pip, "--requirement", payload.path], env=variables, check=True)
    for payload in staged:
        if payload.path.endswith(".whl"):
            subprocess.run([*pip, payload.path], env=variables, check=True)
    subprocess.run([python, "-m", "newsembed.beam_pipelines.dataflow"], env=variables, cwd=output, check=True)
    (output / "installed").touch()
    return python, variables


def run_jobs(demo: str, output: str, beam_args: Sequence[str]) -> list[str]:
    """Runs all jobs; returns their folders."""
    args = argparse.Namespace(demo=demo, bitext_encoder=f"model:{demo}/work/trained")
    clean, vocabulary = f"--articles={output}/clean", f"--vocabulary={output}/vocabulary"
    alone = {"pairs": ["--of=titles", clean, vocabulary], "categories": [clean]}
    with NewsroomServer(f"{demo}/newsroom") as server, open(f"{output}.log", "a", encoding="utf-8") as log:
        crawl = ["--seeds", f"{demo}/newsroom/seeds.txt", f"--resolve=*.example=127.0.0.1:{server.port}"]
        commands = [
            engines.build_command(args, output, beam_args),
            engines.translations_command(demo, output, beam_args),
        ]
        for job, options in {**alone, "crawl": [*crawl, "--delay_seconds=0", "--allow_private_addresses"]}.items():
            command = [sys.executable, "-m", "newsembed", job, *options, f"--output={output}/{job}"]
            commands.append([*command, *beam_args])
        for command in commands:
            print(" ".join(command[2:5]), flush=True)
            subprocess.run(command, stdout=log, stderr=log, check=True)
    return [*engines.jobs_of({"": output}), *alone, "crawl"]


def _is_compared(job: str, name: str) -> bool:
    """A crawl has the time in its files. Scores of an encoder differ in the last digit with the number of threads."""
    return job != "crawl" and (job != "bitext" or name.startswith("pairs/"))


def main() -> int:
    """Prints the table; returns 1 if a job differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--demo", required=True, help="output folder of `newsembed demo`")
    parser.add_argument("--output", required=True, help="folder for the environment and the results")
    args = parser.parse_args()
    output = Path(args.output).absolute()
    output.mkdir(parents=True, exist_ok=True)
    python, variables = make_environment(output)
    local, remote = f"{output}/local", f"{output}/workers"
    jobs = run_jobs(args.demo, local, [])
    with contextlib.ExitStack() as stack:
        port = engines.free_port()
        stack.enter_context(engines.started(engines.prism_command(output, port), port, output / "prism.log"))
        workers, _ = engines.start_pool(output, stack, python, variables)
        run_jobs(args.demo, remote, ["--runner=PortableRunner", f"--job_endpoint=localhost:{port}", *workers])
    differing = 0
    print("| job | files | equal |\n|---|--:|---|")
    for job in jobs:
        one, other = read_manifest(f"{local}/{job}"), read_manifest(f"{remote}/{job}")
        equal = one["counts"] == other["counts"] and all(
            one["sha256"][name] == other["sha256"].get(name) for name in one["sha256"] if _is_compared(job, name)
        )
        differing += not equal
        print(f"| {job} | {len(one['sha256'])} | {'yes' if equal else 'NO'} |")
    print(f"{len(jobs)} jobs, {differing} differ")
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())
