"""The page: two articles side by side and one key for each answer, on 127.0.0.1 only.

A request must carry the token of the printed address and name this server as Host. Other pages in the same browser and
other users of the machine know neither, so they cannot send an answer.
"""

import dataclasses
import errno
import importlib.resources
import secrets
import socket
import threading
import types
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final, Self

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from ...errors import InputError
from .session import Session
from .store import Answer

MAX_PORT: Final = 65_535
TOKEN_HEADER: Final = "X-Label-Token"  # noqa: S105 - the name of the header, not a secret
_ADDRESS: Final = "127.0.0.1"

_DocId = Annotated[str, Field(max_length=64)]


class AnswerBody(BaseModel):
    """The body of POST /answer; the pair protects against an answer from a tab that shows an older question."""

    model_config = ConfigDict(extra="forbid")
    pair: tuple[_DocId, _DocId]
    answer: Answer


@dataclasses.dataclass(frozen=True)
class Access:
    """What a request needs: one of the Host headers of this server, and the token of its address."""

    hosts: frozenset[str]
    token: str

    def refusal(self, request: Request) -> str:
        """Why a request is rejected; "" if it is accepted."""
        if request.headers.get("host", "").lower() not in self.hosts:
            return "wrong host; open the address that newsembed label printed"
        # Addresses are printed and logged, so only the page itself takes the token from the address.
        given = (
            request.query_params.get("token", "") if request.url.path == "/" else request.headers.get(TOKEN_HEADER, "")
        )
        if not secrets.compare_digest(given.encode(), self.token.encode()):
            return "wrong token; open the address that newsembed label printed"
        return ""


def create_app(session: Session, access: Access, finish: Callable[[], None]) -> FastAPI:
    """The web application; its handlers are coroutines, which run one at a time, so the session needs no lock."""
    app = FastAPI(title="newsembed label", docs_url=None, redoc_url=None, openapi_url=None)
    page = importlib.resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8")

    @app.middleware("http")
    async def guard(request: Request, follow: Callable[[Request], Awaitable[Response]]) -> Response:
        refusal = access.refusal(request)
        response = JSONResponse({"detail": refusal}, 403) if refusal else await follow(request)
        response.headers.update(
            {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"}
        )
        return response

    @app.exception_handler(InputError)
    async def explain(_: Request, error: InputError) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, 500)

    @app.get("/", response_class=HTMLResponse)
    async def show() -> HTMLResponse:
        nonce = secrets.token_urlsafe(16)
        policy = f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; "
        rest = "img-src http: https: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        headers = {"Content-Security-Policy": f"{policy}{rest}"}
        return HTMLResponse(page.replace("{nonce}", nonce), headers=headers)

    @app.get("/question")
    async def question() -> dict[str, Any]:
        return session.state()

    @app.post("/answer")
    async def answer(body: AnswerBody) -> dict[str, Any]:
        asked = session.question
        if asked is None or (asked.pair.anchor, asked.pair.other) != body.pair:
            raise HTTPException(409, "this pair is not the current question; reload the page")
        session.answer(body.answer)
        return session.state()

    @app.post("/undo")
    async def undo() -> dict[str, Any]:
        if not session.undo():
            raise HTTPException(409, "no answer of this session is left to undo")
        return session.state()

    @app.post("/finish")
    async def end() -> dict[str, Any]:
        finish()
        return session.state()

    return app


class LabelServer:
    """Serves a session in a thread until :meth:`wait` returns. Use as a context manager.

    Args:
      session: the questions and answers.
      port: 0 takes any free one.

    Raises:
      InputError: if the port is invalid or in use.
    """

    def __init__(self, session: Session, port: int) -> None:
        import uvicorn

        self._socket = _bind(port)
        self.port = int(self._socket.getsockname()[1])
        self.token = secrets.token_urlsafe(24)
        self._finished = threading.Event()
        access = Access(frozenset({f"{_ADDRESS}:{self.port}", f"localhost:{self.port}"}), self.token)
        app = create_app(session, access, self._finished.set)
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, lifespan="off", ws="none", timeout_graceful_shutdown=3
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)

    @property
    def address(self) -> str:
        """The address to open in the browser."""
        return f"http://{_ADDRESS}:{self.port}/?token={self.token}"

    def wait(self) -> None:
        """Returns when the annotator has finished."""
        while self._thread.is_alive() and not self._finished.wait(0.5):
            pass

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: types.TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()


def _bind(port: int) -> socket.socket:
    if not 0 <= port <= MAX_PORT:
        raise InputError(
            f"got {port}, expected 0 to {MAX_PORT}", field="--port", remedy="choose a free port above 1023"
        )
    listener = socket.socket()
    # Closed connections do not keep the port in use.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((_ADDRESS, port))
        listener.listen()  # now, so that a browser that is faster than the thread waits
    except OSError as error:
        listener.close()
        taken = error.errno == errno.EADDRINUSE
        problem = (
            f"port {port} is in use by another program" if taken else f"port {port} cannot be used: {error.strerror}"
        )
        raise InputError(problem, field="--port", remedy="choose another port, or 0 for any free one") from error
    return listener
