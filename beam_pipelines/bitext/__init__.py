"""``newsembed bitext``: finds sentences that translate each other in articles of two languages (section 2.1.1).

It compares articles that are at most a day apart and, with ``--vectors``, have similar entities or images. Their
sentences are embedded and scored by the ratio margin (Artetxe and Schwenk 2019); each sentence gets at most one
translation in each other language. `readers` reads translation pairs from files, for this and other jobs.
"""

import zlib
from collections.abc import Sequence
from typing import Any, Final

from ...errors import InputError, counted
from ...formats import files, parquet
from ...formats.records import MinedPair, Rejection
from .. import encoders
from ..jobs import ARTICLES, InputSpec, Job, JobRun, optional
from ..shards import Shard
from .documents import (
    SAMPLED,
    SENTENCES,
    WANTED,
    BitextOptions,
    Plan,
    count_documents,
    entity_dimensions,
    link_documents,
    plan_tasks,
    send_documents,
    send_sentences,
    vector_paths,
)
from .mine import MARGINS, calibrate, mine_task, reject
from .readers import HELP, PAIRS, digest, plan_parts

SCORES: Final = "scores"  # stream of `MinedPair`
_PAIRS_AT_ONCE: Final = 200_000  # that one worker sorts
_Part = tuple[Sequence[str], int, int]


def run(job: JobRun) -> None:
    """Links articles, embeds their sentences, mines each block of days and writes the pairs.

    Raises:
      InputError: if no two languages have articles near each other, too few pairs are known, or an input does not fit.
    """
    options: BitextOptions = job.options
    known = [part for given in job.inputs["known_pairs"] for part in plan_parts(given, "--known_pairs")]
    shards = job.shards("articles")
    vectors = vector_paths(job.input("vectors"), len(shards)) if job.inputs["vectors"] else []
    job.map_shards("documents", count_documents, shards, block_days=options.block_days, accounted=False)
    tasks = plan_tasks(job.workspace, options)
    if not tasks:
        raise InputError(
            f"no articles of two languages are within {counted(options.window_days, 'day')} of each other",
            path=job.input("articles"),
            remedy="give articles in several languages, a larger --window_days, or an empty --pivot for pairs "
            f"without {options.pivot or 'a pivot'}",
        )
    dimensions, encoder = entity_dimensions(vectors), job.input("encoder")
    plan = Plan(options, tasks, len(shards), bool(vectors), dimensions, encoder, bool(known))
    facts: dict[str, Any] = {"plan": plan, "accounted": False}
    payloads = [(path, *of_shard) for path, of_shard in zip(shards, vectors or [()] * len(shards), strict=True)]
    # One pipeline, so that workers start once.
    with job.graph(max(len(shards), len(tasks))):
        job.map_shards("distribute", send_documents, payloads, **facts)
        job.map_rows("link", link_documents, plan.blocks, [("distribute", plan.document_rows)], **facts)
        job.map_rows("embed", send_sentences, shards, [("link", WANTED)], **facts)
        if known:
            job.map_rows("calibrate", calibrate, [known], [("embed", rows) for rows in SAMPLED], **facts)
        job.map_rows("mine", mine_task, [None] * len(tasks), [("embed", rows) for rows in SENTENCES], plan=plan)
    if known:
        job.extra["margins"] = files.read_json(f"{job.workspace}/{MARGINS}")
    counts = job.counts_of("mine").tallies_under("pairs/")
    job.map_shards("write", write_pairs, _parts(job.workspace, plan, counts))
    job.extra["pairs"] = {name: count for name, count in counts.items() if count}


def _parts(workspace: str, plan: Plan, counts: dict[str, int]) -> list[_Part]:
    """The parts to write: files of all tasks of a pair of languages, number of the part, number of parts."""
    paths: dict[str, list[str]] = {}
    for number, task in enumerate(plan.tasks):
        path = f"{workspace}/_mined/part-{number:05d}-of-{len(plan.tasks):05d}.parquet"
        paths.setdefault(task.languages, []).append(path)
    sizes = {languages: -(-counts[languages] // _PAIRS_AT_ONCE) for languages in sorted(paths)}
    return [(paths[languages], number, size) for languages, size in sizes.items() for number in range(size)]


def write_pairs(shard: Shard, part: _Part) -> None:
    """Writes the pairs whose target text has the remainder of the part, the highest margins first.

    Drops repeated pairs of texts and target sentences: articles at the end of a block are in two blocks.
    """
    paths, number, parts = part
    records = (pair for path in paths for pair in parquet.read_records(path, MinedPair))
    found = [pair for pair in records if zlib.crc32(pair.target.encode()) % parts == number]
    found.sort(key=lambda pair: (-pair.margin, pair.source, pair.target, pair.source_doc, pair.target_doc))
    texts: set[tuple[str, str]] = set()
    sentences: set[tuple[str, int]] = set()
    writer, lines = shard.records(SCORES, MinedPair), []
    for pair in found:
        shard.read()
        both, sentence = (pair.source, pair.target), (pair.target_doc, pair.target_number)
        if both in texts:
            reject(shard, pair, Rejection.REPEATED_PAIR, "the same texts elsewhere")
        elif sentence in sentences:
            reject(shard, pair, Rejection.SENTENCE_TAKEN, "a side has a better translation")
        else:
            texts.add(both)
            sentences.add(sentence)
            shard.written()
            writer.write(pair)
            lines.append("\t".join([pair.source_language, pair.target_language, *both]))
    files.write_whole(shard.path(PAIRS, "tsv"), "".join(f"{line}\n" for line in lines).encode())


JOB = Job(
    name="bitext",
    example=(
        "newsembed bitext --articles work/clean --vectors work/vectors --encoder model:work/model \\\n"
        "      --known_pairs dev.de,dev.en --output work/bitext\n"
        "  newsembed pack --articles work/clean --vocabulary work/vocabulary --bitext work/bitext --output work/pack"
    ),
    inputs=(
        ARTICLES,
        InputSpec("encoder", f"encoder of the sentences: {encoders.FORMS}", digest=encoders.digest),
        optional(
            "vectors",
            "folder that `newsembed vectors` wrote: only articles with similar ones are compared",
        ),
        optional("known_pairs", f"translations that determine the least margin; {HELP}", many=True, digest=digest),
    ),
    options=BitextOptions,
    run=run,
    switches={"wrong_language": "min_language_probability=0"},
)
