"""Mining of translations by BUCC's protocol: the pairs that are hidden among 20 times as many other news sentences.

    python benchmarks/bitext_mining.py prepare ../shared/data mining
    newsembed train --gin_file=runs/train_static.gin …           # the command that `prepare` prints
    newsembed evaluate --suite bucc --data mining/test --encoder trained=model:mining/model --output mining/scores
    python benchmarks/bitext_mining.py entities mining/test --entities work/entities
    python benchmarks/bitext_mining.py pairs newsroom/bitext.tsv finder --vocabulary work/vocabulary/vocab.txt

``prepare`` hides the pairs of every second document of NTREX-128 among monolingual sentences, 20 for each pair where
the data has so many, and writes them as BUCC distributes its sets: ``de-en.test.de``, ``.en`` and ``.gold``. The
monolingual sentences are those of the leads of the headlines (English, French, Russian, the few in Chinese) and the
German side of WMT 2021. The training data, mining/train, has the pairs of the other documents of NTREX with English,
and 5,000 pairs of Multi30k. ``entities`` scores vectors of linked entities alone. ``pairs`` writes training data for an
encoder that finds pairs in one's own articles from a table of known pairs, and every fifth of them to known.tsv.
"""

import argparse
import collections
import gzip
import hashlib
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from newsembed.formats.manifest import DataSet, write_manifest
from newsembed.formats.records import Article, doc_id_to_words
from newsembed.formats.tfrecords.writer import TFRecordShardWriter
from newsembed.tasks.sentences import split_text
from newsembed.tasks.triplets import TRIPLETS
from newsembed.tasks.vocabulary import Vocabulary, normalize_for_learning

NTREX = {
    "en": "newstest2019-src.eng",
    "de": "newstest2019-ref.deu",
    "fr": "newstest2019-ref.fra",
    "ru": "newstest2019-ref.rus",
    "zh": "newstest2019-ref.zho-CN",
    "es": "newstest2019-ref.spa",
    "it": "newstest2019-ref.ita",
    "ar": "newstest2019-ref.arb",
    "hi": "newstest2019-ref.hin",
    "sw": "newstest2019-ref.swa",
}
TESTED = ("de", "fr", "ru", "zh")
NOISE = 20
TRAINED = (*TESTED, "es", "it")
MULTI30K = ("de", "fr")
CAPTIONS = 5_000  # of each, so that news is half of the steps
GERMAN = (
    "sources/newstest2021.de-en.src.de",
    "references/newstest2021.en-de.ref.A.de",
    "sources/newstest2021.de-fr.src.de",
)
_PIECES = 24_000


def ntrex(root: Path) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The sentences by language: those of hidden documents, and those of the others; line i translates line i."""
    documents, texts = ntrex_documents(root / "parallel/ntrex128")
    number = {name: place for place, name in enumerate(dict.fromkeys(documents))}
    is_hidden = [number[name] % 2 == 0 for name in documents]
    halves: tuple[dict[str, list[str]], dict[str, list[str]]] = {}, {}
    for language, lines in texts.items():
        for line, hidden in zip(lines, is_hidden, strict=True):
            halves[not hidden].setdefault(language, []).append(line)
    return halves


def ntrex_documents(folder: Path) -> tuple[list[str], dict[str, list[str]]]:
    """The document of each sentence, and the sentences by language."""
    documents = (folder / "DOCUMENT_IDS.tsv").read_text(encoding="utf-8").split()
    texts = {}
    for language, name in NTREX.items():
        lines = (folder / f"NTREX-128/{name}.txt").read_text(encoding="utf-8").rstrip("\n").split("\n")
        assert len(lines) == len(documents), name
        texts[language] = [" ".join(line.split()) for line in lines]
    return documents, texts


def headlines(root: Path) -> dict[str, list[str]]:
    """Sentences of the leads of the headlines by language, without repeats, in an order drawn by their digests."""
    import zstandard
    from newsembed.beam_pipelines.clean.languages import probabilities

    found: dict[str, set[str]] = collections.defaultdict(set)
    with (root / "articles/newsapi-headlines.jsonl.zst").open("rb") as raw:
        for line in io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(raw), "utf-8"):
            record = json.loads(line)
            text = " ".join((record.get("description") or "").split())
            if not text or text.endswith(("…", "...")):
                continue
            is_rare = sum("\u4e00" <= letter <= "\u9fff" for letter in text) > 10
            if not is_rare and hashlib.md5(text.encode(), usedforsecurity=False).digest()[0] % 2:
                continue  # half of the others are enough
            likely = probabilities(text)
            language = max(likely, key=lambda name: likely[name], default="")
            if language in TESTED or language == "en":
                found[language] |= {part for _, part in split_text(text) if len(part) >= (10 if is_rare else 30)}
    return {language: sorted(texts, key=_key) for language, texts in found.items()}


def _key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def prepare(root: Path, output: Path) -> None:
    """Writes the test sets and the training data, and prints the command that trains."""
    hidden, other = ntrex(root)
    news = headlines(root)
    wmt = root / "parallel/wmt21_news/txt"
    german = {" ".join(line.split()) for name in GERMAN for line in (wmt / name).read_text("utf-8").split("\n") if line}
    news["de"] = sorted(german | set(news.get("de", [])), key=_key)
    (output / "test").mkdir(parents=True, exist_ok=True)
    for language in TESTED:
        most = NOISE * len(hidden["en"])
        noise = {tag: news[tag][:most] for tag in (language, "en")}
        print(f"{language}-en: {len(hidden['en'])} pairs, noise", {tag: len(texts) for tag, texts in noise.items()})
        _write_test(output / "test", language, (hidden[language], hidden["en"]), (noise[language], noise["en"]))
    pairs = dict(_training_pairs(root, other))
    texts = [text for rows in pairs.values() for row in rows for text in row]
    monolingual = [text for found in news.values() for text in found[NOISE * len(hidden["en"]) :][:20_000]]
    _write_vocabulary(output / "vocab.txt", texts + monolingual)
    _write_examples(output / "train", pairs, Vocabulary.load(str(output / "vocab.txt")))


def _write_test(folder: Path, language: str, pairs: Sequence[Sequence[str]], noise: Sequence[Sequence[str]]) -> None:
    stem = f"{language}-en.test"
    ids: list[list[str]] = []
    for side, texts, others in zip((language, "en"), pairs, noise, strict=True):
        rows = [*((text, True) for text in texts), *((text, False) for text in others)]
        order = sorted(range(len(rows)), key=lambda number: _key(f"{side} {rows[number][0]} {number}"))
        name = {number: f"{side}-{place:06d}" for place, number in enumerate(order, 1)}
        ids.append([name[number] for number in range(len(texts))])
        lines = (f"{name[number]}\t{rows[number][0]}\n" for number in order)
        (folder / f"{stem}.{side}").write_text("".join(lines), encoding="utf-8")
    gold = sorted(zip(*ids, strict=True))
    (folder / f"{stem}.gold").write_text("".join(f"{left}\t{right}\n" for left, right in gold), encoding="utf-8")


def _training_pairs(root: Path, other: dict[str, list[str]]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    for language in TRAINED:
        yield f"{language}-en", list(zip(other[language], other["en"], strict=True))
    folder = root / "parallel/multi30k/data/task1/raw"
    captions = {
        language: gzip.decompress((folder / f"train.{language}.gz").read_bytes()).decode().split("\n")[:CAPTIONS]
        for language in ("en", *MULTI30K)
    }
    for language in MULTI30K:
        yield f"{language}-en-x-multi30k", list(zip(captions[language], captions["en"], strict=True))


def _write_vocabulary(path: Path, texts: Sequence[str]) -> None:
    from newsembed.beam_pipelines.vocabulary_learning import WordCount, learn_pieces

    counts: collections.Counter[str] = collections.Counter()
    for text in normalize_for_learning(texts):
        counts.update(text.split())
    words = [WordCount(word, count) for word, count in sorted(counts.items())]
    learned = learn_pieces(lambda: words, _PIECES, 2, 6_000)
    path.write_text("".join(f"{piece}\n" for piece in learned.pieces), encoding="utf-8")
    print(f"vocabulary: {len(learned.pieces)} pieces, {learned.alphabet} letters")


def _write_examples(folder: Path, pairs: dict[str, list[tuple[str, str]]], vocabulary: Vocabulary) -> None:
    counts, number = {}, 0
    for language, rows in pairs.items():
        data_set = DataSet(TRIPLETS.name, language)
        sides = [vocabulary.encode_documents([""] * len(rows), side, 64) for side in zip(*rows, strict=True)]
        with TFRecordShardWriter(f"{folder}/{data_set.stream}/part-00000-of-00001.tfrecord") as writer:
            for anchor, positive in zip(*sides, strict=True):
                number += 1
                ids = [doc_id_to_words(f"{3 * number + place:016x}") for place in range(3)]
                record = dict(zip(("anchor_doc_id", "positive_doc_id", "negative_doc_id"), ids, strict=True))
                record |= {"anchor_tokens": anchor, "positive_tokens": positive, "negative_tokens": positive}
                record |= {"augmentation": 0, "translated": 0, "language": language}
                writer.write(record, TRIPLETS.features)
        counts[str(data_set)] = len(rows)
    write_manifest(str(folder), {"digest": "bitext_mining", "examples": counts})
    print(f"train: {sum(counts.values())} pairs in {len(counts)} sets")
    lengths = {f"{name}_tokens": 48 for name in ("anchor", "positive", "negative")}
    print(f"""newsembed train --gin_file=runs/train_static.gin '--gin.MODEL_DIR="{folder.parent}/model"' \\
  '--gin.DATA_DIR="{folder}"' '--gin.VOCABULARY_PATH="{folder.parent}/vocab.txt"' \\
  '--gin.MIXTURE_OR_TASK_NAME="triplets"' "--gin.TASK_FEATURE_LENGTHS={lengths}" --gin.TEXT_LENGTH=64 \\
  --gin.Contrastive.hard_negatives=False --gin.Contrastive.symmetric=True --gin.LEAD_LENGTH=0 \\
  --gin.EncoderConfig.hidden_size=256 --gin.EncoderConfig.embedding_size=256 --gin.BATCH_SIZE=256 \\
  --gin.TRAIN_STEPS=600 --gin.CHECKPOINT_PERIOD=100""")


def of_table(table: Path, output: Path, vocabulary: Path) -> None:
    """Writes training data from a TSV of two languages and two sentences; every fifth line goes to ``known.tsv``."""
    lines = table.read_text(encoding="utf-8").splitlines()
    output.mkdir(parents=True, exist_ok=True)
    (output / "known.tsv").write_text("".join(f"{line}\n" for line in lines[::5]), encoding="utf-8")
    pairs: dict[str, list[tuple[str, str]]] = collections.defaultdict(list)
    for number, line in enumerate(lines):
        source, target, left, right = line.split("\t")
        if number % 5:
            pairs[f"{source}-{target}"].append((left, right))
    (output / "vocab.txt").write_bytes(vocabulary.read_bytes())
    _write_examples(output / "train", pairs, Vocabulary.load(str(vocabulary)))


def read_test(folder: Path) -> Iterator[tuple[str, list[str], list[str], set[tuple[int, int]]]]:
    """Yields the language, both sides and the gold pairs of rows of each test set."""
    for path in sorted(folder.glob("*-en.test.gold")):
        language = path.name.partition("-")[0]
        sides, rows = [], []
        for side in (language, "en"):
            table = [line.split("\t") for line in path.with_suffix(f".{side}").read_text("utf-8").splitlines()]
            sides.append([text for _, text in table])
            rows.append({key: row for row, (key, _) in enumerate(table)})
        lines = (line.split("\t") for line in path.read_text("utf-8").splitlines())
        yield language, sides[0], sides[1], {(rows[0][left], rows[1][right]) for left, right in lines}


def score_entities(folder: Path, entities: str) -> None:
    """Prints the scores of vectors of linked entities."""
    from newsembed.beam_pipelines.entities import tables
    from newsembed.beam_pipelines.entities.linking import Linker
    from newsembed.beam_pipelines.entities.mentions import find_mentions
    from newsembed.beam_pipelines.vectors.spaces import Statistics, entity_vector
    from newsembed.evaluation.mining import mining_scores

    table = tables.read_embeddings(f"{entities}/entities.npy")
    linker = Linker(tables.read_aliases(f"{entities}/aliases.tsv"), table.rows())
    for language, left, right, gold in read_test(folder):
        statistics, linked = Statistics.empty(len(table.keys)), []
        for tag, texts in ((language, left), ("en", right)):
            made = (Article("0" * 16, "", "", "", text, language=tag) for text in texts)
            linked.append([find_mentions(article, linker, {}, 0) for article in made])
        for one in (*linked[0], *linked[1]):
            statistics.documents += 1
            statistics.entity_documents[list(one.entities)] += 1
        rarity = statistics.rarity()
        sides = []
        for mentions in linked:
            vectors = np.zeros((len(mentions), table.values.shape[1]), np.float32)
            for row, one in enumerate(mentions):
                if (vector := entity_vector(one, table.values, rarity)) is not None and vector.any():
                    vectors[row] = vector / np.linalg.norm(vector)
            sides.append(vectors)
        scores = mining_scores(sides[0], sides[1], frozenset(gold))
        print(f"entities {language}-en", {name: round(value, 3) for name, value in scores.items()}, flush=True)


def main() -> None:
    """Runs one of the steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("prepare", "entities", "pairs"))
    parser.add_argument("data", type=Path, help="../shared/data to prepare, a table of pairs, or the test sets")
    parser.add_argument("output", type=Path, nargs="?", help="folder of what `prepare` or `pairs` makes")
    parser.add_argument("--entities", help="folder that `newsembed entities` wrote of other articles")
    parser.add_argument("--vocabulary", type=Path, help="vocab.txt for `pairs`")
    options = parser.parse_args()
    if options.step == "prepare":
        prepare(options.data, options.output)
    elif options.step == "pairs":
        of_table(options.data, options.output, options.vocabulary)
    else:
        score_entities(options.data, options.entities)


if __name__ == "__main__":
    main()
