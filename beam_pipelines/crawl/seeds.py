"""Reads the seeds, the URLs at which a crawl starts, and groups them by site."""

from collections.abc import Iterable
from typing import Final

from ...errors import InputError
from ...formats import files
from ...formats.urls import canonical_url, registered_domain

_SHOWN: Final = 100  # characters of a line that is not a URL


def read_seeds(path: str) -> list[str]:
    """Returns the seed URLs of a text file with one URL per line; blank lines and lines starting with # are skipped.

    Raises:
      InputError: if a line is not an absolute http(s) URL, the file is not UTF-8 text, or it has no URL.
    """
    with files.open_read(path) as source:
        raw = source.read()
    try:
        lines = raw.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(
            f"not UTF-8 text: {error}", path=path, field="--seeds", remedy="write one URL per line"
        ) from error
    seeds = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text and not text.startswith("#"):
            if not canonical_url(text):
                raise InputError(
                    f"got {text if len(text) <= _SHOWN else text[:_SHOWN] + '…'!r}, expected an absolute http(s) URL",
                    path=f"{path}:{number}",
                    remedy="write one URL per line; start comments with #",
                )
            seeds.append(text)
    if not seeds:
        raise InputError(
            "contains no URL",
            path=path,
            field="--seeds",
            remedy="write feeds, sitemaps, section pages or articles, one URL per line",
        )
    return seeds


def site_of(url: str) -> str:
    """Returns the site of a URL, its registered domain; "" for a URL without a host."""
    return registered_domain(url)


def group_by_site(seeds: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Returns (registered domain, its seeds in order) for each site, sorted by domain."""
    sites: dict[str, list[str]] = {}
    for seed in dict.fromkeys(seeds):
        sites.setdefault(site_of(seed), []).append(seed)
    return sorted(sites.items())
