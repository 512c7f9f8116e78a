"""Seeds: the URLs to start from, by site."""

from collections.abc import Iterable

from ...errors import InputError
from ...formats import files
from ..extract.urls import canonical_url, registered_domain


def read_seeds(path: str) -> list[str]:
    """Seed URLs of a text file, one a line; blank lines and lines that start with # are skipped.

    Raises:
      InputError: on a line that is no absolute http(s) URL, a file that is no text, or one without any URL.
    """
    with files.open_read(path) as source:
        raw = source.read()
    try:
        lines = raw.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(
            f"no UTF-8 text: {error}", path=path, field="--seeds", remedy="write one URL a line"
        ) from error
    seeds = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text and not text.startswith("#"):
            if not canonical_url(text):
                raise InputError(
                    f"got {text!r}, expected an absolute http(s) URL",
                    path=f"{path}:{number}",
                    remedy="write one URL a line, # before comments",
                )
            seeds.append(text)
    if not seeds:
        raise InputError(
            "holds no URL",
            path=path,
            field="--seeds",
            remedy="write feeds, sitemaps, section pages or articles, one URL a line",
        )
    return seeds


def site_of(url: str) -> str:
    """The key of politeness: a URL's registered domain; "" for what has no host."""
    return registered_domain(url)


def group_by_site(seeds: Iterable[str]) -> list[tuple[str, list[str]]]:
    """(registered domain, its seeds in order), sorted by domain."""
    sites: dict[str, list[str]] = {}
    for seed in dict.fromkeys(seeds):
        sites.setdefault(site_of(seed), []).append(seed)
    return sorted(sites.items())
