"""``pairs --of=posts`` and ``--of=anchors``: an article with the short texts that link to it.

Posts come from ``extract --posts``, link texts from the pages of a crawl.
"""

from collections.abc import Iterator, Sequence

from ...formats.records import Rejection
from ..texts import ArticleText
from .interface import PairKind, Refusal, Text, TextPair


def post_pairs(article: ArticleText, posts: Sequence[str], _options: object) -> Iterator[TextPair | Refusal]:
    """Yields a pair of the article and each post; a refusal for a post that came before."""
    yield from _with_each(article, posts)


def anchor_pairs(article: ArticleText, _posts: Sequence[str], _options: object) -> Iterator[TextPair | Refusal]:
    """Yields a pair of the article and each of its link texts; a refusal where there is none."""
    if not article.anchor_texts:
        yield Refusal(Rejection.NO_OTHER_TEXT, "no link text")
    yield from _with_each(article, article.anchor_texts)


def _with_each(article: ArticleText, texts: Sequence[str]) -> Iterator[TextPair | Refusal]:
    whole, seen = Text(article.title, article.body), set()
    for text in texts:
        plain = " ".join(text.casefold().split())
        if plain in seen:
            yield Refusal(Rejection.DUPLICATE_PAIR, text)
            continue
        seen.add(plain)
        yield TextPair(whole, Text(title=text))


POSTS = PairKind(post_pairs, reads_posts=True)
ANCHORS = PairKind(anchor_pairs)
