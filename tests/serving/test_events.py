"""Events: values by hand for the rule, one run against many, and merges."""

import numpy as np
import pytest
from newsembed.serving import events as events_module
from newsembed.serving.events import NO_EVENT, UNDATED, EventOptions, Merge, Scale, assign, inherited
from stream import b_cubed
from vectors import circle

OPTIONS = EventOptions(threshold=0.8, days=2, day_decay=0.0)


def grouped(vectors, days, events=None, options=OPTIONS, doc_ids=None, languages=None):
    doc_ids = np.arange(1, len(days) + 1, dtype=np.uint64) if doc_ids is None else doc_ids
    events = np.full(len(days), NO_EVENT, np.uint64) if events is None else np.array(events, np.uint64)
    languages = languages or ["en"] * len(days)
    return assign(doc_ids, np.array(days), events, languages, vectors.__getitem__, options)


# Angles of the articles, their days, their events so far, options, the events in the end, and the merges.
DECAYED, ALMOST = EventOptions(0.8, 5, 0.05), EventOptions(0.89, 2, 0.0)
RULES = {
    # cos 20 = 0.94, cos 40 = 0.77, so 60 is 0.87 from 90; the second 0 is 2 days from 20, the last 3 from everything.
    "the most similar event of near days": ((0, 90, 20, 60, 0, 0), [1, 1, 2, 3, 4, 7], [0] * 6, [1, 2, 1, 2, 1, 6], []),
    # 30 from 0 is 0.87, but the mean with -30 (0.5) is 0.68.
    "the mean over the articles of the event": ((0, -30, 30), [1, 1, 1], [1, 1, 0], [1, 1, 3], []),
    "the mean over one article": ((0, 30), [1, 1], [1, 0], [1, 1], []),
    # cos 20 = 0.94 less two days is 0.84, less three 0.79.
    "a day takes something": ((0, 20), [1, 3], [0, 0], [1, 1], [], DECAYED),
    "three days take too much": ((0, 20), [1, 4], [0, 0], [1, 2], [], DECAYED),
    # The event has moved on: its article of day 1 is no reason to refuse one of day 5.
    "articles of far days do not count": ((0, 30, 50), [1, 3, 5], [1, 1, 0], [1, 1, 1], []),
    # 18 is nearest to 35 and joins that event; its three articles have a mean of 0.86 with 0.
    "the larger of two events stays": ((0, 35, 35, 18), [5] * 4, [1, 2, 2, 0], [2] * 4, [(1, 2, 4)]),
    # 16 joins 0, so that both events have two articles; the means of (0, 16) with 35 is 0.88.
    "the earlier of equal ones": ((0, 35, 35, 16), [5, 4, 4, 5], [1, 2, 2, 0], [2] * 4, [(1, 2, 4)]),
    "the earlier of equal ones, the other way": ((0, 35, 35, 16), [4, 5, 5, 5], [1, 2, 2, 0], [1] * 4, [(2, 1, 4)]),
    "the smaller id of equal ones": ((0, 35, 35, 16), [5, 5, 5, 5], [1, 2, 2, 0], [1] * 4, [(2, 1, 4)]),
    # Without it the mean of (0, 16) with 35 is 0.88; the articles at 35 are 2 days away.
    "a small decay": ((0, 35, 35, 16), [7, 5, 5, 7], [1, 2, 2, 0], [2] * 4, [(1, 2, 4)], EventOptions(0.8, 2, 0.03)),
    "the decay in merges": ((0, 35, 35, 16), [7, 5, 5, 7], [1, 2, 2, 0], [1, 2, 2, 1], [], EventOptions(0.8, 2, 0.05)),
    # 18 joins 0; the mean of both with 36 is (0.951 + 0.809) / 2 = 0.880, and would be 0.904 if 18 counted twice.
    "what shows two to be one counts once": ((0, 36, 18), [5, 5, 5], [1, 2, 0], [1, 2, 1], [], ALMOST),
    # 0 and 60 are each 0.87 from 30, and 0.5 from each other.
    "both are like the new article only": ((0, 60, 30), [5, 5, 5], [1, 2, 0], [1, 2, 1], []),
    "a merge reaches far days": ((0, 35, 35, 18, 0), [5, 5, 5, 5, 1], [1, 2, 2, 0, 1], [2] * 5, [(1, 2, 4)]),
    "no date, no event": ((0, 0), [UNDATED, 5], [0, 0], [NO_EVENT, 2], []),
    "days before count, too": ((0, 0), [3, 1], [1, 0], [1, 1], []),
    "three days before": ((0, 0), [4, 1], [1, 0], [1, 2], []),
    "the threshold is enough": ((0, 0), [5, 5], [1, 0], [1, 1], [], EventOptions(1.0, 2, 0.0)),
    # Both others are opposite; the event of day 1 is known to the run, because day 3 is new, too.
    "far days, any threshold": ((0, 180, 180), [1, 5, 3], [1, 0, 0], [1, 3, 3], [], EventOptions(-0.5, 2, 0.0)),
}


@pytest.mark.parametrize("rule", RULES)
def test_articles_join_the_most_similar_event_of_near_days_which_may_merge(rule):
    degrees, days, before, expected, merges, *options = RULES[rule]
    events, found = grouped(circle(*degrees), days, before, *options)
    assert (events.tolist(), found) == (expected, [Merge(*merge) for merge in merges])


def test_merges_of_one_run_follow_one_another():
    # The first new article joins 1 and 2, the second the result and 3; an article of 1 is days away.
    vectors, days = circle(0, 20, 20, 50, 50, 50, 50, 11, 32, 0), [5, 5, 5, 5, 5, 5, 5, 5, 6, 1]
    events, merges = grouped(vectors, days, [1, 2, 2, 3, 3, 3, 3, 0, 0, 1])
    assert [(merge.event, merge.into) for merge in merges] == [(1, 2), (2, 3)]
    assert set(events.tolist()) == {3}


def test_the_order_of_the_rows_does_not_matter():
    draw = np.random.default_rng(0)
    vectors, days = circle(*draw.uniform(0, 360, 60)), draw.integers(1, 20, 60)
    ids = draw.permutation(60).astype(np.uint64) + np.uint64(1)
    first = dict(zip(ids.tolist(), grouped(vectors, days, doc_ids=ids)[0].tolist(), strict=True))
    order = draw.permutation(60)
    second = grouped(vectors[order], days[order], doc_ids=ids[order])[0].tolist()
    assert dict(zip(ids[order].tolist(), second, strict=True)) == first


def stream_of_days(draw, late):
    """Vectors, days and the order of arrival of reports of 120 events in 30 days, some of them late."""
    centers = draw.normal(size=(120, 24))
    starts = draw.integers(1, 31, 120)
    of = np.repeat(np.arange(120), draw.integers(1, 7, 120))
    vectors = centers[of] + draw.normal(0, 0.7, (len(of), 24))
    days = np.minimum(starts[of] + draw.integers(0, 3, len(of)), 32)
    arrival = days + np.where(draw.random(len(of)) < late, draw.integers(1, 6, len(of)), 0)
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32), days, arrival


@pytest.mark.parametrize(("late", "least"), [(0.0, 1.0), (0.15, 0.97)])
def test_one_run_and_a_run_each_day_find_nearly_the_same_events(late, least):
    vectors, days, arrival = stream_of_days(np.random.default_rng(7), late)
    options = EventOptions(threshold=0.45, day_decay=0.05)
    ids = np.arange(1, len(days) + 1, dtype=np.uint64)
    once, _ = grouped(vectors, days, options=options)
    known, events, ended = np.zeros(0, np.int64), np.zeros(0, np.uint64), dict[int, int]()
    for day in range(1, 40):
        new = np.flatnonzero(arrival == day)
        rows = np.concatenate([known, new])
        given = np.concatenate([events, np.zeros(len(new), np.uint64)])
        after, merges = grouped(vectors[rows], days[rows], given, options, ids[rows])
        # An id changes only as the merges say.
        into = {merge.event: merge.into for merge in merges}
        for before, now in zip(events.tolist(), after.tolist(), strict=False):
            expected = before
            while expected in into:
                expected = into[expected]
            assert now == expected
        ended |= into
        assert not set(after.tolist()) & set(ended)
        known, events = rows, after
    found = dict(zip(ids[known].tolist(), events.tolist(), strict=True))
    assert b_cubed(found, dict(zip(ids.tolist(), once.tolist(), strict=True))) >= least


def test_blocks_of_any_size_give_the_same_events(monkeypatch):
    vectors, days, _ = stream_of_days(np.random.default_rng(3), 0.0)
    options = EventOptions(threshold=0.45, day_decay=0.05)
    whole, merges = grouped(vectors, days, options=options)
    assert len(set(whole.tolist())) < len(whole) / 2
    for size in (1, 7):
        monkeypatch.setattr(events_module, "_BLOCK", size)
        events, found = grouped(vectors, days, options=options)
        np.testing.assert_array_equal(events, whole)
        assert found == merges


def test_of_equally_similar_events_the_one_with_the_smaller_id_is_joined():
    # Both are 30 degrees away; the one with the larger id was opened first.
    for first, joined in ((9, 3), (2, 2)):
        found, _ = grouped(circle(-30, 30, 0), [4, 5, 5], doc_ids=ids(first, 3, 5))
        assert found.tolist() == [first, 3, joined]


def test_the_events_that_are_given_stay_as_they_are():
    for days in ([5, 5], [5, 6]):
        given = np.array([1, NO_EVENT if days[1] == 6 else 2], np.uint64)
        before = given.copy()
        found, _ = grouped(circle(0, 0), days, given)
        found[:] = 99
        np.testing.assert_array_equal(given, before)


# Thresholds that are learned from the dates


def reports(draw, events=80, of_each=4, width=256):
    """Vectors of reports of events, which are less alike than copies, their events and days."""
    of = np.repeat(np.arange(events), of_each)
    vectors = draw.normal(size=(events, width))[of] + draw.normal(0, 0.6, (len(of), width))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True), of, 1 + of // 2


def learned(vectors, days, languages):
    """The events by default options."""
    units = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return grouped(units, days, options=EventOptions(), languages=languages)[0]


def agreement(events, truth):
    ids = range(len(truth))
    return b_cubed(dict(zip(ids, events.tolist(), strict=True)), dict(zip(ids, truth.tolist(), strict=True)))


@pytest.mark.parametrize("common", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("has_days", [True, False])
def test_a_direction_that_all_texts_share_changes_no_event(common, has_days):
    vectors, of, days = reports(np.random.default_rng(1))
    direction = np.zeros(256)
    direction[0] = common  # cosines of unrelated texts become 0.5 and 0.9
    days = days if has_days else np.full(len(of), 5)
    assert agreement(learned(vectors + direction, days, ["en"] * len(of)), of) > 0.99


def test_reports_in_two_languages_join_one_event_although_their_cosines_are_low():
    draw = np.random.default_rng(2)
    vectors, of, days = reports(draw)
    languages = ["de" if number % 2 else "en" for number in range(len(of))]
    is_german = np.array([language == "de" for language in languages])
    # A direction for each language, and a third of the space that each language uses for itself.
    vectors[is_german, :80], vectors[is_german, 255] = draw.normal(0, 0.06, (is_german.sum(), 80)), 0.8
    vectors[~is_german, 254] = 0.8
    assert agreement(learned(vectors, days, languages), of) > 0.95
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines, apart = units @ units.T, is_german[:, None] != is_german
    unrelated = of[:, None] != of
    # No limit of cosines would do.
    assert np.median(cosines[apart & ~unrelated]) < np.quantile(cosines[~apart & unrelated], 0.9)


def scale_of(vectors, days, languages):
    ids = np.arange(1, len(days) + 1, dtype=np.uint64)
    return Scale.learned(ids, np.array(days), languages, vectors.__getitem__, 3)


def test_the_threshold_is_the_least_with_one_unrelated_pair_in_five():
    draw = np.random.default_rng(3)
    vectors, of, days = reports(draw, events=300, width=24)
    vectors = vectors.astype(np.float32)
    threshold = scale_of(vectors, days, ["en"] * len(of)).thresholds[0, 0]
    centred = vectors - vectors.mean(axis=0)
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    cosines, near = centred @ centred.T, np.abs(days[:, None] - days) <= 3
    near &= ~np.eye(len(of), dtype=bool)
    is_above = near & (cosines >= threshold - 1e-6)
    assert 0.15 < (of[:, None] != of)[is_above].mean() < 0.25
    assert 0.2 < threshold < 0.8


def test_where_more_than_one_in_five_are_unrelated_at_any_cosine_two_in_five_are_enough(monkeypatch):
    near, far = np.repeat([0.8, 0.1], [100, 900]), np.repeat([0.8, 0.1], [300, 9_700])  # unrelated above 0.8: 0.301
    deviant = 0.1 + 6 * 0.1 * (1 - 2 * 0.1587)
    for share, width, expected in (
        (0.31, 1, 0.8),
        (0.2, 1, 0.8),
        (0.15, 1, deviant),
        (0.2, 2, 0.1 + 2 * (deviant - 0.1)),
    ):
        any_day = 0.1 + width * np.linspace(-0.1, 0.1, 1_001)
        monkeypatch.setattr(events_module, "_UNRELATED", share)
        assert events_module._threshold(near, far, any_day) == pytest.approx(expected, abs=1e-6)


def test_the_threshold_above_what_is_usual_is_the_least_with_one_unrelated_pair_in_five(monkeypatch):
    draw = np.random.default_rng(3)
    monkeypatch.setattr(events_module, "_MANY", 1_000)
    vectors, of, days = reports(draw, events=300, width=24)
    vectors = vectors.astype(np.float32)
    codes = 1 + np.arange(len(of)) % 2
    vectors[codes == 2, :12] *= 0.3  # one language is narrower, so that other cosines are usual in it
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    scale = scale_of(vectors, days, ["de" if code == 1 else "en" for code in codes])
    centred = vectors - scale.means[codes]
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    usual = scale.usual(centred, days)[:, codes]
    margins, near = centred @ centred.T - usual - usual.T, np.abs(days[:, None] - days) <= 3
    near &= ~np.eye(len(of), dtype=bool)
    for one, other in ((1, 1), (1, 2), (2, 2)):
        is_above = near & (margins >= scale.thresholds[one, other] - 1e-6)
        is_above &= (codes[:, None] == one) & (codes == other)
        assert 0.15 < (of[:, None] != of)[is_above].mean() < 0.25, (one, other)


def lasting(draw, days=60):
    """Each day 20 articles alone, two events of three reports, and three articles on a topic that lasts."""
    events, dated, rows = [], [], []
    for day in range(1, days + 1):
        for size in [1] * 20 + [3] * 2:
            own = draw.normal(size=128)
            rows += [own + 0.4 * draw.normal(size=128) for _ in range(size)]
            events += [len(rows)] * size
        topic = np.ones(128) + 0.2 * draw.normal(size=128)
        rows += [topic + 0.3 * draw.normal(size=128) for _ in range(3)]
        events += [-day] * 3
        dated += [day] * 29
    vectors, order = np.array(rows, np.float32), draw.permutation(len(rows))  # doc_ids tell nothing of days
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors[order], np.array(events)[order], np.array(dated)[order]


@pytest.mark.parametrize("languages", [("en",), ("en", "de")])
def test_a_topic_that_lasts_is_not_one_event(monkeypatch, languages):
    vectors, of, days = lasting(np.random.default_rng(6))
    of_each = [languages[event % len(languages)] for event in of.tolist()]
    # One threshold misses reports of events, because those of the topic are as near; or the topic is an event.
    assert agreement(learned(vectors, days, of_each), of) < 0.93
    monkeypatch.setattr(events_module, "_MANY", 1_000)
    found = learned(vectors, days, of_each)
    assert np.bincount(found[of < 0]).max() <= 9
    assert agreement(found, of) > 0.97
    monkeypatch.setattr(events_module, "_MANY", 1)
    for last, far_days in ((60, 7), (14, 3), (6, 2), (4, 1), (2, 7)):  # the week around a day may be the whole archive
        rows = np.flatnonzero(days <= last)
        scale = scale_of(vectors[rows], days[rows], [of_each[row] for row in rows])
        assert (scale.far_days, len(scale.samples) > 0) == (far_days, last > 2)


def test_what_is_usual_is_the_mean_of_the_nearest_of_other_weeks(monkeypatch):
    draw = np.random.default_rng(7)
    monkeypatch.setattr(events_module, "_MANY", 100)
    monkeypatch.setattr(events_module, "_NEAREST", 0.01)
    vectors, days = draw.normal(size=(500, 16)).astype(np.float32), draw.integers(1, 100, 500)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    languages = ["en"] * 300 + ["de"] * 200
    days[300:] = np.minimum(days[300:], 60)
    days[320:] = 1  # nearly all of the German articles are of one day
    scale = scale_of(vectors, days, languages)
    assert scale.languages == ("de", "en")
    codes = np.array([2] * 300 + [1] * 200)
    centred = vectors - scale.means[codes]
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    usual = scale.usual(centred, days)
    for row in range(0, 500, 7):
        # The half of lowest ids is the sample, the others tell the threshold.
        for code, places in enumerate((np.arange(250), np.arange(300, 400), np.arange(150))):
            is_near = np.abs(days[places] - days[row]) <= 7
            if code and is_near.mean() > 0.95:  # too few others: as among all
                assert usual[row, code] == usual[row, 0]
                continue
            count = round(len(places) / 100)
            cosines = np.sort(np.where(is_near, -1, centred[places] @ centred[row]))[-count:]
            np.testing.assert_allclose(usual[row, code], cosines.mean() / 2, atol=1e-6)


def test_what_is_usual_is_that_of_the_language_of_the_other_article(monkeypatch):
    vectors, far = circle(0, 60), np.array([90])  # cos 60 = 0.5
    samples = [(vectors, np.array([90, 90])), (vectors[:1], far), (vectors[1:], far)]
    scale = Scale(("de", "en"), np.zeros((3, 2), np.float32), np.full((3, 3), -0.01), samples)
    monkeypatch.setattr(Scale, "learned", lambda *_: scale)
    # 0.5 less 0.25 and 0.25; among their own languages each has a copy.
    assert grouped(vectors, [5, 5], options=EventOptions(), languages=["de", "en"])[0].tolist() == [1, 1]
    assert grouped(vectors, [5, 5], options=EventOptions(), languages=["de", "de"])[0].tolist() == [1, 2]


def test_each_language_of_enough_articles_has_a_mean_of_its_own():
    draw = np.random.default_rng(4)
    vectors = draw.normal(size=(300, 16)).astype(np.float32) + np.float32(1)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    languages = ["en"] * 100 + ["de"] * 190 + ["fr"] * 10
    scale = scale_of(vectors, [5] * 300, languages)
    assert (scale.languages, scale.thresholds.shape) == (("de", "en", "fr"), (3, 3))  # French has those of all
    means = [part.mean(0) for part in (vectors, vectors[100:290], vectors[:100])]
    means.append((vectors[290:].sum(0) + means[0]) / 11)
    np.testing.assert_allclose(scale.means, means, atol=1e-6)
    german, english = (part - part.mean(0) for part in (vectors[100:290], vectors[:100]))
    cosines = (english @ german.T / np.linalg.norm(english, axis=1)[:, None] / np.linalg.norm(german, axis=1)).ravel()
    # Articles of one day: six deviations above the median.
    expected = np.median(cosines) + 6 * (np.median(cosines) - np.quantile(cosines, 0.1587))
    np.testing.assert_allclose([scale.thresholds[2, 1], scale.thresholds[1, 2]], expected, atol=1e-5)


def test_articles_of_a_rare_language_are_no_event():
    draw = np.random.default_rng(6)
    vectors, of, days = reports(draw)
    vectors[:12] = draw.normal(0, vectors.std(), (12, 256))
    vectors[0] = vectors[1] + draw.normal(0, 0.01, 256)
    vectors[:12, 255] = 3.0  # the direction of their language: their cosines are 0.9
    days[:12], of[:12] = 5, [-1, -1, *range(-11, -1)]
    events = learned(vectors, days, ["ko"] * 12 + ["en"] * (len(of) - 12))
    assert agreement(events, of) > 0.99
    assert events[0] == events[1]
    assert len(set(events[:12].tolist())) >= 10  # of 11


def test_a_few_articles_have_a_fixed_threshold():
    assert grouped(circle(0, 50, -50), [5, 5, 5], options=EventOptions())[0].tolist() == [1, 1, 3]  # cos 50 = 0.64
    scale = scale_of(circle(*range(40)), [UNDATED] * 25 + [5] * 15, ["en"] * 40)
    assert (scale.languages, scale.means.any()) == ((), False)


def test_articles_of_two_languages_that_share_no_event_stay_apart():
    draw = np.random.default_rng(5)
    vectors, of, days = reports(draw)
    languages = ["de" if event % 2 else "en" for event in of.tolist()]
    events = learned(vectors, days, languages)
    assert len(set(zip(events.tolist(), languages, strict=True))) == len(set(events.tolist()))


def ids(*values):
    return np.array(values, np.uint64)


@pytest.mark.parametrize(
    ("before", "found", "ended", "expected", "merges"),
    [
        ([1, 1, 1, 4], [1, 1, 1, 4], (), [1, 1, 1, 4], []),
        ([1, 1, 1, 4], [1, 1, 1, 1], (), [1, 1, 1, 1], [(4, 1, 14)]),
        ([1, 1, 1, 0], [11, 11, 13, 14], (), [1, 1, 13, 14], []),
        ([1, 1, 2, 2], [1, 2, 2, 2], (), [1, 2, 2, 2], []),
        ([2, 2, 2, 1], [1, 1, 1, 14], (), [2, 2, 2, 1], []),
        # The id of the new event ended earlier, or is that of another event.
        ([2, 2, 2, 2], [2, 2, 13, 13], (13, 14), [2, 2, 15, 15], []),
        ([13, 13, 2, 2], [13, 13, 0, 13], (), [13, 13, 0, 13], [(2, 13, 14)]),
        ([0, 0, 0, 0], [0, 0, 0, 0], (), [0, 0, 0, 0], []),
    ],
)
def test_events_that_are_found_anew_inherit_ids(before, found, ended, expected, merges):
    events, made = inherited(ids(*before), ids(*found), ids(11, 12, 13, 14), ended)
    assert events.tolist() == expected
    assert made == [Merge(*merge) for merge in merges]
