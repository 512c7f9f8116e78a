"""Who may use a server: the host names that it answers to, and an API key."""

import argparse
import hmac
import os
from collections.abc import Sequence
from typing import Final

from starlette.authentication import AuthCredentials, AuthenticationBackend, AuthenticationError, BaseUser
from starlette.datastructures import Headers
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..errors import InputError
from ..formats.keys import check_key, read_key

LOCAL_HOSTS: Final = ("localhost", "127.0.0.1", "[::1]")
ANY_HOST: Final = "*"
KEY_VARIABLE: Final = "NEWSEMBED_API_KEY"
OPEN_PATHS: Final = frozenset(  # hold no data
    {"/", "/page.css", "/page.js", "/healthz", "/docs", "/openapi.json"}
)
_LONGEST_NAME: Final = 253  # characters of a host name


class HostCheck:
    """Answers only requests whose header Host is allowed; the others get 400 with the name of the option.

    Args:
      app: answers the allowed ones.
      hosts: the allowed names, without ports; "*" for any.
    """

    def __init__(self, app: ASGIApp, hosts: Sequence[str]) -> None:
        self._app = app
        self._hosts = list(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or refuses it."""
        is_allowed = False

        async def enter(scope: Scope, receive: Receive, _: Send) -> None:
            nonlocal is_allowed
            is_allowed = True
            await self._app(scope, receive, send)

        async def drop(_: Message) -> None:
            """Starlette's own refusal names neither the header nor the option."""

        await TrustedHostMiddleware(enter, allowed_hosts=self._hosts, www_redirect=False)(scope, receive, drop)
        if not is_allowed:
            name = Headers(scope=scope).get("host", "")[:_LONGEST_NAME]
            detail = f"this server does not answer to the host name {name!r}; start it with --allowed_host to add it"
            await JSONResponse({"detail": detail, "option": "--allowed_host"}, 400)(scope, receive, send)


class KeyBackend(AuthenticationBackend):
    """Refuses requests without ``Authorization: Bearer KEY``, except to the page, the API's description and the health.

    Args:
      key: what clients must send.
    """

    def __init__(self, key: str) -> None:
        self._key = key.encode()

    async def authenticate(self, conn: HTTPConnection) -> tuple[AuthCredentials, BaseUser] | None:
        """None for a request that may pass.

        Raises:
          AuthenticationError: if the key is missing or wrong.
        """
        if conn.scope["path"] not in OPEN_PATHS and not self.holds(conn):
            raise AuthenticationError("send the header `Authorization: Bearer KEY` with the API key of this server")
        return None

    def holds(self, conn: HTTPConnection) -> bool:
        """Whether a request has the key; the time does not tell how much of a wrong key is right."""
        scheme, _, given = conn.headers.get("authorization", "").partition(" ")
        return hmac.compare_digest(given.strip().encode(), self._key) and scheme.lower() == "bearer"


def explain(_: HTTPConnection, error: Exception) -> Response:
    """The answer to a request without the key."""
    return JSONResponse({"detail": str(error)}, 401, {"WWW-Authenticate": "Bearer"})


def add_access_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds ``--allowed_host`` and ``--api_key_file``."""
    parser.add_argument(
        "--allowed_host",
        action="append",
        default=[],
        metavar="NAME",
        help=f"a host name that is answered besides {', '.join(LOCAL_HOSTS)} and --host; repeat it for several; "
        f"*.example.org for all names below, {ANY_HOST} for any name",
    )
    parser.add_argument(
        "--api_key_file",
        metavar="FILE",
        help="a file with the API key that clients must send as `Authorization: Bearer KEY` "
        f"(or the environment variable {KEY_VARIABLE}; default: no key)",
    )


def allowed_hosts(host: str, names: Sequence[str]) -> tuple[str, ...]:
    """The host names that are answered, as they are in the header Host, without ports.

    Args:
      host: the address to listen on.
      names: further ones.

    Raises:
      InputError: for a name with a port, or a ``*`` elsewhere than in front.
    """
    for name in names:
        bare = name.removeprefix("*.")
        has_port = not name.startswith("[") and ":" in name
        if name != ANY_HOST and (not bare or "*" in bare or has_port or "/" in name):
            raise InputError(
                f"got {name!r}, expected a host name without a port",
                field="--allowed_host",
                remedy=f"give a name such as search.example.org, *.example.org or {ANY_HOST}",
            )
    return tuple(dict.fromkeys([*LOCAL_HOSTS, f"[{host}]" if ":" in host else host.lower(), *names]))


def api_key(args: argparse.Namespace) -> str | None:
    """The key of ``--api_key_file`` or of the environment; None if neither is given.

    Raises:
      InputError: if the file cannot be read, or the key is too short or has other characters than visible ASCII.
    """
    if args.api_key_file:
        return read_key(args.api_key_file)
    key = os.environ.get(KEY_VARIABLE)
    return None if key is None else check_key(key, KEY_VARIABLE)
