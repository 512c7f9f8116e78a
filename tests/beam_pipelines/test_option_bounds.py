"""Options of the jobs: the last value that is allowed and the first that is refused, which the error names."""

import datetime

import pytest
from newsembed.beam_pipelines.bitext.options import BitextOptions
from newsembed.beam_pipelines.clean import CleanOptions
from newsembed.beam_pipelines.crawl import CrawlOptions
from newsembed.beam_pipelines.entities import EntitiesOptions
from newsembed.beam_pipelines.examples import ExamplesOptions
from newsembed.beam_pipelines.extract.job import ExtractOptions
from newsembed.beam_pipelines.neighbors import NeighborsOptions
from newsembed.beam_pipelines.pack import PackOptions
from newsembed.beam_pipelines.topics import TopicsOptions
from newsembed.beam_pipelines.triplets.mine import TripletsOptions
from newsembed.beam_pipelines.vocabulary import VocabularyOptions
from newsembed.errors import InputError

# Options: ((name, last allowed values, refused values), ...).
BOUNDS = {
    BitextOptions: (
        *((name, (1,), (0,)) for name in ("block_days", "candidates", "min_words", "neighbors", "exact_below")),
        ("window_days", (0,), (-1,)),
        ("max_words", (4,), (3,)),
        *((f"min_{space}_similarity", (-1, 1), (-1.01, 1.01)) for space in ("entity", "image")),
        ("min_margin", (0.01,), (0,)),
        ("precision", (0.01, 1), (0, 1.01)),
        ("translated_share", (0.01, 1), (0, 1.01)),
        ("max_length_ratio", (1,), (0.99,)),
        ("max_copied", (0, 1), (-0.01, 1.01)),
        ("min_language_probability", (0, 0.99), (-0.01, 1)),
    ),
    PackOptions: (
        ("max_length", (16,), (15,)),
        ("capacity", (1,), (0,)),
        ("min_fill", (0.01, 1), (0, 1.01)),
        ("min_tokens", (1,), (0,)),
        ("long_documents", ("split", "truncate"), ("drop",)),
    ),
    ExamplesOptions: (
        ("max_length", (8,), (7,)),
        ("augmentations_per_triplet", (1, 4), (0, 5)),
        ("weights", ((0, 0, 0, 1),), ((0, 0, 0, 0), (1, 1, 1), (-1, 1, 1, 1))),
        ("min_anchor_similarity", (0, 1), (-0.01, 1.01)),
        ("max_anchor_texts", (0,), (-1,)),
        ("negatives_per_example", (1,), (0,)),
        ("held_out_share", (0, 0.99), (-0.01, 1)),
        ("translate_share", (0, 1), (-0.01, 1.01)),
        ("translate_words", (1,), (0,)),
        ("translation_beam", (1,), (0,)),
    ),
    VocabularyOptions: (
        ("size", (100,), (99,)),
        ("alpha", (0, 1), (-0.01, 1.01)),
        ("max_documents", (0,), (-1,)),
        ("min_frequency", (1,), (0,)),
        ("limit_alphabet", (1,), (0,)),
    ),
    NeighborsOptions: (
        *((name, (1,), (0,)) for name in ("positives", "negatives", "neighbors", "block_days", "max_index_rows")),
        ("positive_days", (0, 364), (-1, 365)),
    ),
    TopicsOptions: (
        ("positive_ratio", (0, 0.25, 2), (-0.1, float("inf"), float("nan"))),
        *((name, (1,), (0, -1)) for name in ("max_topics", "min_publishers", "min_documents")),
    ),
    TripletsOptions: (
        ("min_negative_days", (2,), (1,)),
        *(
            (name, (1,), (0,))
            for name in (
                "max_positives", "max_positives_per_publisher", "max_anchors_per_event", "negatives_per_positive"
            )
        ),
    ),
    EntitiesOptions: (
        *((name, (1,), (0,)) for name in ("min_documents", "max_entities", "max_words", "dimensions")),
        *((name, (0, 1), (-0.01, 1.01)) for name in ("identity", "max_noun_share")),
        ("signature_dimensions", (1,), (0,)),
    ),
    ExtractOptions: (("page_seconds", (0.1,), (0.09,)), ("page_megabytes", (64,), (63,))),
    CrawlOptions: (
        *(
            (name, (1,), (0, -1))
            for name in (
                "max_pages_per_site", "max_sitemaps_per_site", "timeout_seconds", "max_bytes", "concurrent_sites",
                "max_concurrent_requests", "max_attempts",
            )
        ),
        *(
            (name, (0,), (-1,))
            for name in ("max_depth", "delay_seconds", "max_redirects", "backoff_seconds", "max_wait_seconds")
        ),
        ("user_agent", ("news/1 (a@b.example)",), ("", " ", "n\u00e9ws/1", "news\n/1")),
        ("resolve", (("a.example=127.0.0.1:80",),), (("a.example",), ("a.example=127.0.0.1",), ("a=b:x",))),
    ),
    CleanOptions: (
        *((name, (0,), (-1,)) for name in ("min_words", "min_sentences")),
        *(
            (name, (0, 1), (-0.01, 1.01))
            for name in (
                "min_script_share", "max_repeated_share", "max_repeated_span_share", "min_yield_drop",
                "yield_false_discovery_rate",
            )
        ),
        ("near_duplicate_threshold", (0.01, 1.1), (0, -1)),
        ("bands", (1, 112), (0, 5)),
    ),
}  # fmt: skip
CASES = [(options, *bound) for options, bounds in BOUNDS.items() for bound in bounds]


@pytest.mark.parametrize(
    ("options", "name", "allowed", "refused"), CASES, ids=[f"{case[0].__name__}-{case[1]}" for case in CASES]
)
def test_the_bounds_of_an_option(options, name, allowed, refused):
    for value in allowed:
        assert getattr(options(**{name: value}), name) == value
    for value in refused:
        with pytest.raises(InputError) as raised:
            options(**{name: value})
        assert f"--{name}" in raised.value.field
        assert raised.value.remedy


def test_the_first_and_the_last_day_of_a_crawl_may_be_the_same():
    day = datetime.date(2021, 3, 1)
    assert CrawlOptions(since=day, until=day).until == day
    with pytest.raises(InputError, match="--since"):
        CrawlOptions(since=day, until=day - datetime.timedelta(days=1))


def test_an_identity_of_zero_needs_no_dimensions():
    assert EntitiesOptions(identity=0, signature_dimensions=0).signature_dimensions == 0


@pytest.mark.parametrize(
    ("options", "command"), [(PackOptions, "pack"), (ExamplesOptions, "examples"), (VocabularyOptions, "vocabulary")]
)
def test_the_remedy_names_the_help_of_the_command(options, command):
    first = BOUNDS[options][0]
    with pytest.raises(InputError) as raised:
        options(**{first[0]: first[2][0]})
    assert raised.value.remedy == f"see `newsembed {command} --help`"
    assert raised.value.problem.startswith(f"got {first[2][0]}, expected at least {first[1][0]}")
