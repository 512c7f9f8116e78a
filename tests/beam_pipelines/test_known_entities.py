"""Entities that cross languages: known names, forms of words, spellings in other scripts, and the job with a table."""

import datetime
import functools
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from newsembed.beam_pipelines import jobs
from newsembed.beam_pipelines.entities import JOB, EntitiesOptions, tables
from newsembed.beam_pipelines.entities.aliases import Entity
from newsembed.beam_pipelines.entities.apart import choose_apart, keep_apart
from newsembed.beam_pipelines.entities.forms import Forms, normal_letters
from newsembed.beam_pipelines.entities.gazetteer import built_in_names
from newsembed.beam_pipelines.entities.known import (
    CorpusWords,
    is_common_word,
    known_aliases,
    may_occur,
    merge_known,
    readable_names,
    spans_of,
)
from newsembed.beam_pipelines.entities.linking import Linker, priors_without
from newsembed.beam_pipelines.entities.sounds import Spellings, similarity, sound_key
from newsembed.beam_pipelines.entities.tables import Alias
from newsembed.beam_pipelines.entities.tokens import WordUse
from newsembed.errors import InputError
from newsembed.formats import parquet
from newsembed.formats.names import KnownName
from newsembed.formats.records import Article, make_doc_id

DAY = datetime.date(2021, 6, 1)


@functools.cache
def built_in_linker():
    names = [name for name in built_in_names() if not name.entity.startswith("city:") or name.prior > 0.1]
    readable = readable_names(names)
    rows = {entity: row for row, entity in enumerate(sorted(readable))}
    return Linker(known_aliases(names, readable), rows), [readable[entity] for entity in rows]


def built_in(text, language):
    linker, names = built_in_linker()
    return sorted(names[row] for row in linker.link([text], language))


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "The Mexicans flew to Germany."),
        ("de", "Mexikanische Spieler flogen nach Deutschland."),
        ("fr", "Les joueurs mexicains sont en Allemagne."),
        ("es", "Los mexicanos llegaron a Alemania."),
        ("ru", "Мексиканские игроки прилетели в Германию."),
        ("ar", "وصل لاعبو المكسيك إلى ألمانيا"),
        ("hi", "मैक्सिको के खिलाड़ी जर्मनी पहुँचे"),
        ("zh", "墨西哥球员抵达德国"),
        ("ja", "メキシコの選手がドイツに着いた"),
    ],
)
def test_countries_are_found_in_all_languages_by_name_and_adjective(language, text):
    assert built_in(text, language) == ["Germany", "Mexico"]


def test_a_name_in_lower_case_is_found_in_its_language_only():
    assert built_in("Il parle russe.", "fr") == ["Russia"]
    assert built_in("Il parle russe.", "en") == []


def test_cities_are_found_under_their_other_names():
    assert built_in("Nach London und Moskau", "de") == ["London", "Moscow"]
    assert built_in("在伦敦和莫斯科", "zh") == ["London", "Moscow"]
    assert built_in("В Лондоне и Москве", "ru") == ["London", "Moscow"]


def test_spellings_in_other_scripts_are_found_by_their_sound():
    names = ["Donald Trump", "Vladimir Putin", "Angela Merkel", "Trump", "Putin", "Merkel"]
    linker = Linker([Alias(name, name.split()[-1], 1, "") for name in names], {"Trump": 0, "Putin": 1, "Merkel": 2})
    assert linker.link(["Трампа видели с Путиным"], "ru") == {0: 1, 1: 1}
    assert linker.link(["التقى ترامب مع بوتين وميركل بدون كلام"], "ar") == {0: 1, 1: 1, 2: 1}
    assert linker.link(["पुतिन और मर्केल"], "hi") == {1: 1, 2: 1}
    assert linker.link(["с трампом"], "ru") == {}  # no capital


def test_forms_need_a_known_word_and_leave_other_words_alone():
    forms = Forms({"Россия": 0, "Siemens": 1, "Berlin": 2}, {})
    assert forms.apply(["в", "России", "росла"], "ru") == ["в", "Россия", "росла"]
    assert forms.in_latin(["Siemens", "Berlins", "Bonns"], "de") == ["Siemens", "Berlin", "Bonns"]
    assert forms.in_latin(["Berlins"], "en") == ["Berlins"]


def test_names_of_the_corpus_have_no_form_but_the_genitive_where_names_have_no_cases():
    aliases = [Alias("Sommers", "Christina_Sommers", 1, "Christina Sommers"), Alias("Bauer", "Bauer", 1, "Bauer")]
    aliases += [Alias("Mexikaner", "region:MX", 1, "Mexico"), Alias("Glock", "de:Glock", 1, "Glock", "de")]
    found = Linker(aliases, {"Christina_Sommers": 0, "Bauer": 1, "region:MX": 2, "de:Glock": 3})
    assert found.link(["Im Sommer bei den Bauern"], "de") == {}
    assert found.link(["Bauers Sommers und die Mexikanerin"], "de") == {1: 1, 0: 1, 2: 1}
    assert found.link(["Die Glocken"], "de") == {}  # of `--across_languages=false`
    assert found.link(["Bauerem"], "cs") == {1: 1}


@pytest.mark.parametrize(
    ("name", "cases", "others"),
    [
        ("Китай", "Китая Китаю Китаем Китае", "Кита Кит Китов"),
        ("Дели", "Дели", "Дело Дела Делу"),
        ("Лавов", "Лавова Лавову", "Лав Лава"),
        ("Куба", "Кубы Кубе Кубу Кубой", "Кубо Кубов"),
        ("американец", "американца американцы американцев", "американ"),
        ("мусульмане", "мусульман мусульманами", "мусульманов"),
        ("китайский", "китайская китайскому китайских", "китайск"),
        ("игры", "играх игр", "игрой"),
    ],
)
def test_a_cyrillic_word_is_a_case_of_the_name(name, cases, others):
    forms = Forms({name: 0}, {})
    assert [forms.apply([word], "ru", f"это {word}")[0] for word in cases.split()] == [name] * len(cases.split())
    assert name not in [forms.apply([word], "ru", f"это {word}")[0] for word in others.split()]


@given(st.lists(st.text(min_size=1, max_size=8), max_size=5), st.sampled_from(["", "de", "ru", "ar", "zh", "x-y"]))
def test_forms_of_any_text_keep_the_number_of_words(words, language):
    assert len(Forms({"Berlin": 0, "Putin": 1}, {}).apply(words, language)) == len(words)


def test_a_thread_sees_no_part_of_the_table_that_another_one_builds():
    class Watched(dict):
        """Known words; whoever reads all of them waits for another thread that uses the forms."""

        def __iter__(self):
            for number, word in enumerate(super().__iter__()):
                if number and self.other is not None:
                    thread, self.other = self.other, None
                    thread.start()
                    thread.join()
                yield word

    words, other = Watched({"Москва": 0, "Россия": 1}), []
    words.other = None
    forms = Forms(words, {}, [])
    words.other = threading.Thread(target=lambda: other.append(forms.apply(["России"], "ru")))
    assert forms.apply(["России"], "ru") == ["Россия"]
    assert other == [["Россия"]]


def test_marks_that_writers_leave_out_make_no_difference():
    assert normal_letters("أَمْريكا") == normal_letters("امريكا")
    assert normal_letters("ज़") == normal_letters("ज") == normal_letters("\u091c\u093c")
    assert normal_letters("Zoë") == "Zoë"


def test_sounds():
    assert sound_key("Khashoggi") == sound_key("Хашогги")
    assert sound_key("Zuckerberg") == sound_key("Цукерберг")
    assert similarity("putin", "putin") == 1
    assert similarity("putin", "ptn") == pytest.approx(1 - 0.6 / 3.6)  # two vowels of 0.3
    assert similarity("putin", "butin") == pytest.approx(1 - 0.25 / 3.6)
    assert similarity("", "") == 0
    # The more frequent of two words that are equally alike.
    assert Spellings({"Karla": 1, "Carla": 0, "Putin": 2}).closest("Карла")[0] == "Carla"
    assert Spellings({"Putin": 0}).closest("Мост") == ("", 0.0)


def test_names_are_compared_with_the_words_of_the_corpus():
    words = {"new", "delhi", "york", "город", "москва"}
    corpus = CorpusWords(words, spans_of(["New York Times"]), {"en", "zh"})
    for language, alias, expected in (
        ("de", "New York", True),
        ("de", "New Delhi", False),  # both are words, but never together in a name
        ("de", "Delhi", True),
        ("de", "Agra", False),
        ("ru", "Город Москва", True),
        ("ru", "Город Тула", False),
        ("zh-Hant", "紐約", True),
        ("", "紐約", True),
        ("ja", "東京", False),
    ):
        assert may_occur(KnownName("a", language, alias), corpus) == expected, alias


def test_a_capitalised_word_that_the_corpus_writes_in_lower_case_is_no_name():
    uses = {"en": {"nice": WordUse(9, 1), "paris": WordUse(0, 9)}}
    assert is_common_word("Nice", uses)
    assert not is_common_word("Paris", uses)
    assert not is_common_word("Nice Airport", uses)
    rare = {"hi": {"china": WordUse(3, 0)}, "en": {"china": WordUse(0, 90)}}
    assert not is_common_word("China", rare)


def test_words_of_other_names_are_no_adjectives():
    assert built_in("شمال", "ar") == built_in("North and South", "en") == []


def test_priors_add_up_and_rare_meanings_are_left_out():
    names = [KnownName("uk", "", "London", 90), KnownName("on", "", "London", 10), KnownName("x", "", "London", 0.1)]
    found = list(known_aliases(names, {"uk": "London", "on": "London", "x": "X"}))
    assert [(item.entity, pytest.approx(item.prior, abs=1e-3)) for item in found] == [("uk", 0.9), ("on", 0.1)]


def test_two_entities_that_are_aliases_of_each_other_are_two_meanings():
    names = [KnownName("A", "", "Beta", 1), KnownName("B", "", "Alpha", 1), KnownName("A", "", "Alpha", 3)]
    linker = Linker(known_aliases(names, {"A": "A", "B": "B"}), {"A": 0, "B": 1})
    assert linker.link(["Alpha"], "en") == {0: 1}
    assert linker.link(["Beta and Alpha"], "en") == {0: 2}


def test_a_meaning_of_another_language_does_not_count():
    aliases = [Alias("Palu", "PW", 0.8, "", "xx"), Alias("Palu", "city", 0.2, "")]
    linker = Linker(aliases, {"PW": 0, "city": 1})
    assert linker.link(["Palu"], "en") == {1: 1}
    assert linker.link(["Palu"], "xx-YY") == {0: 1}


def test_each_spelling_of_a_name_has_priors_of_its_own():
    # Readers leave the mark of the second one out, so both are one name.
    aliases = [Alias("\u0627\u0645", "mother", 0.1, ""), Alias("\u0623\u0645", "nation", 1, "", "fa")]
    linker = Linker(aliases, {"mother": 0, "nation": 1})
    assert linker.link(["\u0627\u0645"], "fa") == {1: 1}
    assert linker.link(["\u0627\u0645"], "ar") == {}
    linker = Linker([Alias("Roe", "a", 0.6, "", "de"), Alias("Roe", "b", 0.3, "", "en")], {"a": 0, "b": 1})
    assert [linker.link(["Roe"], language) for language in ("de", "en", "fr")] == [{0: 1}, {1: 1}, {}]


@pytest.mark.parametrize(
    ("priors", "kept", "expected"),
    [
        ([0.8, 0.1], [1], {1: 0.5}),  # 0.1 of 0.2, as another 0.1 is of no known meaning
        ([0.8, 0.2], [0, 1], {0: 0.8, 1: 0.2}),
        ([0.8, 0.2], [], {}),
        ([0.5, 0.5001], [0, 1], {0: 0.5, 1: 0.5001}),  # a table has four digits
        ([1.0, 0.5, 0.5], [1, 2], {1: 0.5, 2: 0.5}),  # a table of a user
        ([1.0, 0.25], [1], {1: 1.0}),
    ],
)
def test_priors_of_meanings_without_the_others(priors, kept, expected):
    assert priors_without(priors, kept) == pytest.approx(expected, rel=1e-9)


def test_known_entities_take_over_those_of_the_same_name_but_not_surnames():
    entities = [Entity("Berlin", "Berlin", 9), Entity("Denzel_Washington", "Denzel Washington", 8)]
    aliases = [Alias("Berlin", "Berlin", 1, "Berlin"), Alias("Washington", "Denzel_Washington", 1, "Denzel Washington")]
    names = [KnownName("Q64", "en", "Berlin"), KnownName("Q64", "zh", "柏林"), KnownName("Q61", "en", "Washington")]
    kept, merged = merge_known(entities, aliases, names, ["en"])
    assert {(item.key, item.documents) for item in kept} == {("Q64", 0), ("Denzel_Washington", 8), ("Q61", 0)}
    meanings = {(item.alias, item.entity) for item in merged}
    assert meanings == {("Berlin", "Q64"), ("柏林", "Q64"), ("Washington", "Denzel_Washington")}


def test_names_of_the_corpus_in_other_scripts_are_those_in_latin_letters():
    names = ["Angela Merkel", "Меркель", "Ангелы Меркель", "Берлине", "Москвич"]
    entities = [Entity(name.replace(" ", "_"), name, 5) for name in names]
    aliases = [Alias(item.name, item.key, 1, item.name) for item in entities]
    aliases.append(Alias("Merkel", "Angela_Merkel", 1, "Angela Merkel"))
    known = [KnownName("Q64", "ru", "Берлин"), KnownName("Q64", "en", "Berlin")]
    kept, merged = merge_known(entities, aliases, known, ["en", "ru"])
    assert {item.key for item in kept} == {"Angela_Merkel", "Q64", "Москвич"}
    assert {item.alias for item in merged if item.entity == "Angela_Merkel"} == {
        *("Angela Merkel", "Merkel", "Меркель", "Ангелы Меркель")
    }
    assert {item.alias for item in merged if item.entity == "Q64"} == {"Берлине", "Берлин", "Berlin"}


def corpus(folder):
    rows = []
    for number in range(6):
        texts = {"en": "Yesterday we met Jane Roe in Marrowick again.", "zh": "昨天我们在马罗威克见到了简罗。"}
        language = "en" if number % 2 else "zh"
        url = f"http://p.example/{number}"
        rows.append(Article(make_doc_id(url), url, "p", "", texts[language], byline_date=DAY, language=language))
    parquet.write_shard(f"{folder}/articles/part-00000-of-00001.parquet", rows, Article)
    (folder / "manifest.json").write_text('{"digest": "x"}')
    return str(folder)


def entities_job(tmp_path, table, **options):
    (tmp_path / "kb.tsv").write_text(table, encoding="utf-8")
    inputs = {"articles": [corpus(tmp_path / "clean")], "knowledge_base": [str(tmp_path / "kb.tsv")]}
    options = EntitiesOptions(dimensions=4, built_in_names=False, **options)
    return jobs.execute(JOB, inputs, str(tmp_path / "out"), options, ["--direct_num_workers=1"])


def test_a_table_joins_languages(tmp_path):
    table = "Q1\ten\tJane Roe\nQ1\tzh\t简罗\nQ2\tzh\t马罗威克\nQ2\ten\tMarrowick\nQ3\ten\tElsewhere\nQ3\ten\tE\n"
    entities_job(tmp_path, table)
    keys = {fields[0]: fields[1] for fields in tables.read_keys(f"{tmp_path}/out/entities.tsv")}
    assert keys == {"Q1": "6", "Q2": "6"}
    linker = Linker(tables.read_aliases(f"{tmp_path}/out/aliases.tsv"), {"Q1": 1, "Q2": 2})
    assert linker.link(["简罗在马罗威克"], "zh") == linker.link(["Jane Roe, Marrowick"], "en") == {1: 1, 2: 1}


def test_a_broken_row_stops_the_job_with_its_place(tmp_path):
    with pytest.raises(InputError) as caught:
        entities_job(tmp_path, "Q1\ten\tJane Roe\nQ2\n")
    assert caught.value.field == "line 2"


def test_entities_kept_apart_have_one_language_and_the_priors_they_had():
    aliases = [
        Alias("Roe", "roe", 0.6, "Roe"),
        Alias("Roe", "jane", 0.4, "Jane Roe"),
        Alias("rot", "red", 1.0, "Red", "de"),
        Alias("Poe", "poe", 0.3, "Poe"),
    ]
    entities = [Entity(key, key, 9) for key in ("roe", "jane", "red", "poe")]
    own, apart = keep_apart(entities, aliases, ["de", "en-US", "es", "en"])
    assert [entity.key for entity in own][:3] == ["de:roe", "en:roe", "es:roe"]
    assert {entity.documents for entity in own} == {0}
    assert {(item.alias, item.entity, item.languages) for item in apart if item.alias == "rot"} == {
        ("rot", "de:red", "de")
    }
    keys = [entity.key for entity in own]
    before = Linker(aliases, {"roe": 0, "jane": 1, "red": 2, "poe": 3})
    after = Linker(apart, {key: row for row, key in enumerate(keys)})
    for text, language in (("Roe", "en"), ("Roe", "es"), ("Poe", "de"), ("rot", "de"), ("rot", "en")):
        expected = {f"{language}:{('roe', 'jane', 'red', 'poe')[row]}" for row in before.link([text], language)}
        assert {keys[row] for row in after.link([text], language)} == expected
    # Below a half no meaning is chosen, so a text tells whether a prior is as it was: 0.6 is, 0.3 is not.
    assert (len(after.link(["Roe"], "en")), len(after.link(["Poe"], "en"))) == (1, 0)


@given(
    st.lists(
        st.tuples(st.integers(1, 40), st.sampled_from(["", "de", "en", "de,es"])), min_size=1, max_size=4, unique=True
    )
)
def test_priors_of_entities_kept_apart_are_those_of_each_language(drawn):
    total = max(100, sum(weight for weight, _ in drawn) + 10)
    aliases = [
        Alias("Roe", f"e{number}", weight / total, "Roe", languages) for number, (weight, languages) in enumerate(drawn)
    ]
    own, apart = keep_apart([Entity(item.entity, "Roe", 9) for item in aliases], aliases, ("de", "en", "es"))
    after = {item.entity: item.prior for item in apart}
    assert len(own) == 3 * len(aliases)
    for language in ("de", "en", "es"):
        here = {item.entity: item.prior for item in aliases if language in (item.languages or language).split(",")}
        elsewhere = sum(item.prior for item in aliases) - sum(here.values())
        others = sum(prior for key, prior in after.items() if not key.startswith(f"{language}:"))
        for entity, prior in here.items():
            assert after[f"{language}:{entity}"] / (1 - others) == pytest.approx(prior / (1 - elsewhere), rel=0.02)


@pytest.mark.parametrize("dropped", ["", "de", "de es", "de en es fr hi"])
def test_entities_kept_apart_are_chosen_as_before_where_other_languages_drop_theirs(dropped):
    languages = ["de", "en", "es", "fr", "hi", "ru"]
    aliases = [
        Alias("Doe", "doe", 1.0, "Doe"),
        Alias("Poe", "poe", 0.3, "Poe"),
        Alias("Roe", "roe", 0.6, "Roe"),
        Alias("Roe", "jane", 0.4, "Jane Roe"),
    ]
    own, apart = keep_apart([Entity(key, key, 9) for key in ("doe", "poe", "roe", "jane")], aliases, languages)
    # Few articles in the dropped languages name them.
    keys = [entity.key for entity in own if entity.key.partition(":")[0] not in dropped.split()]
    chosen = choose_apart(apart, keys)
    assert {item.entity for item in chosen} == set(keys)
    assert chosen == sorted(chosen, key=lambda item: (item.alias, -item.prior, item.entity))
    linker = Linker(chosen, {key: row for row, key in enumerate(keys)})
    for language in set(languages) - set(dropped.split()):
        found = [[keys[row] for row in linker.link([text], language)] for text in ("Doe", "Poe", "Roe", "Roe Poe")]
        assert found == [[f"{language}:doe"], [], [f"{language}:roe"], [f"{language}:roe"]], language
    for language in dropped.split():
        assert not linker.link(["Doe Roe"], language)


def test_without_names_across_languages_the_same_name_is_another_entity_in_each(tmp_path):
    articles = [
        Article(
            make_doc_id(f"{language}{number}"),
            f"http://x/{language}{number}",
            "p",
            byline_date=DAY,
            language=language,
            title="x",
            body=body,
        )
        for language, body in {"en": "We met Lena Hartwick today.", "de": "Wir trafen Lena Hartwick heute."}.items()
        for number in range(4)
    ]
    clean = tmp_path / "clean"
    parquet.write_shard(str(clean / "articles" / "part-00000-of-00001.parquet"), articles, Article)
    (clean / "manifest.json").write_text('{"digest": "d"}')
    found = {}
    for across in (True, False):
        output = str(tmp_path / f"across-{across}")
        options = EntitiesOptions(built_in_names=False, across_languages=across)
        jobs.execute(JOB, {"articles": (str(clean),)}, output, options, ("--direct_num_workers=1",))
        table = tables.read_embeddings(f"{output}/entities.npy")
        linker = Linker(tables.read_aliases(f"{output}/aliases.tsv"), table.rows())
        rows = [next(iter(linker.link(["Lena Hartwick"], language))) for language in ("en", "de")]
        found[across] = ([table.keys[row] for row in rows], [table.counts[row] for row in rows])
    assert found == {
        True: (["Lena_Hartwick"] * 2, [8, 8]),
        False: (["en:Lena_Hartwick", "de:Lena_Hartwick"], [4, 4]),
    }
