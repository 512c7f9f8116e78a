"""What training and serving need of formats and tasks comes without TensorFlow and Beam."""

import subprocess
import sys

MODULES = (
    "formats.articles",
    "formats.jsonl",
    "formats.manifest",
    "formats.records",
    "formats.tfrecords",
    "formats.tfrecords",
    "formats.vocabulary",
    "tasks.registry",
    "tasks.vocabulary",
)


def test_reading_imports_neither_tensorflow_nor_beam():
    code = "".join(f"import newsembed.{name}\n" for name in MODULES)
    code += "import sys; print(*sorted({'tensorflow', 'apache_beam', 'seqio', 'jax'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
