"""The generated newsroom: all habits at a small scale, a truth that fits the site, equal bytes for equal options."""

import collections
import dataclasses
import datetime
import hashlib
import io
import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlparse

import pytest
from newsembed.errors import InputError
from newsembed.newsroom import NewsroomOptions, generate_newsroom
from newsembed.newsroom.generate import write_across_languages
from newsembed.newsroom.junk import DISALLOWED_FOLDER, Junk
from newsembed.newsroom.publishers import PUBLISHERS, DateHabit
from newsembed.newsroom.store import SiteReader

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
        return [json.loads(line) for line in (self.folder / name).read_text().splitlines()]

    def table(self, name):
        return [line.split("\t") for line in (self.folder / name).read_text().splitlines()]

    def stored(self, url):
        parts = urlparse(url)
        return self.site.find(parts.netloc, parts.path)

    def page(self, url):
        return self.site.body(self.stored(url))


@pytest.fixture(scope="module")
def newsroom(tmp_path_factory):
    return Newsroom(tmp_path_factory.mktemp("newsroom"))


def digest(folder):
    files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_same_options_give_the_same_bytes_in_another_process(newsroom, tmp_path):
    command = [
        sys.executable,
        "-m",
        "newsembed",
        "newsroom",
        "--output",
        str(tmp_path / "again"),
        "--seed=3",
        "--scale=0.05",
    ]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PYTHONHASHSEED": "12345"})
    assert digest(tmp_path / "again") == digest(newsroom.folder)


def test_another_seed_gives_another_world(newsroom, tmp_path):
    generate_newsroom(str(tmp_path), dataclasses.replace(OPTIONS, seed=4))
    assert {row["url"] for row in newsroom.articles}.isdisjoint(
        row["url"]
        for row in map(json.loads, (tmp_path / "truth.jsonl").read_text().splitlines())
        if row["kind"] == "news" and "/20" in row["url"]
    )


def test_every_kind_is_there_and_the_summary_counts_them(newsroom):
    kinds = collections.Counter(row["kind"] for row in newsroom.truth)
    assert set(kinds) == {"news", "evergreen", "syndicated", *(f"junk:{kind}" for kind in Junk)}
    assert newsroom.summary.by_kind == dict(sorted(kinds.items()))
    assert newsroom.summary.articles == sum(kinds.values()) == len({row["url"] for row in newsroom.truth})
    assert sum(newsroom.summary.by_language.values()) == len(newsroom.truth)
    assert {row["publisher"] for row in newsroom.articles} == {f"{publisher.slug}.example" for publisher in PUBLISHERS}


def test_truth_and_store_agree_on_every_url(newsroom):
    expected = {"junk:server_error": 500, "junk:redirect": 301}
    for row in newsroom.truth:
        stored = newsroom.stored(row["url"])
        assert stored is not None, row["url"]
        assert stored.status == expected.get(row["kind"], 200)
        if row["kind"] in ("news", "evergreen", "syndicated"):
            assert f"<h1>{row['title'].replace('&', '&amp;')}</h1>" in newsroom.page(row["url"]).decode()


def test_redirect_chain_ends_at_an_article(newsroom):
    (row,) = [row for row in newsroom.truth if row["kind"] == "junk:redirect"]
    first = newsroom.stored(row["url"])
    second = newsroom.stored(first.location)
    assert (first.status, second.status) == (301, 302)
    assert second.location in {article["url"] for article in newsroom.articles}


def test_everything_allowed_is_reachable_from_the_seeds(newsroom):
    seeds = (newsroom.folder / "seeds.txt").read_text().split()
    seen, queue = set(seeds), list(seeds)
    while queue:
        stored = newsroom.stored(queue.pop())
        if stored is None or stored.status != 200 or stored.content_type.startswith("image/"):
            continue
        text = newsroom.site.body(stored).decode("utf-8", "replace")
        for url in re.findall(r"http://www\.\w+\.example/[^\"<\s]*", text):
            if url not in seen:
                seen.add(url)
                if DISALLOWED_FOLDER not in url:
                    queue.append(url)
    assert {
        row["url"] for row in newsroom.truth
    } <= seen  # the disallowed pages are linked, so obeying robots.txt matters
    assert not [url for url in seen if newsroom.stored(url) is None]


def test_section_hubs_alone_list_every_article(newsroom):
    hubs = [
        seed
        for seed in (newsroom.folder / "seeds.txt").read_text().split()
        if "/feeds/" not in seed and "/region/" not in seed
    ]
    listed = set()
    for hub in hubs:
        number, address = 1, hub
        while newsroom.stored(address):
            listed |= set(re.findall(r'<li class="teaser"><h3><a href="([^"]+)"', newsroom.page(address).decode()))
            number += 1
            address = f"{hub}page/{number}/"
    assert {row["url"] for row in newsroom.articles} <= listed


def test_feeds_parse_and_list_articles(newsroom):
    import xml.etree.ElementTree as ElementTree

    urls = {row["url"] for row in newsroom.articles}
    kinds = collections.Counter()
    for seed in (newsroom.folder / "seeds.txt").read_text().split():
        if "/feeds/" not in seed:
            continue
        body = newsroom.page(seed)
        if seed.endswith("feed.json"):
            links = [item["url"] for item in json.loads(body)["items"]]
        else:
            tree = ElementTree.fromstring(body)
            links = [
                node.text for node in tree.iter("link") if node.text and "/" in node.text.removeprefix("http://www.")
            ]
            links = links[1:] if tree.tag == "rss" else [node.get("href") for node in tree.findall("{*}entry/{*}link")]
        assert links
        assert set(links) <= urls
        kinds[seed.rpartition("/")[2]] += 1
    assert set(kinds) == {"rss.xml", "atom.xml", "feed.json"}


def test_an_event_is_covered_within_a_day_by_at_least_two_publishers(newsroom):
    by_event = collections.defaultdict(list)
    for row in newsroom.articles:
        if row["event"]:
            by_event[row["event"]].append(row)
    for rows in by_event.values():
        days = [datetime.date.fromisoformat(row["byline_date"]) for row in rows]
        assert max(days) - min(days) <= datetime.timedelta(days=1)
        for language in {row["language"] for row in rows}:
            publishers = [row["publisher"] for row in rows if row["language"] == language]
            assert 2 <= len(publishers) == len(set(publishers)) <= 6
    assert any(len({row["language"] for row in rows}) > 1 for rows in by_event.values())


def test_similar_events_come_back_after_a_year():
    from newsembed.newsroom.world import EventPlanner, build_world

    world = build_world(OPTIONS)
    planner = EventPlanner(world, OPTIONS, "test")
    series = [planner.series("en") for _ in range(60)]
    gaps = [(later.date - events[0].date).days for events in series for later in events[1:]]
    assert sum(gap > 365 for gap in gaps) > 20
    assert all(6 <= gap <= 20 or gap > 365 for gap in gaps)
    assert all(len({(event.topic, event.place.name) for event in events}) == 1 for events in series)
    assert all(len({event.counts for event in events}) == len(events) for events in series)


def test_near_duplicates_share_most_of_their_text(newsroom):
    groups = collections.defaultdict(list)
    for row in newsroom.articles:
        if row["near_duplicate_group"]:
            groups[row["near_duplicate_group"]].append(row)
    assert {row["kind"] for rows in groups.values() for row in rows} == {"evergreen", "syndicated"}
    for rows in groups.values():
        assert len(rows) >= 2
        bodies = [
            set(" ".join(re.findall(r"<p>(.*?)</p>", newsroom.page(row["url"]).decode())).split()) for row in rows
        ]
        for one, two in itertools.combinations(bodies, 2):
            assert len(one & two) / len(one | two) > 0.6
        if rows[0]["kind"] == "evergreen":
            years = sorted(datetime.date.fromisoformat(row["byline_date"]) for row in rows)
            assert all((later - earlier).days > 350 for earlier, later in itertools.pairwise(years))
        else:
            assert len({row["publisher"] for row in rows}) == len(rows)


def test_pages_can_be_extracted_with_title_date_author_and_language(newsroom):
    import trafilatura
    from resiliparse.parse.lang import detect_fast

    right = collections.Counter()
    sample = newsroom.articles[::5]
    for row in sample:
        found = json.loads(
            trafilatura.extract(
                newsroom.page(row["url"]).decode(), url=row["url"], output_format="json", with_metadata=True
            )
        )
        assert found["title"] == row["title"]
        assert 110 <= len(found["text"].split()) <= 420
        assert detect_fast(found["text"])[0] == row["language"]
        right["date"] += found["date"] == row["byline_date"]
        right["author"] += (row["author"] or "None") in str(found["author"])
    assert min(right.values()) >= 0.85 * len(sample)


def test_publishers_show_dates_in_all_their_ways(newsroom):
    pages = {row["publisher"]: newsroom.page(row["url"]).decode() for row in newsroom.articles if row["kind"] == "news"}
    signs = {
        DateHabit.JSON_LD: '"datePublished"',
        DateHabit.OPEN_GRAPH: "article:published_time",
        DateHabit.PLAIN_TEXT: '<span class="date">',
        DateHabit.RELATIVE_TIME: "<time datetime=",
        DateHabit.RELATIVE_URL: '<span class="age">',
        DateHabit.DUBLIN_CORE: "DC.date.issued",
    }
    shown = collections.Counter()
    for publisher in PUBLISHERS:
        page = pages[f"{publisher.slug}.example"]
        for habit, sign in signs.items():
            assert publisher.date_habit is habit or sign not in page
            shown[habit] += sign in page
    assert all(shown[habit] for habit in signs)


def test_pictures_of_one_event_are_alike_and_of_two_are_not(newsroom):
    import imagehash
    from PIL import Image

    hashes = collections.defaultdict(list)
    for row in newsroom.articles:
        parts = urlparse(row["url"])
        stored = newsroom.site.find(parts.netloc, f"/img/{row['event']}.jpg")
        if row["event"] and stored:
            hashes[row["event"]].append(imagehash.whash(Image.open(io.BytesIO(newsroom.site.body(stored)))))
    within = [one - two for group in hashes.values() for one, two in itertools.combinations(group, 2)]
    firsts = [group[0] for group in hashes.values()]
    between = [one - two for one, two in itertools.combinations(firsts, 2)]
    assert sum(distance <= 10 for distance in within) >= 0.95 * len(within)
    assert sum(distance > 10 for distance in between) >= 0.95 * len(between)


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


def test_full_scale_holds_out_many_events_of_each_language():
    from newsembed.newsroom.evaluation_sets import held_out_events
    from newsembed.newsroom.world import build_world

    options = NewsroomOptions()
    for language, events in held_out_events(build_world(options), options).items():
        least = 60 if language in REGIONS else 30
        assert len({(event.topic, event.place.number, event.matter) for event in events}) == len(events) >= least


def test_paraphrases_share_fewer_words_than_ordinary_coverage(newsroom):
    def overlap(rows):
        events = collections.defaultdict(list)
        for row in rows:
            events[row["event"]].append(set(re.findall(r"\w{5,}", row["body"].lower())))
        pairs = [pair for group in events.values() for pair in itertools.combinations(group, 2)]
        return sum(len(one & two) / len(one | two) for one, two in pairs) / len(pairs)

    assert overlap(newsroom.json_lines("paraphrases.jsonl")) < 0.85 * overlap(newsroom.json_lines("heldout.jsonl"))


def test_bitext_and_graded_pairs(newsroom):
    bitext = newsroom.table("bitext.tsv")
    assert len(bitext) == newsroom.summary.bitext >= 60
    assert all(
        len(row) == 4 and row[0] != row[1] and {row[0], row[1]} <= set(LANGUAGES) and row[2] and row[3]
        for row in bitext
    )
    graded = newsroom.table("sts.tsv")
    assert {(row[0], row[3]) for row in graded} == {
        (str(score), language) for score in range(6) for language in LANGUAGES
    }
    assert all(row[1] != row[2] for row in graded)


@pytest.mark.parametrize("scale", [0.0, -1.0, 1000.0])
def test_a_scale_out_of_range_is_refused(scale):
    with pytest.raises(InputError, match="scale"):
        NewsroomOptions(scale=scale)


def test_output_that_is_a_file_is_refused(tmp_path):
    path = tmp_path / "file"
    path.write_text("x")
    with pytest.raises(InputError, match="expected a folder"):
        generate_newsroom(str(path), OPTIONS)


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
    with pytest.raises(InputError, match="turnover"):
        NewsroomOptions(turnover=1.5)


def test_articles_in_the_layout_of_mldoc(tmp_path):
    from newsembed.evaluation.mldoc import MlDoc
    from newsembed.newsroom.mldoc import write_mldoc
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
    write_mldoc(str(tmp_path / "b"), OPTIONS)
    assert all((tmp_path / "b" / name).read_bytes() == (tmp_path / "a" / name).read_bytes() for name in lines)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is a file"):
        write_mldoc(str(tmp_path / "file"), OPTIONS)


def test_the_command_writes_the_layout_of_mldoc_without_a_site(tmp_path, capsys):
    import argparse

    from newsembed.newsroom import command

    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    asked = ["--output", str(tmp_path / "m"), "--format", "mldoc", "--scale", "0.05"]
    assert command.run(parser.parse_args(asked)) == 0
    assert "english.dev  50" in capsys.readouterr().out
    assert not (tmp_path / "m" / "seeds.txt").exists()
    with pytest.raises(InputError, match="given with --format mldoc"):
        command.run(parser.parse_args([*asked, "--serve"]))


def test_every_language_tells_each_held_out_event_twice(newsroom, tmp_path):
    path = tmp_path / "across.jsonl"
    rows = write_across_languages(str(path), OPTIONS)
    articles = [json.loads(line) for line in path.read_text().splitlines()]
    assert rows == len(articles) == len({article["id"] for article in articles})
    told = collections.Counter((article["event"], article["language"]) for article in articles)
    held_out = {article["event"]: article for article in newsroom.json_lines("heldout.jsonl")}
    assert told == {(event, language): 2 for event in held_out for language in LANGUAGES}
    publishers = {f"{publisher.slug}.example": publisher.language for publisher in PUBLISHERS}
    assert all(publishers[article["publisher"]] == article["language"] for article in articles)
    assert all(article["topic"] == held_out[article["event"]]["topic"] for article in articles)
    pairs = {(article["event"], article["publisher"]) for article in articles}
    assert len(pairs) == len(articles)  # two publishers, not one twice
    write_across_languages(str(tmp_path / "again.jsonl"), OPTIONS)
    assert (tmp_path / "again.jsonl").read_bytes() == path.read_bytes()


def test_the_languages_without_a_region_change_nothing_for_the_others(newsroom, tmp_path, monkeypatch):
    from newsembed.newsroom import articles, evaluation_sets

    monkeypatch.setitem(articles._ARTICLES, "ru", 600)
    monkeypatch.setitem(articles._EVERGREENS, "ru", 200)
    monkeypatch.setattr(evaluation_sets, "_HELD_OUT_EVENTS_ABROAD", 300)
    generate_newsroom(str(tmp_path), OPTIONS)

    def of_regions(folder, name):
        lines = (folder / name).read_text().splitlines()
        return [line for line in lines if not re.search(r'"ru"|\tru\b|vestnikgavani|severnyparom', line)]

    names = ("truth.jsonl", "heldout.jsonl", "paraphrases.jsonl", "seeds.txt", "sts.tsv", "site/index.jsonl")
    for name in names:
        own = of_regions(tmp_path, name)
        assert own == of_regions(newsroom.folder, name)
        for folder in (tmp_path, newsroom.folder):
            assert (folder / name).read_text().splitlines()[: len(own)] == own
    assert len((tmp_path / "truth.jsonl").read_text()) > len((newsroom.folder / "truth.jsonl").read_text())


def test_russian_papers_report_events_that_papers_of_the_region_report(newsroom):
    told = collections.defaultdict(set)
    for row in newsroom.articles:
        if row["event"]:
            told[row["event"]].add(row["language"])
    russian = [languages for languages in told.values() if "ru" in languages]
    assert len(russian) >= 10
    assert all(languages & set(REGIONS) for languages in russian)


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
