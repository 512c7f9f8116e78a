"""The fuzz target with what hypothesis draws: markup-like bytes; and a short run of atheris where it is installed."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

TARGET = Path(__file__).with_name("fuzz_page.py")
spec = importlib.util.spec_from_file_location("fuzz_page", TARGET)
fuzz_page = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fuzz_page)

TAGS = (
    "div p a article span h1 ul li table td br time script title meta form aside blockquote svg template a:b 1"
).split()
NAMES = "class id href itemprop rel style datetime property content type charset hidden".split()
VALUES = [
    "byline",
    "story-body",
    "comment",
    "/a/1",
    "http://[",
    "author name",
    "display:none",
    "2021-13-40",
    "og:title",
    "application/ld+json",
    "utf-4",
    "",
]
attribute = st.tuples(st.sampled_from(NAMES), st.sampled_from(VALUES) | st.text(max_size=8)).map(
    lambda pair: f' {pair[0]}="{pair[1]}"'
)
opening = st.tuples(st.sampled_from(TAGS), st.lists(attribute, max_size=3)).map(
    lambda pair: f"<{pair[0]}{''.join(pair[1])}>"
)
closing = st.sampled_from(TAGS).map(lambda tag: f"</{tag}>")
words = st.text(max_size=30) | st.sampled_from(
    [
        "By Ann Lee",
        "The council voted late on Tuesday, it said, to raise the embankment. " * 3,
        "Read more",
        '{"@type": "NewsArticle"',
        "&#xd800;",
        "\x00",
    ]
)
page = st.lists(opening | closing | words, max_size=40).map("".join)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(page)
def test_any_markup_is_read_or_refused(text):
    fuzz_page.check(text.encode("utf-8", "surrogatepass"))


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300), st.integers(0, len(fuzz_page.SEED)), st.integers(0, 60))
def test_a_page_with_bytes_overwritten_is_read_or_refused(junk, at, gone):
    fuzz_page.check(fuzz_page.SEED[:at] + junk + fuzz_page.SEED[at + gone :])


def test_a_short_run_of_atheris(tmp_path):
    if importlib.util.find_spec("atheris") is None:
        pytest.skip("atheris is not installed: it has no wheel for this system")
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus/seed").write_bytes(fuzz_page.SEED)
    # No memory limit: Linux counts the peak of the parent process (pytest) as that of the child.
    options = [
        "-runs=3000",
        "-rss_limit_mb=0",
        "-max_total_time=20",
        "-len_control=0",
        "-max_len=4000",
        "-seed=1",
        "corpus",
    ]
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    done = subprocess.run(
        [sys.executable, str(TARGET), *options],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
