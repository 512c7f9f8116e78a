"""The same crawl by one process, by several, and by repeated shards: the same URLs, each stored once."""

import pytest
from crawling import crawl as crawl_pages
from crawling import letters, page, stored
from crawling import options as page_options
from newsembed.beam_pipelines.crawl import job as crawl_job
from newsembed.beam_pipelines.shards import Phase, Shard

SITES = [f"http://s{number}.example/" for number in range(6)]


def crawl(*arguments, **changes):
    return crawl_pages(*arguments, fetch_images=True, **changes)


def options(web):
    return page_options(web, fetch_images=True)


@pytest.fixture
def sites(web):
    for url in SITES:
        web.add(url, page("/1", "/2", "/gone", image="http://img.example/shared.png"))
        web.add(f"{url}1", page(image=f"{url}own.png"))
        web.add(f"{url}2", page(text="two"))
        web.add(f"{url}own.png", b"png", "image/png")
    web.add("http://img.example/shared.png", b"png", "image/png")
    return web


def test_worker_processes_store_what_one_does(tmp_path, sites):
    one = crawl(tmp_path, sites, *SITES, out="one", concurrent_sites=2)
    assert one["tallies"] == {"pages": 18, "images": 7, "listed_images": 12, "listed_again": 5}
    assert letters(tmp_path, "one") == {f"{url}gone": "http_error" for url in SITES}
    requests = sorted(sites.requests)
    assert requests.count("http://img.example/robots.txt") == 1, "one worker alone speaks to the host of the thumbnails"
    sites.requests.clear()
    processes = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
    assert crawl(tmp_path, sites, *SITES, out="two", concurrent_sites=2, beam_args=processes) == one
    assert stored(tmp_path, "two") == stored(tmp_path, "one")
    assert letters(tmp_path, "two") == letters(tmp_path, "one")
    assert sorted(sites.requests) == requests


def test_a_shard_that_is_run_again_asks_for_nothing_and_writes_nothing_twice(tmp_path, sites):
    """A worker that is lost after its sites are complete and before its shard is: Beam runs the shard again."""
    groups = [(f"s{number}.example", [crawl_job.Visit(SITES[number])]) for number in range(2)]
    phase = Phase(str(tmp_path / "work"), "fetch", 1)

    def crawl_and_die():
        with Shard(phase, 0) as shard:
            crawl_job._crawl_sites(shard, groups, options(sites), "fetch")
            raise RuntimeError("lost")

    with pytest.raises(RuntimeError, match="lost"):
        crawl_and_die()
    asked, files = len(sites.requests), {path.name: path.read_bytes() for path in (tmp_path / "work/warc").iterdir()}
    assert len(files) == 4  # a WARC file and its index for each site
    with Shard(phase, 0) as shard:
        crawl_job._crawl_sites(shard, groups, options(sites), "fetch")
    assert shard.counts().read == 8
    assert shard.counts().written == 6
    assert len(sites.requests) == asked
    assert {path.name: path.read_bytes() for path in (tmp_path / "work/warc").iterdir()} == files
