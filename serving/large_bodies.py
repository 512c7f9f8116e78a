"""Parses large requests to /embed in small steps and outside of the event loop, so that searches go on meanwhile.

Python's JSON parser holds the interpreter's lock until it is done, which takes a second for 100 MB. Here each document
is parsed and checked on its own, and the thread rests as long as it worked.
"""

import json
import re
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Final, TypeVar

from fastapi import HTTPException, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute
from pydantic import ValidationError

from .bodies import DocumentBody, EmbedRequest
from .gate import Admission
from .limits import UnavailableError

AT_ONCE: Final = 1 << 18  # bytes that are parsed in the event loop, in a few milliseconds
_STEP_SECONDS: Final = 0.002
_MANY: Final = 1_000  # documents
_HEAD: Final = re.compile(r'[ \t\n\r]*\{[ \t\n\r]*"documents"[ \t\n\r]*:[ \t\n\r]*\[[ \t\n\r]*')
_SEPARATOR: Final = re.compile(r"[ \t\n\r]*,[ \t\n\r]*")
_Result = TypeVar("_Result")
_TAIL: Final = re.compile(r"[ \t\n\r]*\][ \t\n\r]*\}[ \t\n\r]*")


def read_in_steps(raw: bytes, most: int, is_stopping: Callable[[], bool] = lambda: False) -> EmbedRequest | None:
    """The request in a body; None where it has another shape or an error, which the whole parser describes.

    Args:
      raw: JSON.
      most: documents that are allowed. One more is read at most, which is enough to refuse the request.
      is_stopping: whether to give up.

    Raises:
      UnavailableError: if the server stops meanwhile.
    """
    documents = list[DocumentBody]()
    try:
        for document in _documents(raw.decode("utf-8"), is_stopping):
            documents.append(document)
            if len(documents) > most:
                break
    except (ValueError, ValidationError, RecursionError):
        return None
    return EmbedRequest.model_construct(documents=documents)


def _documents(text: str, is_stopping: Callable[[], bool]) -> Iterator[DocumentBody]:
    """Yields the documents of a request.

    Raises:
      ValueError: where something else is written.
      UnavailableError: if the server stops meanwhile.
    """
    decoder = json.JSONDecoder()
    separator = _HEAD.match(text)
    rested = time.monotonic()
    place = 0
    while separator is not None:
        value, place = decoder.raw_decode(text, separator.end())
        yield DocumentBody.model_validate(value)
        separator = _SEPARATOR.match(text, place)
        worked = time.monotonic() - rested
        if worked > _STEP_SECONDS:
            if is_stopping():
                raise UnavailableError("the server is stopping", close=True)
            time.sleep(worked)
            rested = time.monotonic()
    if not _TAIL.fullmatch(text, place):
        raise ValueError("no list of documents")


async def called(documents: int, function: Callable[..., _Result], *args: Any) -> _Result:
    """The result of a function that takes time for many documents: computed in a thread then, else at once.

    Args:
      documents: how many.
      function: to call.
      args: its arguments.
    """
    return await run_in_threadpool(function, *args) if documents > _MANY else function(*args)


def route_in_steps(admission: Admission) -> type[APIRoute]:
    """A class of routes that read large bodies in steps.

    Args:
      admission: says how many documents are allowed, and when the server stops.
    """

    class StepwiseRequest(Request):
        async def json(self) -> Any:
            raw = await self.body()
            if len(raw) <= AT_ONCE:
                return await super().json()
            most = admission.limits.max_documents
            try:
                read = await run_in_threadpool(read_in_steps, raw, most, lambda: admission.is_stopping)
            except UnavailableError as error:  # FastAPI would make 400 of any other exception
                raise HTTPException(error.status, error.detail, error.headers) from error
            return await super().json() if read is None else read

    class StepwiseRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def handle_in_steps(request: Request) -> Response:
                return await handle(StepwiseRequest(request.scope, request.receive))

            return handle_in_steps

    return StepwiseRoute
