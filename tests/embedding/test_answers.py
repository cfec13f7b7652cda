"""What the server of the docs says to who answers, looks, goes away, or comes too late."""

import asyncio
import json
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from tests.embedding.crowd import reply_to, sent
from tests.embedding.serving import Server, app_of_the_docs, serving
from tests.parts import settings

from daruma import aopen_postgres, build_graph

TASK = {"goal": "Note it"}
SLOW = """\
main:
- calls: [{name: run_command, args: {command: pytest -q}}]
- say: Looked.
"""
SLEEPS = "import time\n\ndef test_it():\n    time.sleep(2.5)\n"


@pytest.fixture(scope="module")
def servers(postgres_server: str) -> Iterator[tuple[Server, Server]]:
    """Two processes on one database."""
    with (
        tempfile.TemporaryDirectory() as name,
        psycopg.connect(postgres_server, autocommit=True) as connection,
    ):
        connection.execute("CREATE DATABASE embedding")
        app_of_the_docs(Path(name))
        url = make_conninfo(postgres_server, dbname="embedding")
        with serving(Path(name), url) as one, serving(Path(name), url) as other:
            yield one, other
        connection.execute("DROP DATABASE embedding WITH (FORCE)")


def streamed(client: httpx.Client, path: str, given: Any = None) -> list[dict[str, Any]]:
    """Post something, and return all events that come of it."""
    with client.stream("POST", path, json=given) as response:
        text = "\n".join(response.iter_lines())
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]


@pytest.mark.long
def test_a_page_of_another_origin_starts_nothing(servers: tuple[Server, Server]) -> None:
    """SE-03: also what a browser sends without asking first, and under a name that leads here."""
    foreign = ({"origin": "https://evil.example"}, {"origin": "null"}, {"host": "evil.example"})
    with httpx.Client(base_url=servers[0].url, timeout=30) as client:
        for headers in foreign:
            resumed = client.post("/threads/t/resume", headers=headers)
            shown = client.get("/threads/t", headers=headers)
            assert (resumed.status_code, shown.status_code) == (403, 403)
        listed = client.get("/threads/none", headers={"origin": "https://app.example.org"})

    assert listed.status_code == 404


@pytest.mark.long
def test_it_speaks_to_the_task_at_work(servers: tuple[Server, Server], tmp_path: Path) -> None:
    """FA-14: through any of the processes; what is said is heard of, and is on record."""
    (tmp_path / "work").mkdir()
    said = "/threads/steered/messages"
    with httpx.Client(base_url=servers[0].url, timeout=30) as client:
        unknown = client.post(said, json={"text": "Hello"})
        task = TASK | {"workspace": str(tmp_path / "work")}
        (question,) = streamed(client, "/threads/steered/runs", task)[-1]["questions"]
        told = httpx.post(f"{servers[1].url}{said}", json={"text": "Mind the gap."})
        empty = client.post(said, json={"text": " "})
        confirm = {question["id"]: {"decision": "confirm"}}
        events = streamed(client, "/threads/steered/answers", confirm)
        shown = client.get("/threads/steered").json()

    assert [each.status_code for each in (unknown, told, empty)] == [404, 202, 422]
    heard = [each for each in events if each["type"] == "message_received"]
    assert [(each["id"], each["text"]) for each in heard] == [(told.json(), "Mind the gap.")]
    assert "a person says: Mind the gap." in str(shown)


@pytest.mark.long
def test_it_answers_as_a_person_would_expect(
    servers: tuple[Server, Server], tmp_path: Path
) -> None:
    """One conversation: a plan, wrong answers, the right one, a second one, and the result."""
    (tmp_path / "work").mkdir()
    task = TASK | {"workspace": str(tmp_path / "work")}
    with httpx.Client(base_url=servers[0].url, timeout=30) as client:
        unknown = [client.get("/threads/t"), client.post("/threads/t/resume")]
        nothing = client.post("/threads/t/runs", json=task | {"mode": "fast"})
        first = streamed(client, "/threads/t/runs", task)
        for _ in range(500):  # its worker has told all of it, and may not have put its job away
            if (idle := client.post("/threads/t/cancel")).status_code != httpx.codes.ACCEPTED:
                break
        nobody = client.post("/threads/none/cancel")
        (question,) = first[-1]["questions"]
        waiting = client.get("/threads/t").json()
        (inbox,) = client.get("/inbox", params={"kind": "plan"}).json()
        wrong = client.post("/threads/t/answers", json={question["id"]: {"decision": "maybe"}})
        stale = client.post("/threads/t/answers", json={"gone": {"decision": "confirm"}})
        busy = client.post("/threads/t/runs", json=task)
        confirm = {question["id"]: {"decision": "confirm"}}
        second = streamed(client, "/threads/t/answers", confirm)
        late = client.post("/threads/t/answers", json=confirm)
        (asked,) = second[-1]["questions"]
        changed = reply_to(asked["value"])
        changed["decisions"][0]["digest"] = "0" * 64
        other = client.post("/threads/t/answers", json={asked["id"]: changed})
        last = streamed(client, "/threads/t/answers", {asked["id"]: reply_to(asked["value"])})
        done = client.get("/threads/t").json()
        left = [each for each in client.get("/inbox").json() if each["thread_id"] == "t"]
        over = client.post("/threads/t/answers", json={asked["id"]: reply_to(asked["value"])})

    refused = [*unknown, nothing, wrong, stale, busy, late, other, over]
    assert [each.status_code for each in refused] == [404, 404, 422, 422, 409, 409, 409, 422, 409]
    assert all(len(each.json()["error"].splitlines()) == 1 for each in refused)
    assert first[0]["type"] == "task_started"
    assert (waiting["status"], waiting["questions"]) == ("waiting", [question])
    assert (idle.status_code, nobody.status_code) == (409, 404)
    assert "model_text" in {each["type"] for each in last}
    assert (inbox["thread_id"], inbox["interrupt_id"]) == ("t", question["id"])
    assert left == []
    assert [each["type"] for each in last][-1] == "run_stopped"
    assert last[-1]["result"] == done["result"]
    assert (done["status"], done["questions"]) == ("completed", [])
    assert done["timeline"][-1]["kind"] == "result"
    kept = [each["type"] for each in last if each["type"] != "model_text"]
    assert [each["type"] for each in done["events"]] == kept


async def test_of_answers_at_once_one_counts(servers: tuple[Server, Server]) -> None:
    """Whoever comes later hears 409, though no worker has taken up the first one yet."""
    path = "/threads/two/answers"
    async with (
        httpx.AsyncClient(base_url=servers[0].url, timeout=30) as here,
        httpx.AsyncClient(base_url=servers[1].url, timeout=30) as there,
    ):
        async with here.stream("POST", "/threads/two/runs", json=TASK) as response:
            *_, (_, stop) = [each async for each in sent(response)]
        (question,) = stop["questions"]
        replies = [
            {"decision": "confirm"},
            {"decision": "reject", "feedback": "No."},
            {"decision": "reject", "feedback": "Never."},
        ]
        asked = zip((here, there, there), replies, strict=True)
        answers = await asyncio.gather(
            *(client.post(path, json={question["id"]: reply}) for client, reply in asked)
        )

    assert sorted(each.status_code for each in answers) == [200, 409, 409]


async def test_who_goes_away_does_not_end_the_run_and_can_come_back(
    servers: tuple[Server, Server],
) -> None:
    """The run goes on, in whichever process; who comes back to any of them misses no event."""
    first = []
    async with (
        httpx.AsyncClient(base_url=servers[0].url, timeout=30) as here,
        httpx.AsyncClient(base_url=servers[1].url, timeout=30) as there,
    ):
        async with here.stream("POST", "/threads/away/runs", json=TASK) as response:
            async for each in sent(response):
                first.append(each)
                break
        headers = {"Last-Event-ID": str(first[0][0])}
        async with there.stream("GET", "/threads/away/events", headers=headers) as response:
            rest = [each async for each in sent(response)]
        known = (await there.get("/threads/away")).json()

    heard = [event for _, event in [*first, *rest] if event["type"] != "model_text"]
    assert heard == known["events"]
    assert known["events"][-1]["type"] == "run_stopped"
    assert known["status"] == "waiting"


@pytest.mark.long
async def test_a_server_that_is_asked_to_end_is_not_held_up_by_a_stream(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream is closed after its grace; what runs has the worker's, and then is queued again.

    Here it ends by itself, unless the machine is so busy that a test takes longer than ten seconds.
    """
    monkeypatch.setenv("DARUMA_VERIFICATION__ENABLED", "false")
    app_of_the_docs(tmp_path, SLOW)
    (work := tmp_path / "work").mkdir()
    (work / "test_it.py").write_text(SLEEPS)
    task = TASK | {"workspace": str(work), "mode": "react"}
    heard: list[str] = []
    with serving(tmp_path, postgres_url, grace=1) as server:

        async def hear() -> None:
            async with (
                httpx.AsyncClient(base_url=server.url, timeout=30) as client,
                client.stream("POST", "/threads/t/runs", json=task) as response,
            ):
                async for _, event in sent(response):
                    heard.append(event["type"])
                    if event["type"] == "tool_started":
                        server.process.terminate()

        with pytest.raises(httpx.RemoteProtocolError):
            await hear()
        code = await asyncio.to_thread(server.process.wait)
    async with aopen_postgres(postgres_url) as pg:
        graph = build_graph(settings=settings(), persistence=pg)
        look = await graph.alook({"configurable": {"thread_id": "t"}})

    assert "tool_started" in heard
    assert "tool_completed" not in heard
    assert code == -signal.SIGTERM
    ended = (look.status, look.result and look.result["output"])
    assert ended in {("completed", "Looked."), ("queued", None)}
