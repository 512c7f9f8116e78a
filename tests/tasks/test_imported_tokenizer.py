"""Imported tokenizers: the ids of the `tokenizers` library for every family, moved to our order, also in graphs."""

import base64
import dataclasses
import functools
import json
import pickle

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st
from newsembed.errors import InputError
from newsembed.formats.huggingface import HuggingFaceFolder, Tokenizer
from newsembed.formats.vocabulary import CLS_ID, SEP_ID, SPECIAL_TOKENS, VocabularyFile, read_vocabulary
from newsembed.tasks.huggingface_tokenizer import import_vocabulary, own_tokenizer
from newsembed.tasks.vocabulary import Vocabulary
from sentencepiece import sentencepiece_model_pb2
from tokenizer_families import FAMILIES, special_names, train
from tokenizers import Tokenizer as Library
from tokenizers import normalizers

TEXTS = (
    "Storm reaches the Coast: 1,200 homes lost, the storm moved on.",
    "Ein Sturm erreicht die Küste, GROẞE Straßen stehen unter Wasser.",
    "Água e naïve café à São Paulo; été, Ångström, İstanbul'da yağmur.",
    "Буря достигла берега. Наводнение в городе.",
    "東京で地震、被害なし。서울 날씨 สวัสดีชาวโลก نص عربي हिन्दी",
)
IN_GRAPH = ("uncased", "cased", "unigram")
KEYS = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
PADDED = 7  # rows of the token table that the tokenizer does not have
TEXT = st.text(
    st.one_of(
        st.sampled_from("the storm Küste été ßẞİ東京で서울สวัส̣́ิ́हिन्\u200b\u00ad\ufeff\u3000\x85\t\n\x00\x1c,.—…'[]<s>/"),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=40,
)


def imported(tokenizer, family=None, size=None, **fields):
    """What `import_vocabulary` makes of a folder with this tokenizer."""
    names = dict(zip(KEYS, special_names(family), strict=True))
    source = HuggingFaceFolder("folder", {}, {}, Tokenizer(None, tokenizer.to_str().encode(), names, **fields))
    return import_vocabulary(source, size or tokenizer.get_vocab_size() + PADDED)


@pytest.fixture(scope="module", params=FAMILIES)
def family(request):
    return request.param


@pytest.fixture(scope="module")
def tokenizers():
    return {family: train(family, TEXTS) for family in FAMILIES}


@pytest.fixture(scope="module")
def vocabularies(tokenizers):
    return {family: Vocabulary.of(imported(one, family).file) for family, one in tokenizers.items()}


def plain(tokenizer):
    """A fresh reading of tokenizer.json without limits."""
    library = Library.from_str(tokenizer.to_str())
    library.no_truncation()
    library.no_padding()
    return library


def in_their_order(vocabulary, row):
    return vocabulary.tokenizer.order[row].tolist()


def assert_ids_equal(vocabulary, tokenizer, texts):
    library = plain(tokenizer)
    for text, row in zip(texts, vocabulary.encode_documents([""] * len(texts), texts, 100_000), strict=True):
        assert row.dtype == np.int32
        assert in_their_order(vocabulary, row) == library.encode(text).ids, text


@settings(max_examples=30, deadline=None)
@example(texts=[*TEXTS, "", " ", "   a   b", "x" * 101, "the" * 40])
@given(texts=st.lists(TEXT.filter(lambda text: not set("<[") & set(text)), max_size=5))
def test_ids_are_those_of_the_library_for_any_text(family, tokenizers, vocabularies, texts):
    assert_ids_equal(vocabularies[family], tokenizers[family], texts)


def test_places_are_those_of_the_library_without_white_space(family, tokenizers, vocabularies):
    texts = [*TEXTS, "", "   a   b"]
    for text, (ids, places) in zip(texts, vocabularies[family].encode_with_places(texts), strict=True):
        encoding = plain(tokenizers[family]).encode(text, add_special_tokens=False)
        assert in_their_order(vocabularies[family], ids) == encoding.ids
        assert places[:, 1].tolist() == [last for _, last in encoding.offsets]
        shown = [text[first:last] for first, last in places]
        assert shown == [text[first:last].lstrip() for first, last in encoding.offsets]
    assert {"a", "b"} <= set(shown) <= {"a", "b", ""}


def test_special_tokens_come_first_and_the_pieces_keep_their_names(family, tokenizers, vocabularies):
    vocabulary, tokenizer = vocabularies[family], tokenizers[family]
    assert vocabulary.pieces[:5] == SPECIAL_TOKENS
    order = vocabulary.tokenizer.order
    assert sorted(order) == list(range(vocabulary.size))
    assert [tokenizer.token_to_id(name) for name in special_names(family)] == order[:5].tolist()
    assert (np.diff(order[5:]) > 0).all()
    named = {number: piece for number, piece in enumerate(vocabulary.pieces[5:], 5) if not piece.startswith("[token")}
    assert all(tokenizer.token_to_id(piece) == order[number] for number, piece in named.items())
    assert vocabulary.size - 5 - len(named) == PADDED + (family == "byte_level")  # the piece of three spaces


def test_special_tokens_in_a_text_are_text(family, tokenizers, vocabularies):
    vocabulary = vocabularies[family]
    for name in special_names(family):
        (row,) = vocabulary.encode_texts([f"the {name} storm"])
        assert not set(row.tolist()) & {0, CLS_ID, SEP_ID, 4}, name
        assert row.size > 2


def test_documents_have_our_layout(family, vocabularies):
    vocabulary = vocabularies[family]
    title, body = vocabulary.encode_texts(["the Coast", "Küste 1"])
    (whole,) = vocabulary.encode_documents(["the Coast"], ["Küste 1"], 100)
    assert whole.tolist() == [CLS_ID, *title, SEP_ID, *body, SEP_ID]
    (cut,) = vocabulary.encode_documents(["the Coast"], ["Küste 1"], 4)
    assert cut.tolist() == [*whole[:3], SEP_ID]
    assert vocabulary.encode_documents([""], [""], 9)[0].tolist() == [CLS_ID, SEP_ID]


def test_words_begin_where_the_text_has_spaces(family, vocabularies):
    vocabulary = vocabularies[family]
    text = "the storm reaches the coast"
    (row,), (words,) = vocabulary.encode_with_words([text])
    assert words.tolist() == sorted(words.tolist())
    spelled = ["".join(vocabulary.pieces[token] for token in row[words == word]) for word in range(1, words.max() + 1)]
    bare = [word.replace("##", "").replace("▁", "").replace("Ġ", "") for word in spelled]
    assert [word for word in bare if word] == text.split()
    assert vocabulary.encode_with_words([""])[1][0].tolist() == []


@pytest.mark.parametrize(
    ("family", "pieces"),
    [
        ("unigram", {"▁a": False, "b": True, ",": False, "中": False, "é": True, "\u0301": True, "ก": False}),
        ("byte_level", {"Ġa": False, "b": True, ",": False, "ä¸": False, "Ã©": True, "à¸": False}),
    ],
)
def test_words_of_punctuation_and_of_scripts_without_spaces(vocabularies, family, pieces):
    file = VocabularyFile("v", "\n".join(pieces).encode(), len(pieces), vocabularies[family].tokenizer)
    assert dict(zip(pieces, file.continuations, strict=True)) == pieces


def test_files_come_back_and_are_refused_when_they_do_not_belong_together(family, vocabularies, tmp_path):
    vocabulary = vocabularies[family]
    for name, content in vocabulary.file().files.items():
        (tmp_path / name).write_bytes(content)
    again = Vocabulary.load(str(tmp_path / "vocab.txt"))
    assert (again.pieces, again.digest, again.tokenizer) == (vocabulary.pieces, vocabulary.digest, vocabulary.tokenizer)
    copy = pickle.loads(pickle.dumps(again))
    assert [row.tolist() for row in copy.encode_texts(TEXTS)] == [row.tolist() for row in again.encode_texts(TEXTS)]
    ids = tmp_path / "tokenizer_ids.json"
    values = json.loads(ids.read_text())
    for change, message in (
        ({"special_ids": [0, 0, 1, 2, 3]}, "special tokens' ids"),
        ({"size": values["size"] + 1}, r"vocab\.txt: got \d+ pieces, tokenizer_ids.json names"),
        ({"vocabulary_sha256": "0"}, "vocabulary_sha256: the SHA-256 of vocab.txt"),
    ):
        ids.write_text(json.dumps(values | change))
        with pytest.raises(InputError, match=message):
            read_vocabulary(str(tmp_path / "vocab.txt"))
    ids.write_text(json.dumps(values))
    (tmp_path / "tokenizer.json").write_bytes(vocabulary.tokenizer.content + b" ")
    with pytest.raises(InputError, match="tokenizer_sha256: the SHA-256 of tokenizer.json"):
        read_vocabulary(str(tmp_path / "vocab.txt"))


def graph(vocabulary):
    signature = [tf.TensorSpec([None], tf.string)] * 2
    return tf.function(lambda *parts: vocabulary.tf_encode_documents(*parts, 50), input_signature=signature)


@pytest.fixture(scope="module")
def graphs(vocabularies):
    return {family: graph(vocabularies[family]) for family in IN_GRAPH}


@pytest.mark.parametrize("family", IN_GRAPH)
@settings(max_examples=30, deadline=None)
@given(documents=st.lists(st.tuples(TEXT, TEXT), max_size=5))
def test_the_graph_has_the_same_ids(vocabularies, graphs, family, documents):
    titles, bodies = [title for title, _ in documents], [body for _, body in documents]
    found = graphs[family](tf.constant(titles, tf.string), tf.constant(bodies, tf.string))
    assert found.dtype == tf.int32
    assert found.to_list() == [row.tolist() for row in vocabularies[family].encode_documents(titles, bodies, 50)]


@pytest.mark.parametrize("family", IN_GRAPH)
def test_the_graph_knows_long_words_and_broken_text(vocabularies, graphs, family):
    texts = ["t" * 100, "t" * 101, "é" * 100, "東" * 101, "the\u2028storm the\u00a0storm", "", "ก" * 101]
    found = graphs[family](tf.constant(texts), tf.constant([""] * len(texts)))
    assert found.to_list() == [row.tolist() for row in vocabularies[family].encode_documents(texts, [""] * 7, 50)]
    assert graphs[family](tf.constant([b"the \xff storm"]), tf.constant([""])).to_list() == [
        vocabularies[family].encode_documents(["the \ufffd storm"], [""], 50)[0].tolist()
    ]


def test_other_tokenizers_have_no_graph(vocabularies):
    with pytest.raises(InputError, match=r"cannot be part of a TensorFlow graph[\s\S]*--inputs tokens"):
        vocabularies["byte_level"].tf_encode_documents(tf.constant(["a"]), tf.constant(["b"]), 9)


SPLIT = {"type": "WhitespaceSplit"}
METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
ONE_SPACE = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"}
NO_SPACE_AT_THE_END = {"type": "Strip", "strip_left": False, "strip_right": True}


@functools.cache
def characters_map():
    """SentencePiece's map of characters, as tokenizer.json holds it."""
    made = sentencepiece.SentencePieceNormalizer(rule_name="nmt_nfkc").serialized_model_proto()
    spec = sentencepiece_model_pb2.ModelProto.FromString(made).normalizer_spec
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(spec.precompiled_charsmap).decode()}


def unigram(tokenizer, normalizer, *pre_tokenizers):
    """The vocabulary of a Unigram tokenizer with other steps before the pieces."""
    values = json.loads(tokenizer.to_str())
    normalizer = [characters_map() if part == "map" else part for part in normalizer]
    values["normalizer"] = {"type": "Sequence", "normalizers": normalizer} if normalizer else None
    values["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": list(pre_tokenizers)}
    return Vocabulary.of(imported(Library.from_str(json.dumps(values)), "unigram").file)


def test_only_a_unigram_model_tells_how_frequent_its_pieces_were(tokenizers):
    scores = dict(json.loads(tokenizers["unigram"].to_str())["model"]["vocab"])
    vocabulary = Vocabulary.of(imported(tokenizers["unigram"], "unigram").file)
    known = [np.exp(scores[piece]) if piece in scores else 0 for piece in vocabulary.pieces[5:]]
    np.testing.assert_allclose(vocabulary.shares, [0] * 5 + known)
    assert 0.5 < sum(known) < 1.1
    file = imported(tokenizers["uncased"]).file
    values = json.loads(file.tokenizer.content)
    del values["model"]["type"]  # as in old files
    old = dataclasses.replace(file, tokenizer=dataclasses.replace(file.tokenizer, content=json.dumps(values).encode()))
    for other in (*map(Vocabulary.of, (file, old)), Vocabulary(vocabulary.pieces[:8])):
        np.testing.assert_array_equal(other.shares, np.zeros(other.size))


@pytest.mark.parametrize(
    ("changes", "steps"),
    [(["map"], [SPLIT, METASPACE]), (["map", NO_SPACE_AT_THE_END, ONE_SPACE], [METASPACE]), ([], [SPLIT, METASPACE])],
    ids=["words", "spaces", "no normalizer"],
)
def test_the_graph_of_sentencepiece_normalizes_as_the_library(tokenizers, changes, steps):
    vocabulary = unigram(tokenizers["unigram"], changes, *steps)
    texts = [
        *TEXTS,
        "",
        " ",
        "  the  storm\tthe\u00a0storm\u3000",
        "ﬁne ½ e\u0301te",
        "a\u2581b \u0085 c\x0bd",
        "</s> <unk> <mask>",
        "☃☃☃ ☃",
        "x\\1",
    ]
    found = graph(vocabulary)(tf.constant(texts), tf.constant([""] * len(texts)))
    assert found.to_list() == [row.tolist() for row in vocabulary.encode_documents(texts, [""] * len(texts), 50)]


@pytest.mark.parametrize(
    ("normalizer", "steps", "message"),
    [
        ([{"type": "Lowercase"}], [SPLIT, METASPACE], "the step Lowercase"),
        ([ONE_SPACE], [METASPACE], "keeps several spaces"),
        ([NO_SPACE_AT_THE_END], [METASPACE], "keeps several spaces"),
        ([], [SPLIT, METASPACE | {"prepend_scheme": "first"}], "no space before it"),
        ([{"type": "NFKC"}, "map", {"type": "NFD"}], [SPLIT, METASPACE], "changes texts after Precompiled"),
    ],
)
def test_unigram_tokenizers_with_other_parts_have_no_graph(tokenizers, normalizer, steps, message):
    with pytest.raises(InputError, match=message):
        unigram(tokenizers["unigram"], normalizer, *steps).check_graph()


def test_bert_tokenizers_with_other_parts_have_no_graph(tokenizers):
    changed = Library.from_str(tokenizers["cased"].to_str())
    changed.normalizer = normalizers.Lowercase()
    with pytest.raises(InputError, match="the normalizer of tokenizer.json is Lowercase"):
        Vocabulary.of(imported(changed, "cased").file).check_graph()


def without(tokenizer, part):
    return Library.from_str(json.dumps(json.loads(tokenizer.to_str()) | {part: None}))


def test_what_cannot_be_imported_is_refused(tokenizers):
    bert = tokenizers["uncased"]
    with pytest.raises(InputError, match=r"tokenizer.json: '.*' has the id \d+, config.json has vocab_size = 50"):
        imported(bert, "uncased", size=50)
    with pytest.raises(InputError, match="'' becomes .*first and .* last"):
        imported(without(bert, "post_processor"), "uncased")
    with pytest.raises(InputError, match="do_lower_case = true, and the tokenizer keeps upper case"):
        imported(tokenizers["cased"], "cased", lowers_first=True)
    source = HuggingFaceFolder("folder", {}, {}, Tokenizer(None, b"{}"))
    with pytest.raises(InputError, match="got no tokenizer of the tokenizers library"):
        import_vocabulary(source, 30)


def test_vocab_txt_alone_is_read_by_berts_rules(tokenizers):
    """The ids of BertTokenizerFast: the same as those of the tokenizer.json from which the pieces are."""
    for family, values in (("uncased", {}), ("cased", {"do_lower_case": False})):
        bert = tokenizers[family]
        pieces = tuple(bert.id_to_token(token).encode() for token in range(bert.get_vocab_size()))
        source = HuggingFaceFolder("folder", {}, {}, Tokenizer(pieces, settings=values))
        found = import_vocabulary(source, len(pieces))
        assert "there is no tokenizer.json" in found.differences[0]
        assert_ids_equal(Vocabulary.of(found.file), bert, TEXTS)


def test_our_own_tokenizer_stays_ours():
    pieces = [*SPECIAL_TOKENS, "a", "##b", "storm"]
    found = imported(own_tokenizer(pieces), "uncased", size=len(pieces))
    assert found.file.tokenizer is None
    assert (found.file.pieces, found.differences) == (tuple(pieces), ())
    assert found.file.sha256 == Vocabulary(pieces).digest
