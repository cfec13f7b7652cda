"""Telling somebody that a thread begins to wait: once, without delaying or failing a run."""

import json
import logging
import socket
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import psycopg
import pytest
from langgraph.types import Command
from tests.scripted_runs import call, calls, say

from daruma.graph.build import build_graph
from daruma.graph.models import ScriptedChatModel
from daruma.graph.notify import LOG, notify
from daruma.graph.storage import Postgres, open_postgres
from daruma.graph.workers import submit, work
from daruma.state.settings import Settings, SettingsError

KEY = "sk-proj-" + "a1B2" * 12
ASKED: Any = {"messages": [("user", "Say it")]}
CONFIG: Any = {"configurable": {"thread_id": "t"}}


@contextmanager
def listening(*statuses: int) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the address of a server, and what it was sent; it answers with these, then with 204."""
    heard: list[dict[str, Any]] = []
    answers = [*statuses]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(answers.pop(0) if answers else 204)
            self.send_header("Location", "http://localhost:1/")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/hook?token=t0ken", heard
        server.shutdown()


def graph_over(pg: Postgres, **notify: Any) -> Any:
    def shout(text: str) -> str:
        """Say it loudly."""
        return text

    given = {"tools": {"policy": {"shout": "confirm"}}, "notify": notify}
    model = ScriptedChatModel(script=[calls(call("shout", text=f"with {KEY}")), say()])
    return build_graph(model, [shout], Settings.model_validate(given), persistence=pg)


def approve(graph: Any) -> Any:
    (asked,) = graph.get_state(CONFIG).interrupts
    each = asked.value["approvals"][0]
    decision = {"approval_id": each["approval_id"], "digest": each["digest"]}
    return Command(resume={asked.id: {"decisions": [decision | {"decision": "approve"}]}})


@pytest.mark.sampled(1)
@pytest.mark.parametrize("statuses", [(), (500,), (302,)], ids=["at once", "again", "no redirect"])
def test_each_question_is_told_once(postgres_url: str, statuses: Sequence[int]) -> None:
    """PL-04: not again when it is looked at, nor by others; and what it tells holds no key."""
    with listening(*statuses) as (url, heard):
        with open_postgres(postgres_url) as pg:
            graph = graph_over(pg, webhook=url)
            graph.invoke(ASKED, CONFIG)
        with open_postgres(postgres_url) as pg:  # which waited for the first to be told
            graph = graph_over(pg, webhook=url)
            graph.invoke(None, CONFIG)
            (asked,) = graph.get_state(CONFIG).interrupts
            notify(pg.checkpointer, graph.settings.notify)
            graph.invoke(approve(graph), CONFIG)

    assert len(heard) == 1 + len(statuses)
    assert {*heard[-1]} == {"thread", "kind", "id", "since", "text"}
    assert (heard[-1]["thread"], heard[-1]["kind"], heard[-1]["id"]) == ("t", "approval", asked.id)
    assert heard[-1]["text"].startswith("shout: ")
    assert KEY not in json.dumps(heard)


def test_what_a_killed_process_did_not_tell_a_worker_does(postgres_url: str) -> None:
    """DU-07: who was killed after it had claimed a question is waited for two minutes."""
    with listening() as (url, heard), open_postgres(postgres_url) as pg:
        submit(pg, ASKED, "t")
        work(graph_over(pg), wait=False)  # as one that was killed before it told anybody
        submit(pg, None, "t")
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("UPDATE daruma_questions SET notified_at = now()")
            work(graph_over(pg, webhook=url), wait=False)
            connection.execute("UPDATE daruma_questions SET notified_at = now() - interval '3 min'")
        notify(pg.checkpointer, graph_over(pg, webhook=url).settings.notify)
    assert [each["thread"] for each in heard] == ["t"]


def test_a_program_gets_it_on_its_standard_input(postgres_url: str, tmp_path: Path) -> None:
    """SE-02, SE-05: one that settings name; a program of the workspace is none."""
    program, told = tmp_path / "bin" / "tell", tmp_path / "told.json"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ncat > '{told}'\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    workspace = tmp_path / "work"
    workspace.mkdir()
    with open_postgres(postgres_url) as pg:
        graph = graph_over(pg, command=[str(program), "now"])
        graph.invoke({**ASKED, "workspace": str(workspace)}, CONFIG)

    assert json.loads(told.read_text())["kind"] == "approval"


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("notify", "why"),
    [
        ({"webhook": "http://127.0.0.1:1/secret-path"}, "refused"),
        ({"command": ["no-such-program"]}, "no program 'no-such-program' outside"),
        ({"command": ["false"]}, "exit code 1"),
    ],
)
def test_what_goes_wrong_is_logged_and_fails_nothing(
    postgres_url: str, notify: Any, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    """PL-04: in one line, without the address; the run is as it would be."""
    with caplog.at_level(logging.WARNING, LOG.name), open_postgres(postgres_url) as pg:
        graph = graph_over(pg, **notify)
        assert "__interrupt__" in graph.invoke(ASKED, CONFIG)
        assert "result" in graph.invoke(approve(graph), CONFIG)
    text = "\n".join(each.getMessage() for each in caplog.records if each.name == LOG.name)
    assert why in text
    assert "thread 't'" in text
    assert "secret-path" not in text


@pytest.mark.long
def test_a_webhook_that_never_comes_to_an_end_is_cut(postgres_url: str) -> None:
    """PL-04: it holds no thread of ours, for which the end of the process would wait."""
    cut = Event()

    def answer_for_ever(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
            while not cut.wait(0.05):
                connection.sendall(b"x")
        cut.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        Thread(target=answer_for_ever, args=[listener], daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        with open_postgres(postgres_url) as pg:
            graph_over(pg, webhook=url, timeout=0.3).invoke(ASKED, CONFIG)
        try:
            assert cut.wait(5)
        finally:
            cut.set()


@pytest.mark.parametrize(
    "url",
    [
        *("http://example.org/x", "ftp://localhost", "https://u:p@example.org", "https://"),
        *("https://a..b/x", "http://localhost:x/", "https://example.org/\u00fc", "https://a.b/c d"),
    ],
)
def test_an_address_that_is_none_or_could_be_overheard_is_refused(url: str) -> None:
    """SE-08: https, or this machine."""
    with pytest.raises(SettingsError, match="webhook"):
        Settings.model_validate({"notify": {"webhook": url}})
