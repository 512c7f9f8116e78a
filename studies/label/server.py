"""The page: two articles side by side and one key for each answer, on 127.0.0.1 only.

A request must carry the token of the printed address and name this server as Host. Other pages in the same browser and
other users of the machine know neither, so they cannot send an answer.
"""

import secrets
import socket
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final

import uvicorn
from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from ...errors import InputError, refusing
from ..shared.pages import render
from .session import Answer, Session

TOKEN_HEADER: Final = "X-Label-Token"  # noqa: S105 - the name of the header, not a secret
_ADDRESS: Final = "127.0.0.1"
_HEADERS: Final = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"}

_DocId = Annotated[str, Field(max_length=64)]


class AnswerBody(BaseModel):
    """The body of POST /answer; the pair protects against an answer from a tab that shows an older question."""

    model_config = ConfigDict(extra="forbid")
    pair: tuple[_DocId, _DocId]
    answer: Answer


class LabelServer:
    """Serves a session until the annotator finishes, or Ctrl-C.

    Args:
      session: the questions and answers.
      port: 0 takes any free one.
    """

    def __init__(self, session: Session, port: int) -> None:
        remedy = "choose another port, or 0 for any free one"
        with refusing(f"got {port}:", OSError, field="--port", remedy=remedy):
            self.socket = socket.create_server((_ADDRESS, port))  # a browser that is faster than the server waits
        self.session, self.token = session, secrets.token_urlsafe(24)
        self.port = int(self.socket.getsockname()[1])
        options = {"log_level": "warning", "access_log": False, "lifespan": "off", "ws": "none"}
        self._server = uvicorn.Server(uvicorn.Config(self._app(), timeout_graceful_shutdown=3, **options))

    @property
    def address(self) -> str:
        """The address to open in the browser."""
        return f"http://{_ADDRESS}:{self.port}/?token={self.token}"

    def run(self) -> None:
        """Answers requests until the annotator has finished."""
        with self.socket:
            self._server.run([self.socket])

    def finish(self) -> None:
        """Lets :meth:`run` return."""
        self._server.should_exit = True

    def _refusal(self, request: Request) -> str:
        """Why a request is rejected; "" if it is accepted."""
        if request.headers.get("host", "").lower() not in (f"{_ADDRESS}:{self.port}", f"localhost:{self.port}"):
            return "wrong host; open the address that newsembed label printed"
        # Addresses are printed and logged, so only the page itself takes the token from the address.
        is_page = request.url.path == "/"
        given = request.query_params.get("token", "") if is_page else request.headers.get(TOKEN_HEADER, "")
        if not secrets.compare_digest(given.encode(), self.token.encode()):
            return "wrong token; open the address that newsembed label printed"
        return ""

    def _app(self) -> FastAPI:
        app, session = FastAPI(title="newsembed label", docs_url=None, redoc_url=None, openapi_url=None), self.session

        @app.middleware("http")
        async def guard(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
            reason = self._refusal(request)
            response = JSONResponse({"detail": reason}, 403) if reason else await answer(request)
            response.headers.update(_HEADERS)
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
            return HTMLResponse(render("label/page.html", title="newsembed label", nonce=nonce), headers=headers)

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
        async def finish() -> dict[str, Any]:
            self.finish()
            return session.state()

        return app
