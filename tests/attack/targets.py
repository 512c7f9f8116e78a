"""The files that commands read, each with the command that reads it: what the fuzzer of inputs mutates."""

import dataclasses
import gzip
import hashlib
import io
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import mutators

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
      command: arguments of `newsembed`, from the copy and the output.
      result: what the command computed, from the output and the printed text.
      mutations: those that are tried.
      guarded: whether digests cover the file, so that no change of it may be accepted.
      slow: whether only the long form tries it.
    """

    name: str
    source: Path
    file: str
    command: Callable[[Path, Path], Sequence[object]]
    result: Result
    mutations: dict[str, mutators.Mutation]
    guarded: bool = False
    slow: bool = False


def rows(count: int = 8) -> list[dict[str, Any]]:
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


def json_lines(values: Sequence[dict[str, Any]]) -> str:
    """JSONL."""
    return "".join(json.dumps(value) + "\n" for value in values)


def job_result(output: Path, _printed: str) -> Any:
    """Counts of a job and the digests of its files."""
    manifest = json.loads((output / "manifest.json").read_text())
    return {"counts": manifest["counts"], "sha256": manifest["sha256"]}


def file_result(output: Path, printed: str) -> Any:
    """Digests of what a command wrote, and what it printed, without the place and the time."""
    paths = [output] if output.is_file() else sorted(path for path in output.rglob("*") if path.is_file())
    text = printed.replace(str(output.parent), "")
    return [(path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in paths], text


def scores(output: Path, _printed: str) -> Any:
    """The scores of an evaluation."""
    found = json.loads((output / "results.json").read_text())
    return json.dumps(found, sort_keys=True).replace(str(output.parent), "")


def archive(path: Path) -> bytes:
    """Writes a WARC file of pages, a feed and an image; returns its index, CDXJ."""
    from newsembed.beam_pipelines.crawl.fetch import Fetched
    from newsembed.beam_pipelines.crawl.warc import WarcWriter

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


def mined(folder: Path) -> None:
    """The jobs up to clean articles, with a vocabulary and hand-made tables of entities and words."""
    import numpy as np
    from newsembed.beam_pipelines.entities import tables
    from newsembed.launch import cli

    (folder / "articles.jsonl").write_text(json_lines(rows()))
    commands = (
        ["extract", "--articles", folder / "articles.jsonl", "--output", folder / "extract", ONE],
        ["clean", "--articles", folder / "extract", "--output", folder / "clean", ONE],
    )
    for command in commands:
        assert cli.main([str(part) for part in command]) == 0
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


def written_model(folder: Path) -> None:
    """A tiny model in a folder as the trainer leaves it, with digests of its checkpoint."""
    import jax
    import numpy as np
    import orbax.checkpoint as ocp
    from flax import linen as nn
    from newsembed.formats.digests import write_sums
    from newsembed.models.encoders.news import EncoderConfig, NewsEncoder

    folder.mkdir()
    vocabulary = "".join(f"{piece}\n" for piece in PIECES).encode()
    (folder / "vocab.txt").write_bytes(vocabulary)
    size = {"hidden_size": 8, "num_layers": 1, "num_heads": 2, "mlp_size": 16, "max_length": 32, "embedding_size": 4}
    config = EncoderConfig(vocab_size=len(PIECES), num_topics=2, **size)
    description = {"encoder": config.to_dict(), "vocabulary_sha256": hashlib.sha256(vocabulary).hexdigest()}
    (folder / "model.json").write_text(json.dumps(description))
    shapes = jax.eval_shape(NewsEncoder(config).init, jax.random.key(0), np.zeros((1, 4), np.int32))["params"]
    generator = np.random.default_rng(0)
    params = jax.tree.map(lambda spec: generator.normal(0, 0.5, spec.shape).astype(np.float32), nn.meta.unbox(shapes))
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(folder / "checkpoints/10/params", params)
    write_sums(str(folder / "checkpoints/10"))


def written_index(folder: Path) -> None:
    """An index of 12 articles."""
    import datetime

    import numpy as np
    from newsembed.formats.index import IndexedDocument, StoredIndex, write_index

    vectors = np.random.default_rng(0).standard_normal((12, 8)).astype(np.float32)
    vectors[6:] = vectors[:6] + 0.01
    documents = tuple(
        IndexedDocument(f"{n:016x}", f"http://s.example/{n}", "s", f"Title {n}", datetime.date(2020, 1, 1 + n % 6))
        for n in range(12)
    )
    write_index(str(folder), StoredIndex(vectors, documents, "model:a", "digest"))


GIN = """include "runs/train_demo.gin"
TRAIN_STEPS = 3
LEARNING_RATE = 0.001
Contrastive.hard_negatives = True
"""
TMX = """<?xml version="1.0" encoding="UTF-8"?>
<tmx version="1.4"><header srclang="en" datatype="plaintext"/><body>{}</body></tmx>
"""


def written_texts(folder: Path) -> None:
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
    (folder / "events.jsonl").write_text(json_lines(events))
    (folder / "run.gin").write_text(GIN)
    (folder / "seeds.txt").write_text("http://a.example/\n")


def crawl_state(folder: Path) -> None:
    """The state of a crawl of one site."""
    import datetime

    from newsembed.beam_pipelines.crawl.sitemaps import Entry
    from newsembed.beam_pipelines.crawl.state import UrlRecord, write_state

    day = datetime.date(2026, 1, 1)
    links = (Entry("http://a.example/1", day), Entry("http://a.example/2", None))
    known = {"http://a.example/": UrlRecord('"e"', "", "0" * 40, day, "page", links)}
    write_state(str(folder / "state/fetch-a.example.json.gz"), known, day)


def built(folder: Path, *, slow: bool = False) -> list[Target]:
    """All targets, with their files written below a folder."""
    from newsembed.formats import parquet
    from newsembed.formats.records import Article
    from newsembed.launch import cli

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
    (folder / "page.html").write_bytes((folder / "pages.warc").read_bytes())
    if slow:
        assert cli.main(["export", "--model", str(folder / "model"), "--output", str(folder / "saved")]) == 0
        command = ["export", "--model", folder / "model", "--format=safetensors", "--output", folder / "safetensors"]
        assert cli.main([str(part) for part in command]) == 0
    import more_targets  # it imports this module

    more = more_targets.built(folder) if slow else []
    return [*_of_mining(folder), *_of_use(folder), *(_of_exports(folder) if slow else ()), *more]


def _of_mining(folder: Path) -> list[Target]:
    def extract(option: str) -> Callable[[Path, Path], list[object]]:
        return lambda path, output: ["extract", f"--{option}", path, "--output", output, ONE]

    def pack(path: Path, output: Path, *more: object) -> list[object]:
        vocabulary = ["--vocabulary", folder / "vocab.txt"]
        return ["pack", "--articles", folder / "clean", *vocabulary, *more, "--output", output, ONE, "--max_length=64"]

    def vectors(option: str, *more: object) -> Callable[[Path, Path], list[object]]:
        fixed = ["vectors", "--articles", folder / "clean", "--entities", folder / "entities"]
        return lambda path, output: [*fixed, f"--{option}", path, *more, "--output", output, ONE]

    return [*_of_articles(folder, extract), *_of_tables(folder, pack, vectors)]


def _of_articles(folder: Path, extract: Any) -> list[Target]:
    def with_vocabulary(path: Path, output: Path) -> list[object]:
        given = ["pack", "--articles", folder / "clean", "--vocabulary", path]
        return [*given, "--output", output, ONE, "--max_length=64"]

    every, text = mutators.EVERY, mutators.TEXT
    (shard,) = (folder / "clean/articles").glob("*.parquet")
    clean = ["pack", "--vocabulary", folder / "vocab.txt", "--max_length=64", ONE, "--articles"]
    return [
        Target("articles, JSONL", folder / "articles.jsonl", "", extract("articles"), job_result, text),
        Target("articles, JSONL in gzip", folder / "articles.jsonl.gz", "", extract("articles"), job_result, every),
        Target(
            *("articles, Parquet", folder / "articles.parquet", "", extract("articles"), job_result, every),
            guarded=True,
        ),
        Target("WARC in gzip", folder / "pages.warc.gz", "", extract("warc"), job_result, every),
        Target("WARC and HTML", folder / "pages.warc", "", extract("warc"), job_result, text),
        Target("vocabulary", folder / "vocab.txt", "", with_vocabulary, job_result, text),
        Target(
            *("manifest of a job", folder / "clean", "manifest.json"),
            lambda path, output: [*clean, path, "--output", output],
            *(job_result, text),
        ),
        Target(
            *("shard of a job", folder / "clean", f"articles/{shard.name}"),
            lambda path, output: [*clean, path, "--output", output],
            *(job_result, every),
            guarded=True,
        ),
    ]


def _of_tables(folder: Path, pack: Any, vectors: Any) -> list[Target]:
    every, text = mutators.EVERY, mutators.TEXT
    entities, aliases = folder / "entities/entities.npy", folder / "entities/aliases.tsv"
    return [
        Target(
            *("bitext, TSV", folder / "pairs.tsv", ""),
            lambda path, out: pack(path, out, "--bitext", path),
            job_result,
            text,
        ),
        Target(
            *("bitext, TMX", folder / "pairs.tmx", ""),
            lambda path, out: pack(path, out, "--bitext", path),
            job_result,
            text,
        ),
        Target(
            *("bitext, aligned", folder / "pairs.de", ""),
            lambda path, out: pack(path, out, "--bitext", f"{folder / 'pairs.en'},{path}"),
            *(job_result, text),
        ),
        Target("aliases", aliases, "", vectors("alias_file", "--entity_embeddings", entities), job_result, text),
        Target(
            *("embeddings of words", folder / "entities", "words.npy"),
            lambda path, out: vectors("word_embeddings")(path / "words.npy", out),
            *(job_result, every),
        ),
        Target(
            *("words beside embeddings", folder / "entities", "words.tsv"),
            lambda path, out: vectors("word_embeddings")(path / "words.npy", out),
            *(job_result, text),
        ),
        Target(
            *("state of a crawl", folder / "state", "fetch-a.example.json.gz"),
            lambda path, out: [
                *("crawl", "--seeds", folder / "seeds.txt", "--state", path, "--output", out, ONE),
                *("--max_attempts=1", "--delay_seconds=0", "--resolve=*.example=127.0.0.1:9"),
                "--allow_private_addresses=true",
            ],
            *(lambda _output, _printed: "no host answers", every),
        ),
    ]


def _of_use(folder: Path) -> list[Target]:
    def embed(path: Path, output: Path) -> list[object]:
        return ["embed", "--model", path, "--input", folder / "articles.jsonl", "--output", output / "a.parquet"]

    def dedup(path: Path, output: Path) -> list[object]:
        return ["dedup", "--index", path, "--threshold=0.9", "--output", output]

    def evaluate(path: Path, output: Path) -> list[object]:
        return ["evaluate", "--encoder=tfidf=tfidf", "--suite=events", "--data", path, "--output", output]

    def train(path: Path, output: Path) -> list[object]:
        places = [f'--gin.{name}="{output}"' for name in ("MODEL_DIR", "DATA_DIR", "VOCABULARY_PATH")]
        return ["train", f"--gin_file={path}", *places, f'--gin.INITIAL_CHECKPOINT_PATH="{output}"']

    every, text, model, index = mutators.EVERY, mutators.TEXT, folder / "model", folder / "index"
    checkpoint = max((model / "checkpoints/10").rglob("d/*"), key=lambda path: path.stat().st_size)
    sums = "checkpoints/10/SHA256SUMS"
    return [
        Target("model.json", model, "model.json", embed, file_result, text),
        Target("vocabulary of a model", model, "vocab.txt", embed, file_result, text, guarded=True),
        Target("checkpoint", model, str(checkpoint.relative_to(model)), embed, file_result, every, guarded=True),
        Target("digests of a checkpoint", model, sums, embed, file_result, text),
        Target("index.json", index, "index.json", dedup, file_result, text, guarded=True),
        Target("embeddings of an index", index, "part-00001/embeddings.npy", dedup, file_result, every, guarded=True),
        Target("documents of an index", index, "part-00001/documents.parquet", dedup, file_result, every, guarded=True),
        Target("evaluation set", folder / "events.jsonl", "", evaluate, scores, text),
        Target("gin file", folder / "run.gin", "", train, lambda _output, printed: printed, text),
    ]


def _of_exports(folder: Path) -> list[Target]:
    def embed(option: str) -> Callable[[Path, Path], list[object]]:
        articles = folder / "articles.jsonl"
        return lambda path, out: ["embed", f"--{option}", path, "--input", articles, "--output", out / "a.parquet"]

    every, text = mutators.EVERY, mutators.TEXT
    saved, safetensors = folder / "saved", folder / "safetensors"
    variables = max(saved.rglob("variables.data*"), key=lambda path: path.stat().st_size)
    facts = next(path for path in saved.rglob("*.json"))
    weights = next(safetensors.glob("*.safetensors"))
    guarded: dict[str, Any] = {"guarded": True, "slow": True}
    return [
        Target("SavedModel, graph", saved, "saved_model.pb", embed("saved_model"), file_result, every, **guarded),
        Target(
            *("SavedModel, variables", saved, str(variables.relative_to(saved)), embed("saved_model")),
            *(file_result, every),
            **guarded,
        ),
        Target(
            *("SavedModel, facts", saved, str(facts.relative_to(saved)), embed("saved_model"), file_result, text),
            **guarded,
        ),
        Target("safetensors", safetensors, weights.name, embed("model"), file_result, every, **guarded),
    ]


def copied(target: Target, place: Path) -> Path:
    """A copy of the source to mutate."""
    copy = place / target.source.name
    if target.source.is_dir():
        shutil.copytree(target.source, copy)
    else:
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(target.source, copy)
    return copy
