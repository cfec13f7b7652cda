"""Who may call a server of ours: programs on this machine, and pages of listed origins (SE-03).

Any page that somebody looks at can send requests to a server on the same machine. CORS alone keeps
it from reading the answers: what a request starts has begun by then.
"""

import json
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

_Scope = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_App = Callable[[_Scope, _Receive, _Send], Awaitable[None]]

_WITHIN: Final = "/noauth"
"""Where LangGraph's server calls itself, within its process; no request from outside has it."""


class ListedOrigins:
    """ASGI middleware that refuses, with 403 and one line, what other pages have a browser send.

    ``origins`` are the pages that may call, such as ``https://app.example.org``; those of this
    machine may, too. The name that a request was sent to has to be this machine's, an address, or
    that of a listed origin: a page can have its own name point here.
    """

    def __init__(self, app: _App, origins: Collection[str] = ()) -> None:
        self.app = app
        self._origins = {each.rstrip("/").lower() for each in origins}
        self._hosts = {_host(each) for each in self._origins}

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        outside = not str(scope.get("root_path", "")).startswith(_WITHIN)
        said = self._refused(scope) if scope["type"] != "lifespan" and outside else None
        if said is None:
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": said})
        else:
            body, kind = json.dumps({"error": said}).encode(), b"application/json"
            headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
            await send({"type": "http.response.start", "status": 403, "headers": headers})
            await send({"type": "http.response.body", "body": body})

    def _refused(self, scope: _Scope) -> str | None:
        """Say why a request is refused; None for one that is not."""
        hosts = _values(scope, b"host")
        host = _host(f"//{hosts[0]}") if len(hosts) == 1 else ""
        known = host in self._hosts or _is_here(host) or _is_address(host)
        if not host or not known:
            return f"host {hosts!r:.200} is not listed: use localhost or an address, or list it"
        for origin in _values(scope, b"origin"):
            own = origin.partition("://")[2] == hosts[0]
            if not (own or origin in self._origins or _is_here(_host(origin))):
                return f"origin {origin!r:.200} may not call this server: it is not listed"
        return None


def _values(scope: _Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1").lower() for key, value in scope["headers"] if key == name]


def _host(origin: str) -> str:
    try:
        return urlsplit(origin).hostname or ""
    except ValueError:
        return ""


def _is_here(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    return _is_address(host) and ip_address(host).is_loopback


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
