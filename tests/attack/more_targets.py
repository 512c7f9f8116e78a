"""Further files that commands read: rankings, posts, tables, indexes of WARC files, configurations, words, archives."""

import bz2
import json
from pathlib import Path
from typing import Any

import mutators
from targets import ONE, WORDS, Target, file_result, job_result, json_lines, rows

CONFIG = """output = "work"
articles = ["{articles}"]
preset = "paper"
beam = ["--direct_num_workers=1"]

[clean]
min_words = 80
earliest_date = "2015-01-01"
require_author = false

[neighbors]
engine = "exact"
"""
CLEAN = ("--clean.min_words=5", "--clean.min_sentences=1", "--clean.require_language=false")
ARCHIVED = ("parents.npy", "history.jsonl", "manifest.json", "events/members.parquet")


def printed_result(_output: Path, printed: str) -> str:
    """What a command printed."""
    return printed


def archive_result(output: Path, _printed: str) -> Any:
    """The articles and counts of an archive after an update."""
    from newsembed.formats import archive, parquet
    from newsembed.formats.records import Article

    folder = str(output.parent / "archive")
    version = archive.version_folder(folder, archive.read_pointer(folder).version)
    report = json.loads((output.parent / "archive/last_run.json").read_text())
    counts = {name: report.get(name) for name in ("read", "new", "known", "rejected", "failed", "articles")}
    return [one.doc_id for one in parquet.read_stream(f"{version}/articles", Article)], counts


def item(number: int, name: str) -> dict[str, Any]:
    """An entity in the format of Wikidata's dumps."""
    return {
        "type": "item",
        "id": f"Q{number}",
        "labels": {tag: {"language": tag, "value": name} for tag in ("en", "de")},
        "aliases": {"en": [{"language": "en", "value": f"{name} of the North"}]},
        "claims": {},
        "sitelinks": {f"w{place}wiki": {"site": f"w{place}wiki", "title": name} for place in range(5)},
    }


def written(folder: Path) -> None:
    """Writes the files beside those of `targets.built`."""
    from newsembed.launch import cli

    (folder / "ranking.tsv").write_text("doc_id\tscore\n" + "".join(f"{n:016x}\t{12 - n}\n" for n in range(12)))
    posts = [{"text": f"Look at the {WORDS[n]} #RiverNews", "url": f"http://n{n % 3}.example/{n}"} for n in range(8)]
    (folder / "posts.jsonl").write_text(json_lines(posts))
    (folder / "bad.txt").write_text("".join(f"{word}x\n" for word in WORDS) + "storm surge\n")
    items = ",\n".join(json.dumps(item(number, word.title())) for number, word in enumerate(WORDS, 1))
    (folder / "dump.json").write_text(f"[\n{items}\n]\n")
    (folder / "dump.json.bz2").write_bytes(bz2.compress((folder / "dump.json").read_bytes()))
    names = "".join(f"Q{number}\ten\t{word.title()}\t{number + 1}\n" for number, word in enumerate(WORDS))
    (folder / "names.tsv").write_text(names)
    (folder / "build.toml").write_text(CONFIG.format(articles=folder / "articles.jsonl"))
    later = [row | {"url": f"{row['url']}/later", "byline_date": "2021-04-01"} for row in rows(3)]
    (folder / "later.jsonl").write_text(json_lines(later))
    listed = [row | {"feeds": [("Rivers", "Councils")[place % 2]]} for place, row in enumerate(rows())]
    (folder / "listed.jsonl").write_text(json_lines(listed))
    model = folder / "model"
    for command in (
        ["extract", "--articles", folder / "listed.jsonl", "--output", folder / "listed", ONE],
        ["clean", "--articles", folder / "listed", "--output", folder / "listed_clean", ONE],
        [*_topics(folder), "--min_documents=1", "--positive_ratio=0", "--output", folder / "topics", ONE],
        ["knowledge", "--wikidata", folder / "dump.json", "--output", folder / "names"],
        ["index", "--model", model, "--input", folder / "clean/articles", "--output", folder / "searched"],
        _update(folder, folder / "archive", "articles.jsonl"),
    ):
        assert cli.main([str(part) for part in command]) == 0


def _topics(folder: Path) -> list[object]:
    return ["topics", "--articles", folder / "listed_clean", "--hubs", folder / "listed"]


def _update(folder: Path, archive: Path, articles: str) -> list[object]:
    given = ["update", "--archive", archive, "--articles", folder / articles, f"--encoder=model:{folder / 'model'}"]
    return [*given, *CLEAN]


def built(folder: Path) -> list[Target]:
    """All targets of this module; `targets.built` wrote the folder."""
    written(folder)
    return [*_of_lists(folder), *_of_indexes(folder), *_of_archives(folder)]


def _of_lists(folder: Path) -> list[Target]:
    def extract(path: Path, output: Path) -> list[object]:
        return ["extract", "--articles", folder / "articles.jsonl", "--posts", path, "--output", output, ONE]

    def clean(path: Path, output: Path) -> list[object]:
        return ["clean", "--articles", folder / "extract", "--bad_words", path, "--output", output, ONE]

    def knowledge(path: Path, output: Path) -> list[object]:
        return ["knowledge", "--wikidata", path, "--output", output]

    def entities(path: Path, output: Path) -> list[object]:
        given = ["entities", "--articles", folder / "clean", "--knowledge_base", path, "--min_documents=2"]
        return [*given, "--built_in_names=false", "--output", output, ONE]

    def translations(path: Path, output: Path) -> list[object]:
        given = ["translations", "--bitext", path, "--vocabulary", folder / "vocab.txt"]
        return [*given, "--output", output, ONE, "--max_length=64"]

    def topics(path: Path, output: Path) -> list[object]:
        return [*_topics(folder), "--topics_file", path, "--positive_ratio=0", "--output", output, ONE]

    def counted(path: Path, output: Path) -> list[object]:
        return ["extract", "--warc", folder / "pages.warc.gz", "--cdx", path, "--output", output, ONE]

    def thinned(path: Path, output: Path) -> list[object]:
        given = ["dedup", "--index", folder / "index", "--greedy", "--order", path, "--threshold=0.9"]
        return [*given, "--output", output]

    every, text = mutators.EVERY, mutators.TEXT
    part = next((folder / "names").glob("part-*.parquet")).name
    return [
        Target("ranking", folder / "ranking.tsv", "", thinned, file_result, text),
        Target("topics", folder / "topics/topics.tsv", "", topics, job_result, text),
        Target("index of a WARC file", folder / "listed.cdxj", "", counted, job_result, text),
        Target("posts", folder / "posts.jsonl", "", extract, job_result, text),
        Target("bad words", folder / "bad.txt", "", clean, job_result, text),
        Target("Wikidata dump", folder / "dump.json", "", knowledge, file_result, text),
        Target("Wikidata dump in bzip2", folder / "dump.json.bz2", "", knowledge, file_result, every),
        Target("names, TSV", folder / "names.tsv", "", entities, job_result, text),
        Target("names, Parquet", folder / "names" / part, "", entities, job_result, every),
        Target("translations, TSV", folder / "pairs.tsv", "", translations, job_result, text),
        Target("translations, TMX", folder / "pairs.tmx", "", translations, job_result, text),
        Target(
            *("configuration", folder / "build.toml", ""),
            lambda path, output: ["build", "--config", path, "--print_config"],
            *(printed_result, text),
        ),
    ]


def _of_indexes(folder: Path) -> list[Target]:
    def search(path: Path, output: Path) -> list[object]:
        return ["search", "--index", path, "--mode=words", "river council harvest"]

    index = folder / "searched"
    (words,) = index.glob("words-*")
    files = sorted((path for path in words.iterdir() if path.stat().st_size), key=lambda path: path.suffix)
    kinds = {path.suffix or path.name: path for path in files}
    return [
        Target(
            *(f"words of an index, {kind}", index, str(path.relative_to(index)), search, printed_result),
            *(mutators.TEXT if path.suffix == ".json" else mutators.EVERY, True),
        )
        for kind, path in kinds.items()
    ]


def _of_archives(folder: Path) -> list[Target]:
    from newsembed.formats import archive

    kept = folder / "archive"
    version = Path(archive.version_folder(str(kept), archive.read_pointer(str(kept)).version))
    parts = [next((version / name).glob("part-*")) for name in ("articles", "vectors", "signatures", "sketches")]
    paths = [kept / archive.POINTER, *(version / name for name in ARCHIVED), *parts]
    return [
        Target(
            *(f"archive, {path.parent.name if path in parts else path.name}", kept, str(path.relative_to(kept))),
            *(lambda path, _output: _update(folder, path, "later.jsonl"), archive_result),
            *(mutators.TEXT if path.suffix in (".json", ".jsonl") else mutators.EVERY, path.name != archive.POINTER),
        )
        for path in paths
    ]
