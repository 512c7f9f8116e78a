"""Words and their parts of speech."""

import importlib.util

import pytest
from newsembed.errors import InputError
from newsembed.tasks import parts_of_speech as words

needs_hanta = pytest.mark.skipif(
    importlib.util.find_spec("HanTa") is None, reason="HanTa is not installed: pip install newsembed[tags]"
)


def test_words_and_signs_are_all_that_is_no_white_space():
    text = "“Well-known” John's\t1,200 homes…\nKöln, 50%! 東京 हिन्दी a_b"
    found = words.split_words(text)
    assert "".join(found) == "".join(text.split())
    assert found[:5] == ["“", "Well-known", "”", "John's", "1,200"]


def test_first_words():
    assert words.first_words("One two, three", 3) == "One two,"
    assert words.first_words("One", 5) == "One"
    assert words.first_words("  ", 5) == ""


def test_sentences_end_at_full_stops_or_at_last():
    assert words.sentences(["A", "b", ".", "C", "?", "D"]) == [["A", "b", "."], ["C", "?"], ["D"]]
    assert [len(sentence) for sentence in words.sentences(["w"] * 450)] == [200, 200, 50]
    assert words.sentences([]) == []


def test_universal_tags_by_the_longest_beginning():
    table = {"NN": "NOUN", "NNP": "PROPN"}
    assert words.universal_tag("cat", "NNS", table) == "NOUN"
    assert words.universal_tag("Kim", "NNPS", table) == "PROPN"
    assert words.universal_tag("cat", "ZZ", table) == "X"
    assert words.universal_tag("”", "NN", table) == "PUNCT"
    assert words.universal_tag("%", "NN", table) == "SYM"


@needs_hanta
@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en-GB", "The mayor of London said “yes”.", "DET NOUN ADP PROPN VERB PUNCT INTJ PUNCT PUNCT"),
        ("de", "Der Bürgermeister von Köln hat schnell gesagt.", "DET NOUN ADP PROPN AUX ADJ VERB PUNCT"),
        (
            "nl",
            "De burgemeester van Utrecht zei dat 30 huizen staan.",
            "DET NOUN ADP PROPN VERB SCONJ NUM NOUN VERB PUNCT",
        ),
    ],
)
def test_hanta_tags_its_three_languages(language, text, expected):
    tagger = words.load_tagger(None)
    assert tagger.knows(language)
    assert [tag for _, tag in tagger.tag(text, language)] == expected.split()
    assert tagger.tag("", language) == []


@needs_hanta
def test_hanta_gives_the_lemmas_of_nouns_and_verbs():
    found = words.load_tagger(None).lemmas("The storms hit houses; a house was hit by storms.", "en")
    assert [lemma for _, tag, lemma in found if tag in words.NOUNS] == ["storm", "house", "house", "storm"]
    assert {lemma for _, tag, lemma in found if tag in words.VERBS} == {"hit"}


@needs_hanta
def test_a_file_of_one_s_own_in_the_working_folder_is_not_read(tmp_path, monkeypatch):
    (tmp_path / "morphmodel_en.pgz").write_bytes(b"not a model")
    monkeypatch.chdir(tmp_path)
    words._hanta.cache_clear()
    assert words.load_tagger("hanta").tag("A house.", "en")[1] == ("house", "NOUN")


def test_without_hanta_the_reason_is_said(monkeypatch):
    monkeypatch.setattr(words.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(words.UnavailableError, match="HanTa is not installed; pip install"):
        words.load_tagger(None)
    with pytest.raises(InputError, match="--tags: no part-of-speech tagger"):
        words.load_tagger("hanta")


def test_a_tagger_of_one_s_own(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "def upper(text, language):\n"
        "    return [(word, 'UP' if word.isupper() else language) for word in text.split()]\n"
        "def broken(text, language):\n    return text.split()\n"
        "def numbers(text, language):\n    return [(word, 3) for word in text.split()]\n"
    )
    tagger = words.load_tagger(f"{path}:upper")
    assert tagger.knows("xx")
    assert tagger.tag("A b", "xx") == [("A", "UP"), ("b", "xx")]
    with pytest.raises(InputError, match="returned no sequence of"):
        words.load_tagger(f"{path}:broken").tag("one two", "en")
    with pytest.raises(InputError, match="are not strings"):
        words.load_tagger(f"{path}:numbers").tag("one two", "en")
    with pytest.raises(InputError, match="has no function 'absent'"):
        words.load_tagger(f"{path}:absent")
