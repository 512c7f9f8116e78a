"""What a server accepts: the limits of a request, their options, and the answer to a request that it refuses."""

import argparse
import dataclasses
from collections.abc import Mapping
from typing import Final

from fastapi.responses import JSONResponse

from ..errors import require_option

RETRY_SECONDS: Final = 1  # what a refused client is told to wait


@dataclasses.dataclass(frozen=True)
class Limits:
    """Bounds of requests to ``newsembed serve``.

    Attributes:
      max_bytes: of the body of a request.
      max_documents: in a request.
      max_characters: of a document (title and body together) or of a query. The encoder reads the first tokens only.
      max_tokens: that the encoder reads of a request to embed, where it can count them before it embeds.
      max_queue: requests of one kind (searches, /embed) that wait or are computed, and bodies that are received.
      read_seconds: to receive a body.
    """

    max_bytes: int = 8 * 2**20
    max_documents: int = 256
    max_characters: int = 200_000
    max_tokens: int = 131_072
    max_queue: int = 128
    read_seconds: float = 30.0


class RefusedError(Exception):
    """A request that the server refuses.

    Args:
      status: of HTTP.
      detail: the reason, for people.
      facts: further JSON values of the answer.
      headers: of the answer.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        facts: Mapping[str, int | str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, detail)
        self.status = status
        self.detail = detail
        self.facts = dict(facts or {})
        self.headers = dict(headers or {})

    def response(self) -> JSONResponse:
        """The answer, ``{"detail": …}`` with the facts."""
        return JSONResponse({"detail": self.detail, **self.facts}, self.status, self.headers)


class TooLargeError(RefusedError):
    """A request over a limit: 413, with the limit and the option that raises it.

    Args:
      what: what is limited, for example "bytes in a request".
      limit: the most that is accepted.
      name: of the field of :class:`Limits`.
      advice: what the client can do, an imperative.
    """

    def __init__(self, what: str, limit: int, name: str, advice: str) -> None:
        option = f"--{name}"
        detail = f"more than {limit} {what}; {advice}, or start the server with a larger {option}"
        super().__init__(413, detail, {"limit": limit, "option": option})


class UnavailableError(RefusedError):
    """A request that may be sent again later: 503 with Retry-After.

    Args:
      reason: for people.
      close: whether to end the connection.
    """

    def __init__(self, reason: str, *, close: bool = False) -> None:
        headers = {"Retry-After": str(RETRY_SECONDS)}
        super().__init__(503, reason, headers=headers | ({"Connection": "close"} if close else {}))


def add_limit_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds an option for each field of :class:`Limits`."""
    default = Limits()
    for name, text in (
        ("max_bytes", "bytes of the body of a request"),
        ("max_documents", "documents of a request"),
        ("max_characters", "characters of a document (title and body together) or of a query"),
        ("max_tokens", "tokens that the encoder reads of the documents of a request"),
        ("max_queue", "searches, and requests to /embed, that may wait at once; more get 503 with Retry-After"),
    ):
        value = getattr(default, name)
        parser.add_argument(f"--{name}", type=int, default=value, metavar="N", help=f"{text} (default: {value})")
    parser.add_argument(
        "--read_seconds",
        type=float,
        default=default.read_seconds,
        metavar="SECONDS",
        help=f"time to receive the body of a request; later it gets 408 (default: {default.read_seconds:g})",
    )


def limits_from(args: argparse.Namespace) -> Limits:
    """The limits that the options name.

    Raises:
      InputError: if one of them is not positive.
    """
    limits = Limits(**{field.name: getattr(args, field.name) for field in dataclasses.fields(Limits)})
    for name, value in dataclasses.asdict(limits).items():
        require_option(0 < value < float("inf"), name, value, "a positive number", "serve")
    return limits
