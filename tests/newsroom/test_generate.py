"""The generated newsroom: all habits at a small scale, a truth that fits the site, equal bytes for equal options."""

import collections
import dataclasses
import datetime
import hashlib
import os
import re
import subprocess
import sys
from urllib.parse import urlparse

import pytest
from json_lines import read_rows
from newsembed.errors import InputError
from newsembed.newsroom import NewsroomOptions, generate, generate_newsroom
from newsembed.newsroom.generate import write_across_languages
from newsembed.newsroom.server import SiteReader
from newsembed.newsroom.site import DISALLOWED_FOLDER, Junk
from newsembed.newsroom.world import PUBLISHERS

OPTIONS = NewsroomOptions(seed=3, scale=0.05)
REGIONS = ("en", "de", "es")
LANGUAGES = (*REGIONS, "ru")


class Newsroom:
    def __init__(self, folder):
        self.folder = folder
        self.summary = generate_newsroom(str(folder), OPTIONS)
        self.site = SiteReader(str(folder / "site"))
        self.truth = self.json_lines("truth.jsonl")
        self.articles = [row for row in self.truth if not row["kind"].startswith("junk:")]

    def json_lines(self, name):
        return read_rows(self.folder / name)

    def table(self, name):
        return [line.split("\t") for line in (self.folder / name).read_text().splitlines()]

    def stored(self, url):
        parts = urlparse(url)
        return self.site.find(parts.netloc, parts.path)

    def page(self, url):
        return self.stored(url).body


@pytest.fixture(scope="module")
def newsroom(tmp_path_factory):
    return Newsroom(tmp_path_factory.mktemp("newsroom"))


# Of seed 3 at the smallest scale, so that a change of what is generated is seen.
DIGESTS = {
    "truth.jsonl": "8b8da7bfe1cf974a",
    "names.tsv": "e9fab4e53e09ad27",
    "bitext.tsv": "1b475564f99972cb",
    "heldout.jsonl": "4851cdb536c462f7",
    "paraphrases.jsonl": "e7df21d947ffe55a",
    "sts.tsv": "d2e4e7828d600d17",
    "seeds.txt": "efc5b65ace47bd6c",
}


@pytest.mark.parametrize("name", DIGESTS)
def test_the_texts_of_a_seed_stay_the_same(newsroom, name):
    assert hashlib.sha256((newsroom.folder / name).read_bytes()).hexdigest()[:16] == DIGESTS[name]


def test_the_site_is_the_same_in_another_process(newsroom, tmp_path):
    command = [sys.executable, "-m", "newsembed", "newsroom", f"--output={tmp_path}", "--seed=3", "--scale=0.05"]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PYTHONHASHSEED": "12345"})
    for name in ("index.jsonl", "content.bin"):
        assert (tmp_path / "site" / name).read_bytes() == (newsroom.folder / "site" / name).read_bytes()


def test_every_kind_is_there_and_the_summary_counts_them(newsroom):
    kinds = collections.Counter(row["kind"] for row in newsroom.truth)
    assert set(kinds) == {"news", "evergreen", "syndicated", *(f"junk:{kind}" for kind in Junk)}
    assert newsroom.summary["by_kind"] == dict(sorted(kinds.items()))
    assert newsroom.summary["articles"] == sum(kinds.values()) == len({row["url"] for row in newsroom.truth})
    assert sum(newsroom.summary["by_language"].values()) == len(newsroom.truth)
    assert {row["publisher"] for row in newsroom.articles} == {f"{publisher.slug}.example" for publisher in PUBLISHERS}


def test_truth_and_store_agree_on_every_url(newsroom):
    expected = {"junk:server_error": 500, "junk:redirect": 301}
    for row in newsroom.truth:
        stored = newsroom.stored(row["url"])
        assert stored is not None, row["url"]
        assert stored.status == expected.get(row["kind"], 200)
        if row["kind"] in ("news", "evergreen", "syndicated"):
            assert f"<h1>{row['title'].replace('&', '&amp;')}</h1>" in newsroom.page(row["url"]).decode()


def test_everything_allowed_is_reachable_from_the_seeds(newsroom):
    seeds = (newsroom.folder / "seeds.txt").read_text().split()
    seen, queue = set(seeds), list(seeds)
    while queue:
        stored = newsroom.stored(queue.pop())
        if stored is None or stored.status != 200 or stored.content_type.startswith("image/"):
            continue
        text = stored.body.decode("utf-8", "replace")
        for url in re.findall(r"http://www\.\w+\.example/[^\"<\s]*", text):
            if url not in seen:
                seen.add(url)
                if DISALLOWED_FOLDER not in url:
                    queue.append(url)
    # The disallowed pages are linked, so obeying robots.txt matters.
    assert {row["url"] for row in newsroom.truth} <= seen
    assert not [url for url in seen if newsroom.stored(url) is None]


def test_held_out_events_are_not_on_the_site(newsroom):
    held_out, rewritten = newsroom.json_lines("heldout.jsonl"), newsroom.json_lines("paraphrases.jsonl")
    published = {row["event"] for row in newsroom.articles}
    assert not published & {row["event"] for row in held_out}
    assert {row["event"] for row in rewritten} == {row["event"] for row in held_out}
    for rows, least, most in ((held_out, 3, 5), (rewritten, 2, 2)):
        assert {row["language"] for row in rows} == set(LANGUAGES)
        assert len({row["id"] for row in rows}) == len(rows)
        events = collections.defaultdict(set)
        for row in rows:
            events[row["event"]].add(row["publisher"])
        assert all(min(least, 2) <= len(publishers) <= most for publishers in events.values())
        told_abroad = {row["event"] for row in rows if row["language"] == "ru"}
        assert all(len(events[event]) == 2 for event in told_abroad)  # all Russian publishers
        assert all(least <= len(publishers) for event, publishers in events.items() if event not in told_abroad)


def test_bitext_and_graded_pairs(newsroom):
    bitext = newsroom.table("bitext.tsv")
    assert len(bitext) == newsroom.summary["bitext"] >= 60
    assert all(
        len(row) == 4 and row[0] != row[1] and {row[0], row[1]} <= set(LANGUAGES) and row[2] and row[3]
        for row in bitext
    )
    graded = newsroom.table("sts.tsv")
    assert {(row[0], row[3]) for row in graded} == {
        (str(score), language) for score in range(6) for language in LANGUAGES
    }
    assert all(row[1] != row[2] for row in graded)


def test_turnover_replaces_people_and_organisations_from_a_day_on_and_changes_nothing_else():
    from newsembed.newsroom.world import TOPICS, EventPlanner, build_world

    still, moving = (build_world(NewsroomOptions(turnover=turnover)) for turnover in (0.0, 1.0))
    assert not still.successions
    assert (moving.places, moving.people, moving.organisations) == (still.places, still.people, still.organisations)
    assert set(moving.successions) == set(moving.people)
    names = [person.last for person in moving.people.values()] + [
        change.person.last for change in moving.successions.values()
    ]
    assert len(set(names)) == len(names)
    event = EventPlanner(moving, NewsroomOptions(), "event").single("en", set())
    change = moving.successions[event.place.number, TOPICS[event.topic][0]]
    before = dataclasses.replace(event, date=change.day - datetime.timedelta(days=1))
    after = dataclasses.replace(event, date=change.day)
    assert moving.actor(before) == still.actor(before)
    assert moving.actor(after).last != still.actor(after).last
    for wrong in ({"turnover": 1.5}, {"scale": 0.0}, {"scale": 1000.0}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            NewsroomOptions(**wrong)


def test_articles_in_the_layout_of_mldoc(tmp_path):
    from newsembed.evaluation.benchmarks.mldoc import MlDoc
    from newsembed.newsroom.evaluation_sets import write_mldoc
    from newsembed.newsroom.world import TOPICS

    counts = write_mldoc(str(tmp_path / "a"), OPTIONS)
    assert counts == {
        f"{language}.{part}": count
        for language in ("english", "german", "spanish")
        for part, count in (("train.10000", 500), ("train.1000", 50), ("dev", 50), ("test", 200))
    }
    lines = {path.name: path.read_text().splitlines() for path in (tmp_path / "a").iterdir()}
    assert {name: len(found) for name, found in lines.items()} == counts
    assert lines["german.train.10000"][:50] == lines["german.train.1000"]
    labels = collections.Counter(line.split("\t")[0] for line in lines["spanish.test"])
    assert set(labels) == set(TOPICS)
    assert max(labels.values()) < 2 * min(labels.values())
    # Reports of one event share its numbers and names; no text is in two parts.
    parts = [set(lines[f"english.{part}"]) for part in ("train.10000", "dev", "test")]
    assert not (parts[0] & parts[1] | parts[0] & parts[2] | parts[1] & parts[2])
    assert len(MlDoc(str(tmp_path / "a"), "m").documents()) == 3 * 300
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is a file"):
        write_mldoc(str(tmp_path / "file"), OPTIONS)


def test_the_command_writes_the_layout_of_mldoc_without_a_site(tmp_path, capsys):

    asked = {"output": str(tmp_path / "m"), "format": "mldoc", "scale": 0.05}
    assert generate.run(generate.OPTIONS(**asked)) == 0
    assert "english.dev  50" in capsys.readouterr().out
    assert not (tmp_path / "m" / "seeds.txt").exists()
    with pytest.raises(InputError, match="given with --format mldoc"):
        generate.OPTIONS(**asked, serve=True)


def test_every_language_tells_each_held_out_event_twice(newsroom, tmp_path):
    path = tmp_path / "across.jsonl"
    rows = write_across_languages(str(path), OPTIONS)
    articles = read_rows(path)
    assert rows == len(articles) == len({article["id"] for article in articles})
    told = collections.Counter((article["event"], article["language"]) for article in articles)
    held_out = {article["event"]: article for article in newsroom.json_lines("heldout.jsonl")}
    assert told == {(event, language): 2 for event in held_out for language in LANGUAGES}
    publishers = {f"{publisher.slug}.example": publisher.language for publisher in PUBLISHERS}
    assert all(publishers[article["publisher"]] == article["language"] for article in articles)
    assert all(article["topic"] == held_out[article["event"]]["topic"] for article in articles)
    pairs = {(article["event"], article["publisher"]) for article in articles}
    assert len(pairs) == len(articles)  # two publishers, not one twice


def test_the_table_of_names_has_every_name_of_the_world_and_its_cases(newsroom):
    from newsembed.newsroom.world import build_world

    world = build_world(OPTIONS)
    forms = collections.defaultdict(list)
    for kind, name, form in newsroom.table("names.tsv"):
        forms[kind, name].append(form)
    assert collections.Counter(kind for kind, _ in forms) == {
        "place": len(world.places),
        "person": len(world.people),
        "organisation": len(world.organisations),
    }
    assert forms["place", "Thornmere"] == ["Торнмир", "Торнмира", "Торнмиру", "Торнмиром", "Торнмире"]
    texts = " ".join(row["title"] + row["body"] for row in newsroom.json_lines("heldout.jsonl"))
    assert sum(any(form in texts for form in found) for found in forms.values()) > 20
