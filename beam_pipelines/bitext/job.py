"""``newsembed bitext``: finds sentences that translate each other in articles of two languages (section 2.1.1).

It compares articles that are at most a day apart and, with ``--vectors``, have similar entities or images. Their
sentences are embedded and scored by the ratio margin (Artetxe and Schwenk 2019); each sentence gets at most one
translation in each other language.
"""

import functools

from ...errors import InputError
from ...formats import parquet
from .. import encoders
from ..jobs import InputSpec, Job, JobRun
from . import known, least, mine, readers, writing
from .documents import (
    Plan,
    count_documents,
    document_rows,
    entity_dimensions,
    link_documents,
    plan_tasks,
    send_documents,
    vector_paths,
    wanted_rows,
)
from .options import BitextOptions
from .sentences import Encoding, sample_rows, send_sentences, sentence_rows


def run(job: JobRun) -> None:
    """Links articles, embeds their sentences, mines each block of days and writes the pairs.

    Raises:
      InputError: if no two languages have articles near each other, too few pairs are known, or an input does not fit.
    """
    options: BitextOptions = job.options
    parts = [part for given in job.inputs["known_pairs"] for part in readers.plan_parts(given, "--known_pairs")]
    shards = parquet.shard_paths(f"{job.input('articles')}/articles")
    vectors = vector_paths(job.input("vectors"), len(shards)) if job.inputs["vectors"] else None
    encoding = Encoding(encoders.opener(), job.input("encoder"), bool(parts))
    job.map_shards("documents", functools.partial(count_documents, options), shards, accounted=False)
    plan = _plan(job, options, len(shards), vectors)
    payloads = [(path, vectors[number] if vectors else None) for number, path in enumerate(shards)]
    languages = sorted({(task.source, task.target) for task in plan.tasks})
    known_margins = f"{job.workspace}/{known.MARGINS}" if parts else ""
    # One pipeline, so that workers start once.
    with job.graph("mine", max(len(shards), len(plan.tasks))):
        job.map_shards("distribute", functools.partial(send_documents, options, plan), payloads, accounted=False)
        link = functools.partial(link_documents, options, plan)
        job.map_rows("link", link, plan.blocks, [("distribute", document_rows(plan))], accounted=False)
        embed = functools.partial(send_sentences, options, plan, encoding)
        job.map_rows("embed", embed, shards, [("link", wanted_rows())], accounted=False)
        if parts:
            calibrate = functools.partial(known.calibrate, options, encoding, languages)
            sample = [("embed", rows) for rows in sample_rows()]
            job.map_rows("calibrate", calibrate, [parts], sample, accounted=False)
        mine_task = functools.partial(mine.mine_task, options, plan, known_margins)
        job.map_rows("mine", mine_task, [None] * len(plan.tasks), [("embed", rows) for rows in sentence_rows()])
    if parts:
        job.extra["margins"] = dict(least.read_least(known_margins, options).facts)
    _write(job, plan)


def _plan(job: JobRun, options: BitextOptions, shard_count: int, vectors: list[tuple[str, ...]] | None) -> Plan:
    tasks = plan_tasks(job.workspace, options)
    if not tasks:
        raise InputError(
            f"no articles of two languages are within {options.window_days} days of each other",
            path=job.input("articles"),
            remedy="give articles in several languages, a larger --window_days, or an empty --pivot for pairs "
            f"without {options.pivot or 'a pivot'}",
        )
    blocks = sorted({task.block for task in tasks})
    dimensions = entity_dimensions(vectors) if vectors else 0
    return Plan(tasks, tuple(blocks), shard_count, vectors is not None, dimensions)


def _write(job: JobRun, plan: Plan) -> None:
    paths: dict[str, list[str]] = {}
    for number, task in enumerate(plan.tasks):
        path = f"{job.workspace}/_mined/part-{number:05d}-of-{len(plan.tasks):05d}.parquet"
        paths.setdefault(task.languages, []).append(path)
    prefix = "pairs/"
    tallies = job.counts_of("mine").tallies
    counts = {name.removeprefix(prefix): count for name, count in tallies.items() if name.startswith(prefix)}
    job.map_shards("write", writing.write_pairs, writing.plan_writing(paths, counts))
    job.extra["pairs"] = {name: count for name, count in sorted(counts.items()) if count}


JOB = Job(
    name="bitext",
    summary="find sentences that translate each other in articles of different languages",
    example=(
        "newsembed bitext --articles work/clean --vectors work/vectors --encoder model:work/model \\\n"
        "      --known_pairs dev.de,dev.en --output work/bitext\n"
        "  newsembed pack --articles work/clean --vocabulary work/vocabulary --bitext work/bitext --output work/pack"
    ),
    inputs=(
        InputSpec("articles", "folder that `newsembed clean` wrote"),
        InputSpec("encoder", f"encoder of the sentences: {encoders.FORMS}", digest=encoders.digest),
        InputSpec(
            "vectors",
            "folder that `newsembed vectors` wrote of these articles: only articles with similar entities or images "
            "are compared",
            required=False,
        ),
        InputSpec(
            "known_pairs",
            f"known translations that determine the least margin; {readers.HELP}",
            required=False,
            many=True,
            digest=readers.digest,
        ),
    ),
    options=BitextOptions,
    run=run,
    switches={"wrong_language": "min_language_probability=0", "copied_text": "max_copied=1"},
)
