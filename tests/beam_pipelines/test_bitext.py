"""Translation pairs from TSV, TMX and aligned files: every pair once, every loss counted, broken and hostile files."""

import collections
import gzip
import tracemalloc
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from newsembed.beam_pipelines.bitext import readers
from newsembed.beam_pipelines.bitext.readers import BitextPart, plan_parts, read_pairs
from newsembed.beam_pipelines.shards import Phase, Shard
from newsembed.beam_pipelines.texts import language_tag
from newsembed.errors import InputError


def read(folder, parts):
    """Reads parts, each in its own shard, which fails if its numbers do not add up. Returns pairs and counts."""
    found, sums = [], collections.Counter()
    phase = Phase(f"{folder}/{uuid.uuid4()}", "p", len(parts))
    for index, part in enumerate(parts):
        with Shard(phase, index) as shard:
            for pair in read_pairs(shard, part):
                shard.written()
                found.append(pair)
        counts = shard.counts()
        sums.update({"in": counts.read, **counts.rejected, **counts.failed})
    return found, dict(sums)


def texts_of(found):
    return [(pair.languages, pair.source, pair.target) for pair in found]


TAGS = {
    "EN": "en", "pt_br": "pt-BR", "ZH-hant-tw": "zh-Hant-TW", "es-419": "es-419", "sl-ROZAJ-biske": "sl-rozaj-biske",
    "de-x-GB-Nord": "de-x-gb-nord", " fr ": "fr", "ger-AT": "de-AT", "eng_Latn": "en-Latn", "mos": "mos",
    "": None, "x/y": None, "englishlanguage": None, "*all*": None,
}  # fmt: skip


def test_language_tags_get_the_case_and_the_shortest_code_of_bcp_47():
    assert {given: language_tag(given) for given in TAGS} == TAGS


# TSV and aligned files


def test_parts_of_a_file_read_every_line_once(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"en\tde\tsource {number}\t{'x' * (1 + number % 13)}\n" for number in range(50)))
    for size in (1, 7, 64, 10_000):
        parts = plan_parts(str(path), size=size)
        found, counts = read(tmp_path, parts)
        assert [pair.source for pair in found] == [f"source {number}" for number in range(50)]
        assert (counts, len({pair.key for pair in found})) == ({"in": 50}, 50)
        assert (len(parts) > 1) == (size < 10_000)


def test_broken_lines_are_counted_by_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "MOST_BYTES", 64)
    path = tmp_path / "pairs.tsv"
    lines = [
        b"\xef\xbb\xbfEN\tpt_br\ta\tb",  # a byte order mark, and tags as people write them
        *(b"en\tde\tonly three", b"x/y\tde\ta\tb", b"en\t\ta\tb", b"en\tEN\ta\tb", b"en\tde\t \tb", b""),
        *(b"en\tde\t\xff\tb", b"en\tde\t" + b"a" * 200 + b"\tb", "en\tde\tone\u2028line\tb\r".encode()),
    ]
    path.write_bytes(b"\n".join(lines))
    found, counts = read(tmp_path, plan_parts(str(path)))
    assert texts_of(found) == [("en-pt-BR", "a", "b"), ("en-de", "one\u2028line", "b")]
    reasons = {"broken_record": 3, "same_language": 1, "empty_side": 1, "undecodable": 1, "too_large": 1}
    assert counts == {"in": 9, **reasons}


def write(folder, text, name="m.tmx", encoding="utf-8"):
    raw = text.encode(encoding)
    (folder / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return f"{folder}/{name}"


def write_aligned(folder, left, right, names=("c.en", "c.de")):
    return ",".join(write(folder, text, name) for text, name in zip((left, right), names, strict=True))


TEXT_LINE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), max_size=12)


@settings(max_examples=60, deadline=None)
@given(lines=st.lists(st.tuples(TEXT_LINE, TEXT_LINE), max_size=20), size=st.integers(1, 80), ended=st.booleans())
def test_aligned_files_give_every_pair_once_however_they_are_cut(tmp_path_factory, lines, size, ended):
    folder = tmp_path_factory.mktemp("aligned")
    ended = ended or (bool(lines) and not all(lines[-1]))  # an empty last line is one only if it is ended
    sides = ["\n".join(line[side] for line in lines) + ("\n" if ended and lines else "") for side in (0, 1)]
    found, counts = read(folder, plan_parts(write_aligned(folder, *sides), size=size))
    first = "\ufeff"  # a byte order mark is none of the text
    wanted = [tuple(text.removeprefix(first) if n == 0 else text for text in line) for n, line in enumerate(lines)]
    wanted = [pair for pair in wanted if pair[0].strip() and pair[1].strip()]
    assert [(pair.source, pair.target) for pair in found] == wanted
    assert counts["in"] == len(lines) == len(found) + counts.get("empty_side", 0)


@pytest.mark.parametrize("names", [("c.en", "c.de"), ("src.EN.gz", "ref.A.de.gz"), ("new.eng.txt", "new.deu.txt.gz")])
def test_the_suffix_names_the_language(tmp_path, names):
    found, counts = read(tmp_path, plan_parts(write_aligned(tmp_path, "a\n\nc\n", "x\ny\nz\n", names)))
    assert texts_of(found) == [("en-de", "a", "x"), ("en-de", "c", "z")]
    assert counts == {"in": 3, "empty_side": 1}


@pytest.mark.parametrize(
    ("names", "right", "problem"),
    [
        (("c.en", "c.de"), "x\ny\n", "got 3 and 2 lines, expected the same number"),
        (("c.en", "c.de.gz"), "x\ny\nz\n\n", "got 3 and 4 lines, expected the same number"),
        (("c.en", "d.EN"), "x\ny\nz\n", "both files are named en"),
        (("c.en", "c.txt"), "x\ny\nz\n", r"c\.txt.*the name has no language"),
    ],
)
def test_files_that_are_not_aligned_are_refused(tmp_path, names, right, problem):
    with pytest.raises(InputError, match=problem) as error:
        plan_parts(write_aligned(tmp_path, "a\nb\nc\n", right, names))
    assert error.value.field == "--bitext"
    assert error.value.remedy


# TMX


def tmx_of(*units, header='<header srclang="en"/>', declaration='<?xml version="1.0"?>', doctype=""):
    return f"{declaration}{doctype}<tmx version='1.4'>{header}<body>{''.join(units)}</body></tmx>"


def unit(attributes="", **texts):
    tags = {language.replace("_", "-"): text for language, text in texts.items()}
    variants = (f'<tuv xml:lang="{language}"><seg>{text}</seg></tuv>' for language, text in tags.items())
    return f"<tu {attributes}>{''.join(variants)}</tu>"


@pytest.mark.parametrize(("name", "encoding"), [("m.TMX.gz", "utf-8"), ("m.tmx", "utf-16")])
def test_units_pair_their_source_with_each_other_language(tmp_path, name, encoding):
    text = tmx_of(
        unit(en="one", de="eins", fr="un"),
        unit(de="zwei", en_GB="two"),
        unit('srclang="de"', en="three", de="dréi &amp; &#x20AC;"),
        unit('srclang="*all*"', fr="quatre", en="four"),
        unit(it="cinque", es="cinco"),
        declaration=f'<?xml version="1.0" encoding="{encoding}"?>',
        doctype='<!DOCTYPE tmx SYSTEM "tmx14.dtd">',
    )
    found, counts = read(tmp_path, plan_parts(write(tmp_path, text, name, encoding)))
    assert texts_of(found) == [
        *(("en-de", "one", "eins"), ("en-fr", "one", "un"), ("en-GB-de", "two", "zwei")),
        *(("de-en", "dréi & €", "three"), ("fr-en", "quatre", "four"), ("it-es", "cinque", "cinco")),
    ]
    assert (counts, len({pair.key for pair in found})) == ({"in": 6}, 6)


def test_codes_in_a_segment_are_dropped(tmp_path):
    codes = "<hi>here <ph>{0}<sub>foot</sub>x</ph>now</hi><ept i='1'>&lt;/b&gt;</ept>"
    marked = f"Click <bpt i='1'>&lt;b&gt;</bpt>{codes}\n  please"
    german, english = "<tuv lang='de_at'><seg>b</seg></tuv>", "<prop type='x'>no</prop><seg>a</seg>"
    noted = f"<tu><note>no text</note><tuv lang='EN'>{english}</tuv>{german}</tu>"
    text = tmx_of(unit(en=marked, de="<![CDATA[a < b]]>"), noted)
    found, _ = read(tmp_path, plan_parts(write(tmp_path, text)))
    assert texts_of(found) == [("en-de", "Click here now please", "a < b"), ("en-de-AT", "a", "b")]


def test_units_that_are_not_pairs_are_counted_by_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "MOST_BYTES", 64)
    no_language = "<tu><tuv xml:lang='en'><seg>a</seg></tuv><tuv><seg>b</seg></tuv></tu>"
    others = unit(en="a", de=" "), unit(en="a", EN="b", de="c"), unit(en="a" * 65, de="b")
    text = tmx_of(unit(en="a"), "<tu/>", no_language, *others)
    found, counts = read(tmp_path, plan_parts(write(tmp_path, text)))
    assert texts_of(found) == [("en-de", "a", "c")]
    reasons = {"missing_field": 2, "broken_record": 1, "empty_side": 1, "same_language": 1, "too_large": 1}
    assert counts == {"in": 7, **reasons}


def test_pairs_before_an_error_are_kept(tmp_path):
    text = tmx_of(*(unit(en=f"a{number}", de=f"b{number}") for number in range(3_000)))
    for content in (text[:-10], text.replace("</body>", "<tu></seg></tu></body>")):
        found, counts = read(tmp_path, plan_parts(write(tmp_path, content)))
        assert len(found) == 3_000
        assert counts == {"in": 3_001, "broken_record": 1}


@pytest.mark.parametrize("name", ["cut.tsv.gz", "cut.tmx.gz"])
def test_a_truncated_archive_is_a_dead_letter(tmp_path, name):
    lines = ["en\tde\ta\tb\n"] * 10_000 if "tsv" in name else [tmx_of(*[unit(en="a", de="b")] * 3_000)]
    whole = gzip.compress("".join(lines).encode(), compresslevel=0)
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    found, counts = read(tmp_path, plan_parts(str(tmp_path / name)))
    assert found
    assert counts == {"in": len(found) + 1, "truncated": 1}
    write_aligned(tmp_path, "a\n", "x\n")
    (tmp_path / "c.de.gz").write_bytes(gzip.compress(b"x\n")[:-4])
    with pytest.raises(InputError, match="cannot be read to its end"):
        plan_parts(f"{tmp_path}/c.en,{tmp_path}/c.de.gz")


BOMB = '<!DOCTYPE tmx [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'
OUTSIDE = '<!DOCTYPE tmx [<!ENTITY a SYSTEM "file:///etc/hostname">]>'
PARAMETER = '<!DOCTYPE tmx [<!ENTITY % a SYSTEM "http://127.0.0.1:1/x.dtd"> %a;]>'


@pytest.mark.parametrize("doctype", [BOMB, OUTSIDE, PARAMETER])
def test_entities_are_refused(tmp_path, doctype):
    path = write(tmp_path, tmx_of(unit(en="&a;", de="b"), doctype=doctype))
    for function in (plan_parts, lambda path: read(tmp_path, [BitextPart((path,))])):
        with pytest.raises(InputError, match="declares the entity 'a'"):
            function(path)


@pytest.mark.parametrize(
    ("text", "problem"), [("<html/>", "root element is <html>"), ("", "not TMX"), ("no XML", "not TMX")]
)
def test_files_that_are_not_tmx_are_refused(tmp_path, text, problem):
    with pytest.raises(InputError, match=problem):
        plan_parts(write(tmp_path, text))


XML_LETTER = st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff")
XML_TEXT = st.text(XML_LETTER, min_size=1, max_size=20)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(["en", "de", "fr"]), XML_TEXT, min_size=1), max_size=8))
def test_tmx_reads_what_an_xml_writer_wrote(tmp_path_factory, units):
    root = etree.Element("tmx")
    etree.SubElement(root, "header", srclang="en")
    body = etree.SubElement(root, "body")
    wanted = []
    for texts in units:
        element = etree.SubElement(body, "tu")
        for language, text in texts.items():
            variant = etree.SubElement(element, "tuv", {"{http://www.w3.org/XML/1998/namespace}lang": language})
            etree.SubElement(variant, "seg").text = text
        source = "en" if "en" in texts else next(iter(texts))
        clean = {language: " ".join(text.split()) for language, text in texts.items()}
        wanted += [(f"{source}-{other}", clean[source], clean[other]) for other in texts if other != source]
    folder = tmp_path_factory.mktemp("tmx")
    path = write(folder, etree.tostring(root, encoding="unicode"))
    found, counts = read(folder, plan_parts(path))
    assert texts_of(found) == [pair for pair in wanted if pair[1] and pair[2]]
    assert counts["in"] == len(wanted) + sum(len(texts) < 2 for texts in units)


# All formats


@pytest.mark.parametrize("name", ["m.tmx.gz", "m.tsv.gz", "m.en.gz,m.de.gz"])
def test_memory_does_not_grow_with_the_file(tmp_path, name):
    """A file of 32 MB is read with a few MB of memory."""
    text, count = "wordword" * 500, 4_000
    lines = {"tmx": unit(en=f"# {text}", de=f"# {text}"), "tsv": f"en\tde\t# {text}\t{text}\n"}
    for file in name.split(","):
        kind = file.split(".")[1]
        head, _, tail = tmx_of().partition("</body>") if kind == "tmx" else ("", "", "")
        with gzip.open(tmp_path / file, "wt", compresslevel=1) as sink:
            sink.write(head)
            for number in range(count):
                sink.write(lines.get(kind, f"# {text}\n").replace("#", str(number)))
            sink.write(f"</body>{tail}" if tail else "")
    (part,) = plan_parts(",".join(str(tmp_path / file) for file in name.split(",")))
    with Shard(Phase(str(tmp_path / "work"), "p", 1), 0) as shard:
        tracemalloc.start()
        for pair in read_pairs(shard, part):
            assert len(pair.target) > 3_000
            shard.written()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert shard.counts().written == count
    assert peak < 8 << 20


@pytest.mark.parametrize("given", ["pairs.csv", "corpus.de", "a.en,b.de,c.fr", "folder", "{}"])
def test_unknown_formats_are_refused(given, tmp_path):
    (tmp_path / "manifest.json").write_text('{"job": "clean"}')
    with pytest.raises(InputError, match="unknown format of translation pairs") as error:
        plan_parts(given.format(tmp_path))
    assert "x.de,x.en" in error.value.remedy
