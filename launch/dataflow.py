"""``newsembed dataflow``: prepares what the workers of Dataflow install, and prints the commands that follow.

Example::

    newsembed dataflow image --name europe-docker.pkg.dev/PROJECT/news/newsembed:1 --output image
    newsembed dataflow packages --output packages

``image`` writes the folder of a container image: Beam's own image, this package, and the libraries of all jobs in the
versions that are installed here. Workers start in a minute and need no package index. Without an image, each job stages
this package and its list of libraries by itself, and each worker installs them when it starts, in about three minutes;
``packages`` writes the two files, to be read or changed.
"""

import dataclasses
import sys
from pathlib import Path

import apache_beam

from ..beam_pipelines import dataflow
from ..formats.command_line import Options, option, required
from ..formats.files import packaged


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataflowOptions(Options):
    """Options of ``newsembed dataflow``."""

    what: str = required("what to write", choices=("image", "packages"), positional=True)
    output: str = required("folder to write to", metavar="DIR")
    name: str = option("REGISTRY/newsembed:1", "the image in a registry", metavar="NAME:TAG")
    extras: tuple[str, ...] = option(
        (), "of jobs with an encoder, or translations", many=True, choices=("jax", "tensorflow", "translate", "aws")
    )


OPTIONS = DataflowOptions


def run(options: DataflowOptions) -> int:
    """Writes the folder."""
    wheel, requirements = dataflow.write(options.output, (*dataflow.JOBS, *options.extras))
    if options.what == "packages":
        needed = f"--requirements_file={requirements} --requirements_cache=skip --extra_package={wheel}"
        print(f"a job on Dataflow stages such files by itself; to give your own:\n  newsembed JOB … {needed}")
        return 0
    names = {"requirements": Path(requirements).name, "wheel": Path(wheel).name, "beam": apache_beam.__version__}
    text = packaged(__package__, "dockerfile.txt").format(python="{}.{}".format(*sys.version_info), **names)
    (Path(options.output) / "Dockerfile").write_text(text, encoding="utf-8")
    print(f"""to build the image and push it:
  docker build --platform=linux/amd64 --tag {options.name} {options.output} && docker push {options.name}
or, without Docker here:
  gcloud builds submit --tag {options.name} {options.output}
then run jobs with
  newsembed JOB … --runner=DataflowRunner --region=… --sdk_container_image={options.name} --sdk_location=container""")
    return 0
