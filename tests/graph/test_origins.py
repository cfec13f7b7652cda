"""Pages of other origins start nothing on a server of ours (SE-03)."""

from typing import Any

import pytest

from daruma.graph.follow import ListedOrigins

LISTED = ("https://app.example.org", "https://Other.example.org/")


async def status_of(headers: dict[str, str], **scope: Any) -> int:
    """Return how a request is answered: 200 where it comes through."""
    sent: list[Any] = []

    async def inner(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive() -> Any:
        raise AssertionError("nothing of the request is read")

    async def send(message: Any) -> None:
        sent.append(message)

    given = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    whole = {"type": "http", "headers": given, "root_path": "", **scope}
    await ListedOrigins(inner, LISTED)(whole, receive, send)
    if sent[0]["type"] == "websocket.close":
        return int(sent[0]["code"])
    if sent[0]["status"] != 200:
        assert b"\n" not in sent[1]["body"]
    return int(sent[0]["status"])


COMES_THROUGH = [
    {"host": "localhost:2024"},
    {"host": "127.0.0.1"},
    {"host": "[::1]:2024"},
    {"host": "192.168.1.5:2024"},
    {"host": "app.example.org"},
    {"host": "localhost:2024", "origin": "https://app.example.org"},
    {"host": "localhost:2024", "origin": "https://other.example.org"},
    {"host": "localhost:2024", "origin": "http://localhost:3000"},
    {"host": "localhost:2024", "origin": "http://127.0.0.1:5173"},
    {"host": "192.168.1.5:2024", "origin": "http://192.168.1.5:2024"},
]
REFUSED = [
    {},
    {"host": ""},
    {"host": "evil.example:2024"},
    {"host": "evil.example:2024", "origin": "http://evil.example:2024"},
    {"host": "localhost.evil.example"},
    {"host": "127.0.0.1.evil.example"},
    {"host": "localhost:2024", "origin": "https://evil.example"},
    {"host": "localhost:2024", "origin": "null"},
    {"host": "localhost:2024", "origin": ""},
    {"host": "localhost:2024", "origin": "http://app.example.org"},
    {"host": "localhost:2024", "origin": "https://app.example.org.evil.example"},
    {"host": "localhost:2024", "origin": "https://app.example.org:444"},
    {"host": "localhost:2024", "origin": "http://localhost.evil.example"},
    {"host": "localhost:2024", "origin": "http://localhost@evil.example"},
    {"host": "localhost:2024", "origin": "http://[::1"},
    {"host": "localhost:2024", "origin": "http://192.168.1.5:2024"},
    {"host": "x\u00ff\nlocalhost"},
]


@pytest.mark.parametrize("headers", COMES_THROUGH, ids=str)
async def test_programs_and_listed_pages_may_call(headers: dict[str, str]) -> None:
    """A program sends no origin; a page that the server itself serves is its own."""
    assert await status_of(headers) == 200


@pytest.mark.parametrize("headers", REFUSED, ids=str)
async def test_other_pages_may_not(headers: dict[str, str]) -> None:
    """Nor one whose own name was made to point here; of the request nothing is read."""
    assert await status_of(headers) == 403
    assert await status_of(headers, type="websocket") == 1008


async def test_a_server_may_call_itself() -> None:
    """LangGraph's does, within its process; a request's own path is another thing."""
    assert await status_of({"host": "api"}, root_path="/noauth") == 200
    assert await status_of({"host": "api"}, path="/noauth") == 403
