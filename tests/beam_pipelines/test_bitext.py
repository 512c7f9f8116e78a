"""Translation pairs from TSV, TMX and aligned files: every pair once, every loss counted, broken and hostile files."""

import gzip
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from newsembed.beam_pipelines import bitext
from newsembed.beam_pipelines.bitext import aligned, pairs, tmx, tsv
from newsembed.beam_pipelines.bitext.pairs import BitextPart, language_tag
from newsembed.beam_pipelines.shards import Phase, Shard
from newsembed.errors import InputError

PARALLEL = Path(__file__).parents[2] / "../shared/data/parallel"  # next to the clone


@pytest.fixture
def read(tmp_path):
    """Reads parts, each in its own shard, which fails if its numbers do not add up. Returns pairs and counts."""
    runs = iter(range(1_000_000))

    def run(parts):
        found, counts = [], []
        phase = Phase(str(tmp_path / f"work{next(runs)}"), "p", len(parts))
        for index, part in enumerate(parts):
            with Shard(phase, index) as shard:
                for pair in bitext.read_pairs(shard, part):
                    shard.written()
                    found.append(pair)
            counts.append(shard.counts())
        return found, {
            "in": sum(count.read for count in counts),
            **{name: number for count in counts for name, number in {**count.rejected, **count.failed}.items()},
        }

    return run


def texts_of(found):
    return [(pair.languages, pair.source, pair.target) for pair in found]


@pytest.mark.parametrize(
    ("given", "tag"),
    [
        ("EN", "en"),
        ("pt_br", "pt-BR"),
        ("ZH-hant-tw", "zh-Hant-TW"),
        ("es-419", "es-419"),
        ("sl-ROZAJ-biske", "sl-rozaj-biske"),
        ("de-x-GB-Nord", "de-x-gb-nord"),
        (" fr ", "fr"),
        ("deu", "de"),
        ("ger-AT", "de-AT"),
        ("eng_Latn", "en-Latn"),
        ("fil", "fil"),
        ("mos", "mos"),
        ("", None),
        ("x/y", None),
        ("englishlanguage", None),
        ("*all*", None),
    ],
)
def test_language_tags_get_the_case_and_the_shortest_code_of_bcp_47(given, tag):
    assert language_tag(given) == tag


# TSV


def test_ranges_of_a_file_read_every_line_once(tmp_path, read):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"en\tde\tsource {number}\t{'x' * (1 + number % 13)}\n" for number in range(50)))
    for size in (1, 7, 64, 10_000):
        found, counts = read(tsv.plan(str(path), size))
        assert [pair.source for pair in found] == [f"source {number}" for number in range(50)]
        assert counts == {"in": 50}


def test_broken_lines_are_counted_by_reason(tmp_path, read, monkeypatch):
    monkeypatch.setattr(pairs, "MOST_BYTES", 64)
    path = tmp_path / "pairs.tsv"
    lines = [
        b"\xef\xbb\xbfEN\tpt_br\ta\tb",  # a byte order mark, and tags as people write them
        b"en\tde\tonly three",
        b"x/y\tde\ta\tb",
        b"en\t\ta\tb",
        b"en\tEN\ta\tb",
        b"en\tde\t \tb",
        b"",
        b"en\tde\t\xff\tb",
        b"en\tde\t" + b"a" * 200 + b"\tb",
        "en\tde\tone\u2028line\tb\r".encode(),
    ]
    path.write_bytes(b"\n".join(lines))
    found, counts = read(bitext.plan_parts(str(path)))
    assert texts_of(found) == [("en-pt-BR", "a", "b"), ("en-de", "one\u2028line", "b")]
    assert counts == {
        "in": 9,
        "broken_record": 3,
        "same_language": 1,
        "empty_side": 1,
        "undecodable": 1,
        "too_large": 1,
    }


def test_a_truncated_archive_is_a_dead_letter(tmp_path, read):
    whole = gzip.compress(b"en\tde\ta\tb\n" * 10_000, compresslevel=0)
    (tmp_path / "cut.tsv.gz").write_bytes(whole[: len(whole) // 2])
    found, counts = read(bitext.plan_parts(str(tmp_path / "cut.tsv.gz")))
    assert found
    assert counts == {"in": len(found) + 1, "truncated": 1}


# Aligned files


def write_aligned(folder, left, right, names=("c.en", "c.de")):
    paths = [folder / name for name in names]
    for path, text in zip(paths, (left, right), strict=True):
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return ",".join(map(str, paths))


TEXT_LINE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), max_size=12)


@settings(max_examples=60, deadline=None)
@given(lines=st.lists(st.tuples(TEXT_LINE, TEXT_LINE), max_size=20), size=st.integers(1, 80), ended=st.booleans())
def test_aligned_files_give_every_pair_once_however_they_are_cut(tmp_path_factory, lines, size, ended):
    folder = tmp_path_factory.mktemp("aligned")
    ended = ended or (bool(lines) and not all(lines[-1]))  # an empty last line is one only if it is ended
    sides = ["\n".join(line[side] for line in lines) + ("\n" if ended and lines else "") for side in (0, 1)]
    write_aligned(folder, *sides)
    found, read, rejected = [], 0, 0
    for index, part in enumerate(aligned.plan(str(folder / "c.en"), str(folder / "c.de"), size)):
        with Shard(Phase(str(folder / "work"), "p", 1), index) as shard:
            for pair in aligned.read(shard, part):
                shard.written()
                found.append((pair.source, pair.target))
        read += shard.counts().read
        rejected += shard.counts().rejected.get("empty_side", 0)
    first = "\ufeff"  # a byte order mark is none of the text
    wanted = [
        (left.removeprefix(first), right.removeprefix(first)) if n == 0 else (left, right)
        for n, (left, right) in enumerate(lines)
    ]
    assert found == [pair for pair in wanted if pair[0].strip() and pair[1].strip()]
    assert read == len(lines) == len(found) + rejected


@pytest.mark.parametrize("names", [("c.en", "c.de"), ("src.EN.gz", "ref.A.de.gz"), ("new.eng.txt", "new.deu.txt.gz")])
def test_the_suffix_names_the_language(tmp_path, read, names):
    given = write_aligned(tmp_path, "a\n\nc\n", "x\ny\nz\n", names)
    found, counts = read(bitext.plan_parts(given))
    assert texts_of(found) == [("en-de", "a", "x"), ("en-de", "c", "z")]
    assert counts == {"in": 3, "empty_side": 1}
    assert len({pair.key for pair in found}) == 2


def test_a_broken_line_of_aligned_files_fails_the_pair(tmp_path, read):
    (tmp_path / "c.en").write_bytes(b"a\n\xff\nc\n\xff\n")
    (tmp_path / "c.de").write_bytes(b"x\ny\n\xfe\n\xff\n")
    found, counts = read(bitext.plan_parts(f"{tmp_path}/c.en,{tmp_path}/c.de"))
    assert texts_of(found) == [("en-de", "a", "x")]
    assert counts == {"in": 4, "undecodable": 3}


@pytest.mark.parametrize(
    ("names", "right", "problem"),
    [
        (("c.en", "c.de"), "x\ny\n", "got 3 and 2 lines, expected the same number"),
        (("c.en", "c.de.gz"), "x\ny\nz\n\n", "got 3 and 4 lines, expected the same number"),
        (("c.en", "d.EN"), "x\ny\nz\n", "both files are named en"),
        (("c.en", "c.txt"), "x\ny\nz\n", r"c\.txt.*the name has no language"),
        (("c.en", "german"), "x\ny\nz\n", "german.*the name has no language"),
    ],
)
def test_files_that_are_not_aligned_are_refused(tmp_path, names, right, problem):
    with pytest.raises(InputError, match=problem) as error:
        bitext.plan_parts(write_aligned(tmp_path, "a\nb\nc\n", right, names))
    assert error.value.field == "--bitext"
    assert error.value.remedy


def test_a_truncated_archive_of_aligned_lines_is_refused(tmp_path):
    write_aligned(tmp_path, "a\n", "x\n")
    (tmp_path / "c.de.gz").write_bytes(gzip.compress(b"x\n")[:-4])
    with pytest.raises(InputError, match="cannot be read to its end"):
        bitext.plan_parts(f"{tmp_path}/c.en,{tmp_path}/c.de.gz")


@pytest.mark.real_data
def test_real_aligned_files(read):
    raw = PARALLEL / "multi30k/data/task1/raw"
    if not raw.exists():
        pytest.skip("../shared/data/parallel is absent")
    found, counts = read(bitext.plan_parts(f"{raw}/val.en.gz,{raw}/val.fr.gz"))
    assert counts == {"in": 1014}
    assert {pair.languages for pair in found} == {"en-fr"}
    assert all(pair.source.strip() and pair.target.strip() for pair in found)


# TMX


def tmx_of(*units, header='<header srclang="en"/>', declaration='<?xml version="1.0"?>', doctype=""):
    return f"{declaration}{doctype}<tmx version='1.4'>{header}<body>{''.join(units)}</body></tmx>"


def unit(attributes="", **texts):
    variants = "".join(
        f'<tuv xml:lang="{language.replace("_", "-")}"><seg>{text}</seg></tuv>' for language, text in texts.items()
    )
    return f"<tu {attributes}>{variants}</tu>"


def write_tmx(folder, text, name="m.tmx", encoding="utf-8"):
    raw = text.encode(encoding)
    (folder / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return str(folder / name)


@pytest.mark.parametrize(
    ("name", "encoding", "declared"),
    [("m.tmx", "utf-8", "utf-8"), ("m.TMX.gz", "utf-8", "utf-8"), ("m.tmx", "utf-16", "utf-16")],
)
def test_units_pair_their_source_with_each_other_language(tmp_path, read, name, encoding, declared):
    text = tmx_of(
        unit(en="one", de="eins", fr="un"),
        unit(de="zwei", en_GB="two"),
        unit('srclang="de"', en="three", de="dréi &amp; &#x20AC;"),
        unit('srclang="*all*"', fr="quatre", en="four"),
        unit(it="cinque", es="cinco"),
        declaration=f'<?xml version="1.0" encoding="{declared}"?>',
        doctype='<!DOCTYPE tmx SYSTEM "tmx14.dtd">',
    )
    found, counts = read(bitext.plan_parts(write_tmx(tmp_path, text, name, encoding)))
    assert texts_of(found) == [
        ("en-de", "one", "eins"),
        ("en-fr", "one", "un"),
        ("en-GB-de", "two", "zwei"),
        ("de-en", "dréi & €", "three"),
        ("fr-en", "quatre", "four"),
        ("it-es", "cinque", "cinco"),
    ]
    assert counts == {"in": 6}
    assert len({pair.key for pair in found}) == 6


def test_codes_in_a_segment_are_dropped(tmp_path, read):
    marked = (
        'Click <bpt i="1">&lt;b&gt;</bpt><hi>here <ph>{0}<sub>foot</sub>x</ph>now</hi>'
        '<ept i="1">&lt;/b&gt;</ept>\n  please'
    )
    noted = (
        '<tu><note>no text</note><tuv lang="EN"><prop type="x">no</prop><seg>a</seg></tuv>'
        '<tuv lang="de_at"><seg>b</seg></tuv></tu>'
    )
    found, _ = read(bitext.plan_parts(write_tmx(tmp_path, tmx_of(unit(en=marked, de="<![CDATA[a < b]]>"), noted))))
    assert texts_of(found) == [("en-de", "Click here now please", "a < b"), ("en-de-AT", "a", "b")]


def test_units_that_are_not_pairs_are_counted_by_reason(tmp_path, read, monkeypatch):
    monkeypatch.setattr(tmx, "MOST_BYTES", 64)
    no_language = "<tu><tuv xml:lang='en'><seg>a</seg></tuv><tuv><seg>b</seg></tuv></tu>"
    text = tmx_of(
        unit(en="a"),
        "<tu/>",
        no_language,
        unit(en="a", de=" "),
        unit(en="a", EN="b", de="c"),
        unit(en="a" * 65, de="b"),
    )
    found, counts = read(bitext.plan_parts(write_tmx(tmp_path, text)))
    assert texts_of(found) == [("en-de", "a", "c")]
    assert counts == {
        "in": 7,
        "missing_field": 2,
        "broken_record": 1,
        "empty_side": 1,
        "same_language": 1,
        "too_large": 1,
    }


@pytest.mark.parametrize(("cut", "reason"), [(-10, "truncated"), (None, "broken_record")])
def test_pairs_before_an_error_are_kept(tmp_path, read, cut, reason):
    units = [unit(en=f"a{number}", de=f"b{number}") for number in range(3_000)]
    text = tmx_of(*units)
    path = write_tmx(tmp_path, text[:cut] if cut else text.replace("</body>", "<tu></seg></tu></body>"))
    found, counts = read(bitext.plan_parts(path))
    assert len(found) == 3_000
    assert counts == {"in": 3_001, reason: 1}


def test_a_truncated_tmx_archive_is_a_dead_letter(tmp_path, read):
    whole = gzip.compress(tmx_of(*(unit(en=f"a{number}", de="b") for number in range(3_000))).encode(), compresslevel=0)
    (tmp_path / "m.tmx.gz").write_bytes(whole[: len(whole) // 2])
    found, counts = read(bitext.plan_parts(str(tmp_path / "m.tmx.gz")))
    assert found
    assert counts == {"in": len(found) + 1, "truncated": 1}


BOMB = '<!DOCTYPE tmx [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'
OUTSIDE = '<!DOCTYPE tmx [<!ENTITY a SYSTEM "file:///etc/hostname">]>'
PARAMETER = '<!DOCTYPE tmx [<!ENTITY % a SYSTEM "http://127.0.0.1:1/x.dtd"> %a;]>'


@pytest.mark.parametrize("doctype", [BOMB, OUTSIDE, PARAMETER])
def test_entities_are_refused(tmp_path, doctype):
    path = write_tmx(tmp_path, tmx_of(unit(en="&a;", de="b"), doctype=doctype))
    with pytest.raises(InputError, match="declares the entity 'a'"):
        bitext.plan_parts(path)
    with (
        pytest.raises(InputError, match="declares the entity 'a'"),
        Shard(Phase(str(tmp_path / "w"), "p", 1), 0) as shard,
    ):
        list(bitext.read_pairs(shard, BitextPart((path,))))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<html/>", "root element is <html>"),
        ("", "not TMX"),
        ("no XML", "not TMX"),
        ("<?xml version='1.0'?>", "not TMX"),
    ],
)
def test_files_that_are_not_tmx_are_refused(tmp_path, text, problem):
    with pytest.raises(InputError, match=problem):
        bitext.plan_parts(write_tmx(tmp_path, text))


XML_TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"),
    min_size=1,
    max_size=20,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(["en", "de", "fr"]), XML_TEXT, min_size=1), max_size=8))
def test_tmx_reads_what_an_xml_writer_wrote(tmp_path_factory, units):
    root = etree.Element("tmx")
    etree.SubElement(root, "header", srclang="en")
    body = etree.SubElement(root, "body")
    for texts in units:
        element = etree.SubElement(body, "tu")
        for language, text in texts.items():
            variant = etree.SubElement(element, "tuv", {"{http://www.w3.org/XML/1998/namespace}lang": language})
            etree.SubElement(variant, "seg").text = text
    folder = tmp_path_factory.mktemp("tmx")
    (folder / "m.tmx").write_bytes(etree.tostring(root, encoding="utf-8"))
    wanted = []
    for texts in units:
        source = "en" if "en" in texts else next(iter(texts))
        clean = {language: " ".join(text.split()) for language, text in texts.items()}
        wanted += [(f"{source}-{other}", clean[source], clean[other]) for other in texts if other != source]
    with Shard(Phase(str(folder / "work"), "p", 1), 0) as shard:
        found = []
        for pair in bitext.read_pairs(shard, *bitext.plan_parts(str(folder / "m.tmx"))):
            shard.written()
            found.append((pair.languages, pair.source, pair.target))
    assert found == [pair for pair in wanted if pair[1] and pair[2]]
    assert shard.counts().read == len(wanted) + sum(len(texts) < 2 for texts in units)


@pytest.mark.parametrize("name", ["m.tmx.gz", "m.tsv.gz", "m.en.gz,m.de.gz"])
def test_memory_does_not_grow_with_the_file(tmp_path, read, name):
    """A file of 32 MB is read with a few MB of memory."""
    text, count = "wordword" * 500, 4_000
    content = {
        "tmx": lambda number: unit(en=f"{number} {text}", de=f"{number} {text}").encode(),
        "tsv": lambda number: f"en\tde\t{number} {text}\t{text}\n".encode(),
        "en": lambda number: f"{number} {text}\n".encode(),
        "de": lambda number: f"{number} {text}\n".encode(),
    }
    for file in name.split(","):
        kind = file.split(".")[1]
        with gzip.open(tmp_path / file, "wb", compresslevel=1) as sink:
            sink.write(tmx_of().partition("</body>")[0].encode() if kind == "tmx" else b"")
            for number in range(count):
                sink.write(content[kind](number))
            sink.write(b"</body></tmx>" if kind == "tmx" else b"")
    given = ",".join(str(tmp_path / file) for file in name.split(","))
    with Shard(Phase(str(tmp_path / "work"), "p", 1), 0) as shard:
        tracemalloc.start()
        for pair in bitext.read_pairs(shard, *bitext.plan_parts(given)):
            assert len(pair.target) > 3_000
            shard.written()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert shard.counts().written == count
    assert peak < 8 << 20


@pytest.mark.parametrize("given", ["pairs.csv", "corpus.de", "a.en,b.de,c.fr", "folder"])
def test_unknown_formats_are_refused(given):
    with pytest.raises(InputError, match="unknown format of translation pairs") as error:
        bitext.plan_parts(given)
    assert "x.de,x.en" in error.value.remedy


@pytest.mark.parametrize("given", ["none.tsv", "none.tmx", "none.de,none.en"])
def test_missing_files_are_named(tmp_path, given):
    with pytest.raises(InputError, match="no such file"):
        bitext.plan_parts(",".join(str(tmp_path / name) for name in given.split(",")))
    with pytest.raises(InputError, match="no such file"):
        bitext.digest(str(tmp_path / "none.tsv"))
