"""``pairs --of=titles``: the body of every article with its own title, row 0 of Table 1 without a mined triplet."""

from collections.abc import Iterator, Sequence

from ...formats.records import Rejection
from ..texts import ArticleText
from .interface import PairKind, Refusal, Text, TextPair


def title_pairs(article: ArticleText, _posts: Sequence[str], _options: object) -> Iterator[TextPair | Refusal]:
    """Yields the pair of body and title; a refusal where one of them is empty."""
    if not article.title.strip() or not article.body.strip():
        yield Refusal(Rejection.NO_OTHER_TEXT, "an empty title or body")
        return
    yield TextPair(Text(body=article.body), Text(title=article.title))


TITLES = PairKind(title_pairs)
