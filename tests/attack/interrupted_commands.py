"""The commands that are disturbed, with the sources that they read and what each of them publishes."""

import json
import shlex
import subprocess
import sys

import golden_commands
from interrupted import Command, sha256

ONE = "--direct_num_workers=1"
SIZES = {"num_layers": 1, "hidden_size": 16, "mlp_size": 32, "embedding_size": 16, "max_length": 32}
LENGTHS = dict.fromkeys(("anchor_tokens", "positive_tokens", "negative_tokens", "tokens"), 24) | {"topic_ids": 8}
OPTIONS = {
    "vocabulary": "--size=600",
    "pack": "--max_length=32 --bitext {at}/newsroom/bitext.tsv",
    "examples": "--max_length=24 --augmentations_per_triplet=1",
    "clean": "--require_author=true",
}


def training(run, output, data, **macros):
    """A training of six steps with three checkpoints."""
    values = {
        "MODEL_DIR": output,
        "DATA_DIR": data,
        "VOCABULARY_PATH": "{at}/work/vocabulary/vocab.txt",
        "TRAIN_STEPS": 6,
        "CHECKPOINT_PERIOD": 2,
        "LOG_PERIOD": 2,
        "BATCH_SIZE": 8,
        "WARMUP_STEPS": 2,
        "WHITENING_ROWS": 0,
        "TASK_FEATURE_LENGTHS": {"tokens": 24} if "pretrain" in run else LENGTHS,
        **{f"EncoderConfig.{name}": value for name, value in SIZES.items()},
        **macros,
    }
    return (
        "train",
        f"--gin_file=runs/{run}.gin",
        *(f"--gin.{name}={json.dumps(value)}" for name, value in values.items()),
    )


def run(at, words):
    """Runs a command that makes a source."""
    given = [word.replace("{at}", str(at)) for word in (shlex.split(words) if isinstance(words, str) else words)]
    done = subprocess.run([sys.executable, "-m", "newsembed", *given], check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"{given}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"


def built(at):
    """The newsroom, its build, a model, articles of two days, and an archive of the first."""
    run(at, "newsroom --output {at}/newsroom --scale=0.06")
    golden_commands.write_warcs(at / "newsroom", at / "warc")
    options = " ".join(
        f"--{job}.{word.removeprefix('--')}"
        for job, words in OPTIONS.items()
        for word in words.partition(" --bitext")[0].split()
    )
    run(at, f"build --warc {{at}}/warc/*.warc --bitext {{at}}/newsroom/bitext.tsv --output {{at}}/work {options} {ONE}")
    run(at, training("pretrain_demo", "{at}/model", "{at}/work/pack"))
    from newsembed.formats import parquet
    from newsembed.formats.articles import read_articles
    from newsembed.formats.records import Article

    articles = sorted(read_articles(str(at / "work/clean/articles")), key=lambda one: one.doc_id)
    assert articles
    whole = list(parquet.read_stream(str(at / "work/clean/articles"), Article))
    for name, part in (("first", whole[:40]), ("second", whole[40:80])):
        parquet.write_shard(str(at / f"{name}.parquet"), part, Article)
    run(at, UPDATE.replace("{out}", "{at}/archive").replace("second", "first"))


UPDATE = "update --archive {out} --encoder=model:{at}/model --articles {at}/second.parquet --clean.min_words=20"
LIFT = (
    "lift --start {at}/model --work {at}/work --output {out} --words_steps=2 --train_steps=2 --batch_size=4 "
    "--train_length=8 --context_length=24 --max_length=32 --projection_size=8 --gin CHECKPOINT_PERIOD=1"
)


def commands_of(at):
    """All commands, the cheap ones first."""
    from newsembed.beam_pipelines.workflow import STEPS

    jobs = []
    for step in STEPS:
        if step.job == "bitext":
            continue  # below, with an encoder
        words = [step.job, "--output", "{out}", ONE, *OPTIONS.get(step.job, "").split()]
        for name, source in step.inputs.items():
            if not source.startswith("@"):
                words += [f"--{name}", f"{{at}}/work/{source.partition('+')[0]}"]
        words += ["--warc", *sorted(map(str, at.glob("warc/*.warc")))] if step.job == "extract" else []
        jobs.append(Command(step.job, tuple(word for word in words if "@" not in word), job))
    bitext = "bitext --articles {at}/work/clean --vectors {at}/work/vectors --encoder=model:{at}/model --output {out}"
    folder, read = ("--output", "{out}"), ("--model={at}/model", "--input={at}/first.parquet")
    trained = training("train_demo", "{out}", "{at}/work/examples", INITIAL_CHECKPOINT_PATH="{at}/model")
    return [
        *jobs,
        Command("bitext", (*bitext.split(), ONE), job),
        Command("embed", ("embed", *read, "--output={out}/a.parquet"), files),
        Command("embed to a folder", ("embed", *read, *folder), vectors),
        Command("index", ("index", *read, *folder), archive),
        Command("update", tuple(UPDATE.split()), archive, at / "archive"),
        Command("export, safetensors", ("export", "--model={at}/model", "--format=safetensors", *folder), whole),
        Command("export, SavedModel", ("export", "--model={at}/model", *folder), whole),
        Command("train", trained, model),
        Command("distil", tuple("distil --model {at}/model --output {out} --size=8 --max_length=32".split()), study),
        Command("lift", tuple(LIFT.split()), study),
    ]


def files(out):
    """Digests of files; what is temporary has a name that says so."""
    found = {str(path.relative_to(out)): path for path in sorted(out.rglob("*")) if path.is_file()}
    return {
        name: sha256(path.read_bytes()) for name, path in found.items() if ".tmp" not in name and path.name != ".lock"
    }


def vectors(out):
    """Digests of the files of a folder that counts as written where its list of digests is there."""
    return files(out) if (out / "SHA256SUMS").exists() else {}


def whole(out):
    """A folder that appears in one step."""
    return {"folder": files(out)}


def job(out):
    """The counts of a job and its files, with equal bytes; nothing without a manifest."""
    from newsembed.formats.manifest import has_manifest

    if not has_manifest(str(out)):
        return {}
    manifest = json.loads((out / "manifest.json").read_text())
    for name, digest in manifest["sha256"].items():
        import hashlib

        assert hashlib.sha256((out / name).read_bytes()).hexdigest() == digest, name
    return {"job": {"counts": manifest["counts"], "sha256": manifest["sha256"]}}


def archive(out):
    """Every version of an archive: its articles with their vectors and events."""
    from newsembed.formats.archive import Archive, read_runs

    if not any(out.glob("runs.lance/_versions/*")):
        return {}
    found = {}
    for one in read_runs(str(out)):
        rows = Archive(str(out), one).rows(["doc_id", "title", "vector"]).drop_columns(["_rowid"])
        found[f"version {one.number}"] = sha256(repr(rows.sort_by("doc_id").to_pylist()).encode())
    return found


def model(out):
    """The parameters of every checkpoint of a model."""
    import numpy as np
    from newsembed.formats.model_folder import ModelFolder

    found = {}
    for step in (path.name for path in out.glob("checkpoints/*") if path.name.isdecimal()):
        params = ModelFolder(f"{out}").read_params(int(step))[0]
        text = [(name, np.asarray(value).tobytes()) for name, value in sorted(params.items())]
        found[f"step {step}"] = sha256(repr(text).encode())
    return found


def study(out):
    """The steps of a study: models, jobs and folders of files."""
    found = {}
    for step in (path for path in out.iterdir() if path.is_dir() and not path.name.endswith(".tmp")):
        kind = model if (step / "checkpoints").exists() else job if (step / "manifest.json").exists() else files
        value = {"training": True} if step.name == "layers" else kind(step)
        if value:  # a training without a checkpoint has published nothing
            found[step.name] = value
    return found
