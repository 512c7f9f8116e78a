"""`newsembed dataflow`: files for workers, and the commands that follow."""

import sys

import apache_beam


def test_an_image_has_the_libraries_and_a_check_of_them(tmp_path, printed):
    said = printed("dataflow", "image", "--output", f"{tmp_path}/image", "--name", "registry/news:3")
    assert f"docker build --platform=linux/amd64 --tag registry/news:3 {tmp_path}/image" in said
    assert "--sdk_container_image=registry/news:3" in said
    lines = (tmp_path / "image/Dockerfile").read_text().splitlines()
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert f"FROM apache/beam_python{version}_sdk:{apache_beam.__version__}" in lines
    copied = {name for line in lines if line.startswith("COPY") for name in line.split()[1:-1]}
    assert copied == {path.name for path in (tmp_path / "image").iterdir()} - {"Dockerfile"}
    assert lines[-1].endswith("python -m newsembed.beam_pipelines.dataflow")


def test_a_relative_output_is_below_the_working_directory(tmp_path, printed, monkeypatch):
    monkeypatch.chdir(tmp_path)
    printed("dataflow", "packages", "--output", "packages")
    assert [path.name for path in (tmp_path / "packages").glob("*.whl")]


def test_an_unknown_extra_is_refused(refused, tmp_path):
    shown = refused("dataflow", "image", "--output", f"{tmp_path}/image", "--extras", "jxa")
    assert "--extras: got jxa, expected one of jax, tensorflow, translate, aws" in shown


def test_packages_are_given_to_a_job(tmp_path, printed):
    said = printed("dataflow", "packages", "--output", str(tmp_path), "--extras", "jax")
    assert f"--requirements_file={tmp_path}/requirements.txt" in said
    listed = (tmp_path / "requirements.txt").read_text()
    assert "\njax==" in listed
    assert "\ngcsfs==" in listed  # what opens gs://
