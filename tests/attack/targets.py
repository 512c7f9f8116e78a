"""The files that commands read, each with the command that reads it: what the fuzzer of inputs mutates."""

import bz2
import dataclasses
import datetime
import gzip
import hashlib
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from json_lines import write_rows
from mutators import EVERY, TEXT, Mutation

WORDS = "river council embankment harvest minister railway verdict museum orchestra quarry storm coast".split()
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz0123456789.,"]
PIECES += [f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz0123456789"]
ONE = "--direct_num_workers=1"

Result = Callable[[Path, str], Any]


@dataclasses.dataclass(frozen=True)
class Target:
    """A kind of input file.

    Attributes:
      name: the kind.
      source: the file or folder without mutations, which is copied for each try.
      file: the mutated file below the folder; "" if the source is a file.
      arguments: of `newsembed`: ``{path}`` is the copy, ``{out}`` the output, ``{at}`` the folder of all sources.
      result: what the command computed, from the output and the printed text.
      mutations: those that are tried.
      guarded: whether digests cover the file, so that no change of it may be accepted.
    """

    name: str
    source: Path
    file: str
    arguments: str
    result: Result
    mutations: dict[str, Mutation]
    guarded: bool = False

    def command(self, path, out):
        """The arguments for a copy of the source."""
        at = self.source.parent
        while not (at / "articles.jsonl").exists():
            at = at.parent
        return [word.format(path=path, out=out, at=at) for word in self.arguments.split()]


def rows(count=8):
    """Articles about words of a fixed list."""
    return [
        {
            "url": f"http://n{number % 3}.example/{number}",
            "title": f"Headline {number} about the {WORDS[number % 12]} of the {WORDS[number * 5 % 12]}",
            "body": " ".join(
                f"The {WORDS[(number + place) % 12]} was seen by the {WORDS[place * 7 % 12]} on day {number * place}."
                for place in range(20)
            ),
            "authors": ["Ann Lee"],
            "byline_date": f"2021-03-{1 + number % 28:02d}",
            "language": "en",
        }
        for number in range(count)
    ]


def job_result(output, _printed):
    """Counts of a job and the digests of its files."""
    manifest = json.loads((output / "manifest.json").read_text())
    return {"counts": manifest["counts"], "sha256": manifest["sha256"]}


def file_result(output, printed):
    """Digests of what a command wrote, and what it printed, without the place and the time."""
    paths = [output] if output.is_file() else sorted(path for path in output.rglob("*") if path.is_file())
    text = printed.replace(str(output.parent), "")
    return [(path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in paths], text


def scores(output, _printed):
    """The scores of an evaluation."""
    found = json.loads((output / "results.json").read_text())
    return json.dumps(found, sort_keys=True).replace(str(output.parent), "")


def archive_result(output, _printed):
    """The articles and counts of an archive after an update."""
    from newsembed.formats.archive import Archive

    report = json.loads((output.parent / "archive/last_run.json").read_text())
    counts = {name: report.get(name) for name in ("read", "new", "known", "rejected", "failed", "articles")}
    return Archive(str(output.parent / "archive")).rows(["doc_id"])["doc_id"].to_pylist(), counts


def printed_result(_output, printed):
    """What a command printed."""
    return printed


def run(text, folder):
    """Runs a command that makes a source."""
    from newsembed.launch import cli

    assert cli.main(text.format(at=folder).split()) == 0


def archive(path):
    """Writes a WARC file of pages, a feed and an image; returns its index, CDXJ."""
    from newsembed.beam_pipelines.crawl.fetch import Fetched
    from newsembed.beam_pipelines.crawl.state import WarcWriter

    sink = io.BytesIO()
    writer = WarcWriter(sink, "test")
    for number, row in enumerate(rows(4)):
        head = f'<title>{row["title"]}</title><meta name="date" content="{row["byline_date"]}">'
        body = "".join(f"<p>{sentence}.</p>" for sentence in row["body"].split(". "))
        html = f'<html lang="en"><head>{head}</head><body><article>{body}<a href="/{number}">Next</a></article></body>'
        writer.write(Fetched(row["url"], 200, "OK", (("Content-Type", "text/html"),), f"{html}</html>".encode()))
    items = "".join(f"<item><title>{row['title']}</title><link>{row['url']}</link></item>" for row in rows(4))
    feed = f"<rss><channel><title>Floods</title>{items}</channel></rss>"
    writer.write(Fetched("http://n0.example/rss", 200, "OK", (("Content-Type", "text/xml"),), feed.encode()))
    path.write_bytes(sink.getvalue())
    return writer.index(path.name)


def mined(folder):
    """The jobs up to clean articles, with a vocabulary and hand-made tables of entities and words."""
    import numpy as np
    from newsembed.beam_pipelines.entities import tables

    write_rows(folder / "articles.jsonl", rows())
    run(f"extract --articles {{at}}/articles.jsonl --output {{at}}/extract {ONE}", folder)
    run(f"clean --articles {{at}}/extract --output {{at}}/clean {ONE}", folder)
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in PIECES))
    entities = folder / "entities"
    entities.mkdir()
    (entities / "manifest.json").write_text('{"digest": "e"}')
    aliases = [tables.Alias(word.title(), f"Q{number}", 1, "") for number, word in enumerate(WORDS[:4])]
    tables.write_aliases(str(entities / "aliases.tsv"), aliases)
    generator = np.random.default_rng(0)
    for name, keys, counts in (
        ("entities", tuple(f"Q{number}" for number in range(4)), (3, 2, 1, 1)),
        ("words", tuple(WORDS), tuple([0.05] * len(WORDS))),
    ):
        values = generator.standard_normal((len(keys), 6)).astype(np.float32)
        tables.write_embeddings(str(entities / name), tables.EmbeddingTable(keys, values, counts))


def written_model(folder):
    """A tiny model, with digests of all its files."""
    from drawn_parameters import write_model
    from newsembed.models.encoders.news import EncoderConfig

    size = {"hidden_size": 8, "num_layers": 1, "num_heads": 2, "mlp_size": 16, "max_length": 32, "embedding_size": 4}
    write_model(folder, EncoderConfig(vocab_size=len(PIECES), num_topics=2, **size), PIECES)


def written_index(folder):
    """An index of 12 articles."""
    import numpy as np
    from newsembed.formats.articles import ArticleText
    from newsembed.serving.index_command import build_index

    vectors = np.random.default_rng(0).standard_normal((12, 8)).astype(np.float32)
    vectors[6:] = vectors[:6] + 0.01

    class Given:
        digest, dimensions = "digest", 8

        def encode(self, titles, _bodies):
            return vectors[: len(titles)]

        def encode_queries(self, texts):
            return np.resize(vectors, (len(texts), 8))

    days = [datetime.date(2020, 1, 1 + n % 6) for n in range(12)]
    articles = [
        ArticleText(f"{n:016x}", f"http://s.example/{n}", "s", f"Title {n}", "", "en", day)
        for n, day in enumerate(days)
    ]
    build_index(Given(), iter(articles), str(folder), spec="model:a")


def table_files(folder, *tables):
    """The largest data file of some tables, and the manifest of the first, below a folder."""
    found = {
        table: max((folder / f"{table}.lance/data").iterdir(), key=lambda one: one.stat().st_size) for table in tables
    }
    found[f"manifest of {tables[0]}"] = max((folder / f"{tables[0]}.lance/_versions").glob("*.manifest"))
    return {name: str(path.relative_to(folder)) for name, path in found.items()}


GIN = """include "runs/train_demo.gin"
TRAIN_STEPS = 3
LEARNING_RATE = 0.001
Contrastive.hard_negatives = True
"""
TMX = """<?xml version="1.0" encoding="UTF-8"?>
<tmx version="1.4"><header srclang="en" datatype="plaintext"/><body>{}</body></tmx>
"""


def written_texts(folder):
    """Files of a few lines: translation pairs, evaluation sets, a gin file, the state of a crawl."""
    pairs = [(f"the river number {n} rose over the embankment", f"der fluss {n} trat über den damm") for n in range(6)]
    (folder / "pairs.tsv").write_text("".join(f"en\tde\t{left}\t{right}\n" for left, right in pairs))
    units = "".join(
        f'<tu><tuv xml:lang="en"><seg>{left}</seg></tuv><tuv xml:lang="de"><seg>{right}</seg></tuv></tu>'
        for left, right in pairs
    )
    (folder / "pairs.tmx").write_text(TMX.format(units))
    (folder / "pairs.en").write_text("".join(f"{left}\n" for left, _ in pairs))
    (folder / "pairs.de").write_text("".join(f"{right}\n" for _, right in pairs))
    events = [
        {**row, "id": str(number), "event": f"e{number % 3}", "publisher": f"p{number}"}
        for number, row in enumerate(rows(9))
    ]
    write_rows(folder / "events.jsonl", events)
    (folder / "run.gin").write_text(GIN)
    (folder / "seeds.txt").write_text("http://a.example/\n")


def crawl_state(folder):
    """The state of a crawl of one site."""
    from newsembed.beam_pipelines.crawl.sources import Entry
    from newsembed.beam_pipelines.crawl.state import UrlRecord, write_state

    day = datetime.date(2026, 1, 1)
    links = (Entry("http://a.example/1", day), Entry("http://a.example/2", None))
    known = {"http://a.example/": UrlRecord('"e"', "", "0" * 40, day, "page", links)}
    write_state(str(folder / "state/fetch-a.example.json.gz"), known, day)


def item(number, name):
    """An entity in the format of Wikidata's dumps."""
    return {
        "type": "item",
        "id": f"Q{number}",
        "labels": {tag: {"language": tag, "value": name} for tag in ("en", "de")},
        "aliases": {"en": [{"language": "en", "value": f"{name} of the North"}]},
        "claims": {},
        "sitelinks": {f"w{place}wiki": {"site": f"w{place}wiki", "title": name} for place in range(5)},
    }


def written_more(folder):
    """Rankings, posts, tables, indexes of WARC files, words, exports, archives: for the long form."""
    (folder / "ranking.tsv").write_text("doc_id\tscore\n" + "".join(f"{n:016x}\t{12 - n}\n" for n in range(12)))
    posts = [{"text": f"Look at the {WORDS[n]} #RiverNews", "url": f"http://n{n % 3}.example/{n}"} for n in range(8)]
    write_rows(folder / "posts.jsonl", posts)
    (folder / "bad.txt").write_text("".join(f"{word}x\n" for word in WORDS) + "storm surge\n")
    items = ",\n".join(json.dumps(item(number, word.title())) for number, word in enumerate(WORDS, 1))
    (folder / "dump.json").write_text(f"[\n{items}\n]\n")
    (folder / "dump.json.bz2").write_bytes(bz2.compress((folder / "dump.json").read_bytes()))
    names = "".join(f"Q{number}\ten\t{word.title()}\t{number + 1}\n" for number, word in enumerate(WORDS))
    (folder / "names.tsv").write_text(names)
    later = [row | {"url": f"{row['url']}/later", "byline_date": "2021-04-01"} for row in rows(3)]
    write_rows(folder / "later.jsonl", later)
    listed = [row | {"feeds": [("Rivers", "Councils")[place % 2]]} for place, row in enumerate(rows())]
    write_rows(folder / "listed.jsonl", listed)
    for text in (
        f"extract --articles {{at}}/listed.jsonl --output {{at}}/listed {ONE}",
        f"clean --articles {{at}}/listed --output {{at}}/listed_clean {ONE}",
        f"{TOPICS} --min_documents=1 --output {{at}}/topics",
        "knowledge --wikidata {at}/dump.json --output {at}/names",
        "index --model {at}/model --input {at}/clean/articles --output {at}/searched",
        f"{UPDATE} --archive {{at}}/archive --articles {{at}}/articles.jsonl",
        "export --model {at}/model --output {at}/saved",
        "export --model {at}/model --format=safetensors --output {at}/safetensors",
    ):
        run(text, folder)


TOPICS = f"topics --articles {{at}}/listed_clean --hubs {{at}}/listed --positive_ratio=0 {ONE}"
UPDATE = "update --encoder=model:{at}/model --clean.min_words=5 --clean.min_sentences=1 --clean.require_language=false"
EXTRACT = f"extract --output {{out}} {ONE}"
PACK = f"pack --articles {{at}}/clean --output {{out}} {ONE} --max_length=64"
VECTORS = f"vectors --articles {{at}}/clean --entities {{at}}/entities --output {{out}} {ONE}"
OF_CLEAN = f"pack --vocabulary {{at}}/vocab.txt --max_length=64 --output {{out}} {ONE} --articles {{path}}"
CRAWL = (
    f"crawl --seeds {{at}}/seeds.txt --state {{path}} --output {{out}} {ONE} --max_attempts=1 --delay_seconds=0 "
    "--resolve=*.example=127.0.0.1:9 --allow_private_addresses=true"
)
EMBED, EMBEDDED = "embed --input {at}/articles.jsonl", "--output {out}/a.parquet"
DEDUP = "dedup --index {path} --threshold=0.9 --output {out}"
EVALUATE = "evaluate --encoder=tfidf=tfidf --suite=events --data {path} --output {out}"
TRAIN = (
    'train --gin_file={path} --gin.MODEL_DIR="{out}" --gin.DATA_DIR="{out}" --gin.VOCABULARY_PATH="{out}" '
    '--gin.INITIAL_CHECKPOINT_PATH="{out}"'
)
ENTITIES = f"entities --articles {{at}}/clean --min_documents=2 --built_in_names=false --output {{out}} {ONE}"
TRANSLATIONS = f"translations --vocabulary {{at}}/vocab.txt --output {{out}} {ONE} --max_length=64"


def built(folder, *, slow=False):
    """All targets, with their files written below a folder; with `slow` also those of the long form."""
    from newsembed.formats import parquet
    from newsembed.formats.records import Article

    mined(folder)
    written_texts(folder)
    written_model(folder / "model")
    written_index(folder / "index")
    crawl_state(folder)
    (folder / "listed.cdxj").write_bytes(archive(folder / "pages.warc.gz"))
    (folder / "pages.warc").write_bytes(gzip.decompress((folder / "pages.warc.gz").read_bytes()))
    (folder / "articles.jsonl.gz").write_bytes(gzip.compress((folder / "articles.jsonl").read_bytes(), mtime=0))
    articles = list(parquet.read_stream(str(folder / "clean/articles"), Article))
    parquet.write_shard(str(folder / "articles.parquet"), articles, Article)
    if slow:
        written_more(folder)
    found = [*_short(folder), *(_long(folder) if slow else ())]
    return [Target(name, folder / source, *rest) for name, source, *rest in found]


def _short(folder):
    """Rows of targets: the attributes in their order, with the source below the folder."""
    (shard,) = (folder / "clean/articles").glob("*.parquet")
    checkpoint = max((folder / "model/checkpoints/0").rglob("d/*"), key=lambda path: path.stat().st_size)
    checkpoint = str(checkpoint.relative_to(folder / "model"))
    model, bitext = f"{EMBED} --model {{path}} {EMBEDDED}", f"{PACK} --vocabulary {{at}}/vocab.txt --bitext {{path}}"
    words = f"vectors --articles {{at}}/clean --entities {{path}} --output {{out}} {ONE}"
    aliases = f"{VECTORS} --entity_embeddings {{at}}/entities/entities.npy --alias_file {{path}}"
    aligned = f"{PACK} --vocabulary {{at}}/vocab.txt --bitext {{at}}/pairs.en,{{path}}"
    return [
        ("articles, JSONL", "articles.jsonl", "", f"{EXTRACT} --articles {{path}}", job_result, TEXT),
        ("articles, JSONL in gzip", "articles.jsonl.gz", "", f"{EXTRACT} --articles {{path}}", job_result, EVERY),
        ("articles, Parquet", "articles.parquet", "", f"{EXTRACT} --articles {{path}}", job_result, EVERY, True),
        ("WARC in gzip", "pages.warc.gz", "", f"{EXTRACT} --warc {{path}}", job_result, EVERY),
        ("WARC and HTML", "pages.warc", "", f"{EXTRACT} --warc {{path}}", job_result, TEXT),
        ("vocabulary", "vocab.txt", "", f"{PACK} --vocabulary {{path}}", job_result, TEXT),
        ("manifest of a job", "clean", "manifest.json", OF_CLEAN, job_result, TEXT),
        ("shard of a job", "clean", f"articles/{shard.name}", OF_CLEAN, job_result, EVERY, True),
        ("bitext, TSV", "pairs.tsv", "", bitext, job_result, TEXT),
        ("bitext, TMX", "pairs.tmx", "", bitext, job_result, TEXT),
        ("bitext, aligned", "pairs.de", "", aligned, job_result, TEXT),
        ("aliases", "entities/aliases.tsv", "", aliases, job_result, TEXT),
        ("embeddings of words", "entities", "words.npy", words, job_result, EVERY),
        ("embeddings of entities", "entities", "entities.npy", words, job_result, EVERY),
        ("entities beside embeddings", "entities", "entities.tsv", words, job_result, TEXT),
        ("aliases of a job", "entities", "aliases.tsv", words, job_result, TEXT),
        ("words beside embeddings", "entities", "words.tsv", words, job_result, TEXT),
        ("state of a crawl", "state", "fetch-a.example.json.gz", CRAWL, lambda *_: "no host answers", EVERY),
        ("model.json", "model", "model.json", model, file_result, TEXT, True),
        ("vocabulary of a model", "model", "vocab.txt", model, file_result, TEXT, True),
        ("checkpoint", "model", checkpoint, model, file_result, EVERY, True),
        ("digests of a checkpoint", "model", "checkpoints/0/SHA256SUMS", model, file_result, TEXT),
        *(
            (f"{name} of an index", "index", path, DEDUP, file_result, EVERY, True)
            for name, path in table_files(folder / "index", "articles", "runs").items()
        ),
        ("digests of an index", "index", "SHA256SUMS", DEDUP, file_result, TEXT),
        ("evaluation set", "events.jsonl", "", EVALUATE, scores, TEXT),
        ("gin file", "run.gin", "", TRAIN, printed_result, TEXT),
    ]


def _long(folder):
    saved, part = folder / "saved", next((folder / "names").glob("part-*.parquet")).name
    variables = max(saved.rglob("variables.data*"), key=lambda path: path.stat().st_size)
    facts, weights = next(saved.rglob("*.json")), next((folder / "safetensors").glob("*.safetensors"))
    graph, search = f"{EMBED} --saved_model {{path}} {EMBEDDED}", "search --index {path} --mode=words river"
    ranked = "dedup --index {at}/index --threshold=0.9 --output {out} --greedy --order {path}"
    dump, later = (
        "knowledge --wikidata {path} --output {out}",
        f"{UPDATE} --archive {{path}} --articles {{at}}/later.jsonl",
    )
    posts = f"{EXTRACT} --articles {{at}}/articles.jsonl --posts {{path}}"
    cdx, bad = f"{EXTRACT} --warc {{at}}/pages.warc.gz --cdx {{path}}", "clean --articles {at}/extract --output {out}"
    return [
        ("SavedModel, graph", "saved", "saved_model.pb", graph, file_result, EVERY, True),
        ("SavedModel, variables", "saved", str(variables.relative_to(saved)), graph, file_result, EVERY, True),
        ("SavedModel, facts", "saved", str(facts.relative_to(saved)), graph, file_result, TEXT, True),
        ("safetensors", "safetensors", weights.name, f"{EMBED} --model {{path}} {EMBEDDED}", file_result, EVERY, True),
        ("ranking", "ranking.tsv", "", ranked, file_result, TEXT),
        ("topics", "topics/topics.tsv", "", f"{TOPICS} --topics_file {{path}} --output {{out}}", job_result, TEXT),
        ("index of a WARC file", "listed.cdxj", "", cdx, job_result, TEXT),
        ("posts", "posts.jsonl", "", posts, job_result, TEXT),
        ("bad words", "bad.txt", "", f"{bad} --bad_words {{path}} {ONE}", job_result, TEXT),
        ("Wikidata dump", "dump.json", "", dump, file_result, TEXT),
        ("Wikidata dump in bzip2", "dump.json.bz2", "", dump, file_result, EVERY),
        ("names, TSV", "names.tsv", "", f"{ENTITIES} --knowledge_base {{path}}", job_result, TEXT),
        ("names, Parquet", f"names/{part}", "", f"{ENTITIES} --knowledge_base {{path}}", job_result, EVERY),
        ("translations, TSV", "pairs.tsv", "", f"{TRANSLATIONS} --bitext {{path}}", job_result, TEXT),
        ("translations, TMX", "pairs.tmx", "", f"{TRANSLATIONS} --bitext {{path}}", job_result, TEXT),
        *(
            (f"words of an index, {name}", "searched", path, search, printed_result, EVERY, True)
            for name, path in table_files(folder / "searched", "terms", "articles").items()
        ),
        *(
            (f"archive, {name}", "archive", path, later, archive_result, EVERY, True)
            for name, path in table_files(folder / "archive", "seen", "articles", "runs", "terms").items()
        ),
    ]


def copied(target, place):
    """A copy of the source to mutate."""
    copy = place / target.source.name
    if target.source.is_dir():
        shutil.copytree(target.source, copy)
    else:
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(target.source, copy)
    return copy
