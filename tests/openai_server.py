"""A real HTTP server that speaks OpenAI's chat-completions protocol: strict, faulty on demand.

It speaks Anthropic's too.
"""

import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from socket import SHUT_RDWR, socket
from typing import Any, Literal

from tests.anthropic_answers import as_anthropic, as_events, as_openai
from tests.openai_answers import Json, Reply, chunks, completion
from tests.openai_rules import violations
from typing_extensions import override

HALF_SAID = Reply("A half-finished answer")


@dataclass(frozen=True)
class Fault:
    """A failure: by default an error answer with `status`, `body` and `headers`.

    A `body` is sent as JSON, a text as the page that proxies send.
    `cut` breaks an answer off: `before_first_token` when only its head was sent, `later` in its
    midst; `unfinished` ends a stream politely, but without a finish reason. `malformed` answers
    200 with what is not JSON. `hang` waits for the event first (with `cut`, where it is cut).
    `keep_alive` says nothing for ever, but keeps saying it: comments in a stream, else blanks.
    A stream that is cut breaks off in the midst of `answer`. `events` are what a stream says, as it
    is, where a client asks for one.
    """

    status: int = 500
    body: Mapping[str, Any] | Sequence[Any] | str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: Literal["before_first_token", "later", "unfinished"] | None = None
    hang: threading.Event | None = None
    malformed: bool = False
    keep_alive: bool = False
    answer: Reply = HALF_SAID
    events: Sequence[str] | None = None


Answer = Reply | Fault
Answerer = Callable[[dict[str, Any]], Answer]


class OpenAIServer(ThreadingHTTPServer):
    """The server as a test sees it: where it is, what it was asked, what was wrong with that."""

    daemon_threads = False  # with them, closing would not wait for the answers under way

    def __init__(self, reply: Answerer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.reply = reply
        self.lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self.server_port}/v1"
        self.requests: list[dict[str, Any]] = []
        self.bodies: list[dict[str, Any]] = []
        """The same as they came, of whichever protocol."""
        self.headers: list[dict[str, str]] = []
        self.violations: list[str] = []
        self.connections = 0
        self._hanging: list[threading.Event] = []
        self._open: set[socket] = set()
        self._closing = False
        self._over = threading.Event()

    @override
    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections += 1
        with self.lock:
            self._open.add(request)
        super().process_request(request, client_address)

    @override
    def shutdown_request(self, request: Any) -> None:
        with self.lock:
            self._open.discard(request)
        super().shutdown_request(request)

    @override
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep what went wrong in a `reply`; a client that hangs up is nothing to report."""
        error = sys.exception()
        if not isinstance(error, ConnectionError):
            self.violations.append(f"the test's reply failed: {error!r}")

    def wait_for(self, event: threading.Event) -> None:
        """Wait until the test sets the event, or ends."""
        with self.lock:
            self._hanging.append(event)
            if self._closing:
                event.set()
        event.wait()

    def wait(self, seconds: float) -> bool:
        """Wait a moment; say whether the test is over."""
        return self._over.wait(seconds)

    def release(self) -> None:
        """End every hang, and every connection that a client keeps alive."""
        with self.lock:
            self._closing = True
            self._over.set()
            for event in self._hanging:
                event.set()
            for connection in self._open:
                with suppress(OSError):  # the client was faster
                    connection.shutdown(SHUT_RDWR)


@contextmanager
def openai_server(
    reply: Answerer | Sequence[Answer], *, strict: bool = True
) -> Iterator[OpenAIServer]:
    """Serve `reply`, a function of the request's body or the answers in turn, under `server.url`.

    An illegal request is answered with 400 and noted in `server.violations`; unless `strict` is
    false, a violation fails the test at the end of the block, even when the client lived with it.
    """
    with OpenAIServer(reply if callable(reply) else _in_turn(reply)) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            server.release()
            thread.join()
    assert not (strict and server.violations), server.violations


def _in_turn(replies: Sequence[Answer]) -> Answerer:
    numbers = count()

    def reply(_request: dict[str, Any]) -> Answer:
        number = next(numbers)
        assert number < len(replies), f"asked {number + 1} times, with {len(replies)} replies"
        return replies[number]

    return reply


class _Cut(ConnectionError):
    """Ends the handling of a connection, as if the server had died."""


class _Handler(BaseHTTPRequestHandler):
    server: OpenAIServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Tests do not want an access log."""

    def do_GET(self) -> None:
        self._refuse(404, f"there is nothing at {self.path}")

    def do_POST(self) -> None:
        body = request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/v1/messages":
            request = as_openai(request)
        with self.server.lock:
            self.server.requests.append(request)
            self.server.bodies.append(body)
            self.server.headers.append(dict(self.headers))
        if self.path not in ("/v1/chat/completions", "/v1/messages"):
            self._refuse(404, f"there is nothing at {self.path}")
        elif not (self.headers.get("Authorization") or self.headers.get("X-Api-Key") or "")[7:]:
            self._refuse(401, "no API key was given")
        elif found := violations(request):
            self._refuse(400, "; ".join(found))
        else:
            self._answer(request)

    def _answer(self, request: dict[str, Any]) -> None:
        try:
            answer = self.server.reply(request)
        except Exception:
            self._json(400, {"error": {"message": "the test's reply failed", "type": "test"}})
            raise
        if isinstance(answer, Fault):
            return self._fail(answer, request)
        if self.path == "/v1/messages":
            message = as_anthropic(completion(answer, request))
            if not request.get("stream"):
                return self._json(200, message)
            told = [(name, json.dumps({"type": name, **data})) for name, data in as_events(message)]
            return self._named_events(told)
        if request.get("stream"):
            return self._events([json.dumps(chunk) for chunk in chunks(answer, request)])
        return self._json(200, completion(answer, request))

    def _refuse(self, status: int, message: str) -> None:
        self.server.violations.append(message)
        self._json(status, {"error": {"message": message, "type": "invalid_request_error"}})

    def _fail(self, fault: Fault, request: dict[str, Any]) -> None:
        streaming = bool(request.get("stream"))
        if fault.keep_alive:
            return self._drip(streaming)
        if fault.cut:
            return self._cut_stream(fault, request) if streaming else self._cut_plain(fault)
        self._hang(fault)
        if streaming and fault.events is not None:
            return self._events(fault.events)
        if fault.malformed:
            return self._events(["{not json"]) if streaming else self._body(200, b"{not json")
        body = fault.body
        if body is None:
            body = {"error": {"message": f"fault {fault.status}", "type": "fault"}}
        if isinstance(body, str):
            page = {"Content-Type": "text/html"} | dict(fault.headers)
            return self._body(fault.status, body.encode(), page)
        return self._json(fault.status, body, fault.headers)

    def _drip(self, streaming: bool) -> None:
        kind = _EVENT_STREAM if streaming else {**_EVENT_STREAM, "Content-Type": "application/json"}
        self._head(200, kind)
        blank = b": keep-alive\n\n" if streaming else b" "
        while not self.server.wait(0.02):  # ends with the test, or when the client hangs up
            self._chunk(blank)
        raise _Cut

    def _cut_plain(self, fault: Fault) -> None:
        self._head(200, {"Content-Type": "application/json", "Content-Length": "1000"})
        if fault.cut != "before_first_token":
            self.wfile.write(b'{"id": "chatcmpl-')
        self._hang(fault)
        raise _Cut

    def _cut_stream(self, fault: Fault, request: dict[str, Any]) -> None:
        self._head(200, _EVENT_STREAM)
        if fault.cut != "before_first_token":
            for chunk in chunks(fault.answer, request)[:2]:
                self._event(json.dumps(chunk))
        self._hang(fault)
        if fault.cut != "unfinished":
            raise _Cut
        self._event("[DONE]")
        self._end()

    def _hang(self, fault: Fault) -> None:
        if fault.hang:
            self.server.wait_for(fault.hang)

    def _json(
        self, status: int, body: Json | Sequence[Any], headers: Mapping[str, str] | None = None
    ) -> None:
        self._body(status, json.dumps(body).encode(), headers)

    def _body(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        fixed = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        self._head(status, fixed | dict(headers or {}))
        self.wfile.write(body)

    def _events(self, events: Sequence[str]) -> None:
        self._head(200, _EVENT_STREAM)
        for event in (*events, "[DONE]"):
            self._event(event)
        self._end()

    def _named_events(self, events: Sequence[tuple[str, str]]) -> None:
        self._head(200, _EVENT_STREAM)
        for name, data in events:
            self._chunk(f"event: {name}\ndata: {data}\n\n".encode())
        self._end()

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _event(self, data: str) -> None:
        self._chunk(f"data: {data}\n\n".encode())

    def _chunk(self, payload: bytes) -> None:
        self.wfile.write(f"{len(payload):x}\r\n".encode() + payload + b"\r\n")

    def _end(self) -> None:
        self.wfile.write(b"0\r\n\r\n")


_EVENT_STREAM = {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}
