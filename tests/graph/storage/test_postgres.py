"""One door to storage that opens for everyone at once, or says in one line why it does not."""

import asyncio
import base64
import logging
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypedDict

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import START, MessagesState, StateGraph
from psycopg.conninfo import make_conninfo
from tests.crash.scenes import NEVER, graph_over
from tests.damages import (
    DAMAGES,
    KEY,
    THREAD,
    at_the_end,
    deleted_one_by_one,
    essence,
    finished,
    killed_before,
    restored,
)
from tests.parts import settings
from tests.scripted_runs import say

from daruma import ScriptedChatModel, Settings, build_graph
from daruma.graph.storage import Postgres, aopen_postgres, open_postgres
from daruma.graph.storage._database import display_url
from daruma.graph.storage._postgres import key_bytes
from daruma.state.errors import DamagedState, KeyRefused, OtherFormat, StorageUnavailable
from daruma.tools.threads import entered_in_thread

SECRET = "s3cret"


def config(thread_id: str, namespace: str = "") -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": namespace}}


async def test_threads_are_listed_newest_first(postgres_url: str) -> None:
    """FA-04 shows them; checkpoints of subgraphs are no threads of their own."""
    with open_postgres(postgres_url) as postgres:
        for thread in ("a", "b", "a", "c"):
            last = postgres.checkpointer.put(config(thread), empty_checkpoint(), {}, {})
        postgres.checkpointer.put(config("b", "member:1"), empty_checkpoint(), {}, {})

        rows = postgres.threads()

        assert [(row.thread_id, row.checkpoints) for row in rows] == [("c", 1), ("a", 2), ("b", 1)]
        assert rows[0].checkpoint_id == last["configurable"]["checkpoint_id"]
        assert sorted((row.updated_at for row in rows), reverse=True) == [
            row.updated_at for row in rows
        ]
        assert await postgres.athreads(limit=2) == rows[:2]


@pytest.mark.long
def test_the_argument_goes_before_the_environment(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Argument, else ``DARUMA_POSTGRES_URL``, else embedded."""
    monkeypatch.setenv("DARUMA_POSTGRES_URL", make_conninfo(postgres_url, user="nobody_at_all"))
    with open_postgres(postgres_url) as postgres:
        assert not postgres.embedded

    with pytest.raises(StorageUnavailable, match="nobody_at_all"), open_postgres():
        pass


async def test_what_it_shows_of_itself_has_no_password(postgres_url: str) -> None:
    """The version and the address are for ``daruma doctor``."""
    async with aopen_postgres(make_conninfo(postgres_url, password=SECRET)) as postgres:
        assert postgres.display_url.startswith("postgresql://postgres@")
        assert SECRET not in f"{postgres} {postgres.display_url} {postgres.pool}"
        assert postgres.server_version.split(".")[0].isdigit()


async def test_an_error_in_the_body_is_the_callers_and_the_pool_is_closed(
    postgres_url: str,
) -> None:
    """Neither form swallows or wraps what happens inside, nor leaves a connection behind."""
    with pytest.raises(KeyError, match="mine"), open_postgres(postgres_url) as sync:
        raise KeyError("mine")
    assert sync.pool.closed

    with pytest.raises(KeyError, match="mine"):
        async with aopen_postgres(postgres_url) as asynchronous:
            raise KeyError("mine")
    assert asynchronous.pool.closed


@pytest.mark.parametrize(
    "use",
    [
        lambda pg: pg.checkpointer.get_tuple(config("t")),
        lambda pg: pg.checkpointer.leases.take("t"),
        lambda pg: pg.store.get(("here",), "key"),
        lambda pg: pg.threads(),
        lambda pg: pg.prune(0.0),
    ],
)
def test_what_is_used_after_it_was_closed_says_so(
    postgres_url: str, use: Callable[[Postgres], object]
) -> None:
    """A graph below the block that it was made in: nobody waits for a database to come back."""
    with open_postgres(postgres_url) as pg:
        pass

    with pytest.raises(StorageUnavailable, match=r"was closed here.*open it again"):
        use(pg)


@pytest.mark.long
@pytest.mark.parametrize("number", [3, pytest.param(8, marks=pytest.mark.long)])
def test_processes_may_open_an_empty_database_at_once(empty_postgres_url: str, number: int) -> None:
    """ENGINE: LangGraph's own setup fails with UniqueViolation when two do it together."""
    program = """
import sys
import tempfile
from daruma.graph.storage import open_postgres
print("ready", flush=True)
sys.stdin.readline()
with open_postgres(sys.argv[1]) as postgres:
    print(postgres.threads())
"""
    command = [sys.executable, "-W", "error", "-c", program, empty_postgres_url]
    pipe = subprocess.PIPE
    starters = [
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        for _ in range(number)
    ]
    for each in starters:
        assert each.stdout
        assert each.stdout.readline() == "ready\n"

    for each in starters:
        assert each.stdin
        each.stdin.write("\n")
        each.stdin.flush()

    assert [each.communicate() for each in starters] == [("[]\n", "")] * number


def test_a_role_that_may_not_make_tables_is_told_so_and_welcome_when_they_exist(
    empty_postgres_url: str,
) -> None:
    """In production the one who runs is often not the one who owns."""
    visitor = make_conninfo(empty_postgres_url, user="visitor")
    with psycopg.connect(empty_postgres_url, autocommit=True) as owner:
        owner.execute("CREATE ROLE visitor LOGIN")
        with pytest.raises(StorageUnavailable, match="permission denied"), open_postgres(visitor):
            pass
        with open_postgres(empty_postgres_url):
            owner.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO visitor")

        with open_postgres(visitor) as postgres:
            assert postgres.threads() == []
        owner.execute("DROP OWNED BY visitor")
        owner.execute("DROP ROLE visitor")


@pytest.mark.parametrize("change", [-1, 1])
def test_a_database_of_another_format_is_refused_in_one_line_and_left_as_it_is(
    empty_postgres_url: str, change: int
) -> None:
    """An older or a newer program wrote it: reading it would call sound state damaged."""
    with open_postgres(empty_postgres_url):
        pass
    with psycopg.connect(empty_postgres_url, autocommit=True) as owner:
        owner.execute("UPDATE daruma_version SET v = v + %s", [change])
        before = owner.execute("SELECT v FROM daruma_version").fetchall()

        with (
            pytest.raises(OtherFormat, match="another version of Daruma") as refused,
            open_postgres(empty_postgres_url),
        ):
            pass

        assert "\n" not in str(refused.value)
        assert owner.execute("SELECT v FROM daruma_version").fetchall() == before


def test_langgraphs_own_tables_may_lie_beside_ours(empty_postgres_url: str) -> None:
    """An application that has both in one database: neither touches what the other stores."""
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    with PostgresSaver.from_conn_string(empty_postgres_url) as theirs:
        theirs.setup()
        builder = StateGraph(MessagesState).add_node("speak", lambda _: {"messages": ["hi"]})
        other: Any = builder.add_edge(START, "speak").compile(theirs)
        other.invoke({"messages": ["Hello"]}, config)
        with open_postgres(empty_postgres_url) as postgres:
            model = ScriptedChatModel(script=[say("Done.")])
            graph = build_graph(model, persistence=postgres)
            graph.invoke({"messages": [("user", "Do it")], "mode": "react"}, config)
            postgres.checkpointer.delete_thread("t")

        texts = [message.text for message in other.get_state(config).values["messages"]]
    assert texts == ["Hello", "hi"]


@contextmanager
def silent_server() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def closed_port() -> int:
    with silent_server() as port:
        return port


@pytest.mark.long
@pytest.mark.parametrize("silent", [False, True])
def test_an_unreachable_database_is_one_clear_line(
    caplog: pytest.LogCaptureFixture, silent: bool
) -> None:
    """No timeout of a pool, no log lines, no password; refused, or after 5 s of silence."""
    caplog.set_level(logging.INFO)
    with silent_server() as port:
        place = f"127.0.0.1:{port if silent else closed_port()}"
        url = f"postgresql://ann:{SECRET}@{place}/work?connect_timeout=1"

        with pytest.raises(StorageUnavailable) as refused, open_postgres(url, outage_seconds=0):
            pass

    assert f"postgresql://ann@{place}/work" in str(refused.value)
    assert ("no answer within 1 s" if silent else "refused") in str(refused.value)
    assert "DARUMA_POSTGRES_URL" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert SECRET not in "".join(traceback.format_exception(refused.value))
    assert not caplog.records


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ann:{SECRET}/x@host/work",
        f"postgresql://ann:1/{SECRET}@host/work",
        f"postgresql://ann:{SECRET}@x@host/work",
        f"postgresql://ann:x@{SECRET}@host/work",
        f"postgresql://ann:%{SECRET}@host/work",
        f"mysql:{SECRET}",
        f"host=h password='{SECRET}",
    ],
)
def test_a_url_that_can_not_be_read_is_not_quoted(url: str) -> None:
    """The usual reason is a password that is not percent-encoded: its pieces land anywhere."""
    with pytest.raises(StorageUnavailable, match="can not be read") as refused, open_postgres(url):
        pass

    assert SECRET not in "".join(traceback.format_exception(refused.value))


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (f"postgresql://ann:{SECRET}@host:6432/work?sslmode=require", "ann@host:6432/work"),
        (f"postgresql://host/work?user=ann&password={SECRET}", "ann@host/work"),
        (f"host=a,b port=1,2 user=ann password={SECRET} dbname=work", "ann@a,b:1,2/work"),
        (f"hostaddr=10.0.0.1 password={SECRET} sslpassword={SECRET}", "10.0.0.1/"),
        ("host=/var/run/pg port=6432 user=ann dbname=a", "ann@/a?host=/var/run/pg&port=6432"),
        ("", "/"),
    ],
)
def test_a_url_is_shown_as_user_host_port_and_database(url: str, shown: str) -> None:
    """Whatever else is in it may be a secret."""
    assert display_url(url) == f"postgresql://{shown}"


async def test_its_connections_can_be_limited(postgres_url: str) -> None:
    """What runs at once waits for one, and ends as with more."""
    script = {"main": [say("Done.")]}
    async with aopen_postgres(postgres_url, connections=2) as pg:
        graph = build_graph(ScriptedChatModel(script=script), [], settings(), pg)
        asked = {"messages": [("user", "Do it")], "mode": "react"}
        ran = (graph.ainvoke(asked, {"configurable": {"thread_id": str(n)}}) for n in range(5))
        done = await asyncio.gather(*ran)

        assert {each["result"].status for each in done} == {"completed"}
        assert pg.pool.get_stats()["pool_size"] <= 2


async def test_a_server_that_is_cancelled_while_it_starts_is_left_again() -> None:
    """Starting takes a thread, which can not be cancelled: what it enters has to be left."""
    entering, go_on, steps = asyncio.Event(), threading.Event(), list[str]()
    loop = asyncio.get_running_loop()

    @contextmanager
    def slow() -> Iterator[str]:
        loop.call_soon_threadsafe(entering.set)
        go_on.wait()
        yield "server"
        steps.append("left")

    async def use() -> None:
        async with entered_in_thread(slow()):
            steps.append("used")

    user = asyncio.create_task(use())
    await entering.wait()
    user.cancel()
    loop.call_soon(go_on.set)
    with pytest.raises(asyncio.CancelledError):
        await user

    assert steps == ["left"]


NEVER_CLOSED = """
import os, sys
from daruma import ScriptedChatModel, build_graph, open_postgres
opened = open_postgres()
pg = opened.__enter__()
graph = build_graph(ScriptedChatModel(script=[{"say": "Done."}]), persistence=pg)
graph.invoke({"messages": "hi"}, {"configurable": {"thread_id": "t"}})
if "fork" in sys.argv and os.fork() == 0:
    sys.exit()
if "fork" in sys.argv:
    os.wait()
print(len(pg.threads()), flush=True)
if "gone" in sys.argv:
    del opened
"""


@pytest.mark.long
@pytest.mark.parametrize("how", ["kept", "gone", "fork"])
def test_what_is_never_closed_is_closed_at_the_exit(how: str) -> None:
    """Without a word, as of a notebook's kernel; a fork leaves its parent's alone."""
    folder = Path(tempfile.mkdtemp(prefix="daruma-tests-"))
    folder.chmod(0o755)
    environment = {k: v for k, v in os.environ.items() if k != "DARUMA_POSTGRES_URL"}
    try:
        ended = subprocess.run(
            [sys.executable, "-W", "ignore::DeprecationWarning", "-c", NEVER_CLOSED, how],
            env={**environment, "DARUMA_DATA_DIR": str(folder)},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        assert not list(folder.rglob("postmaster.pid"))
    finally:
        shutil.rmtree(folder)

    assert (ended.stdout, ended.stderr) == ("1\n", "")


# --- A database is sealed under one key, or not at all; each mistake is one line without the key.

BASE64 = base64.b64encode(KEY).decode()


@given(st.binary(min_size=32, max_size=32))
def test_a_key_is_read_in_every_usual_form(key: bytes) -> None:
    """As bytes, in hex of either case, in base64 of either alphabet, with a line's end."""
    texts = [key.hex(), key.hex().upper(), base64.b64encode(key).decode()]

    for text in (*texts, base64.urlsafe_b64encode(key).decode(), f"{texts[0]}\n"):
        assert key_bytes(text) == key
    assert key_bytes(key) == key


@pytest.mark.parametrize(
    "bad", ["s3cret", "s3cret" * 9, "zz" * 32, BASE64[:-4], b"s3cret", "é" * 32]
)
def test_what_is_no_key_is_refused_without_quoting_it(bad: str | bytes) -> None:
    """One line says what a key is, and how to make one."""
    with pytest.raises(KeyRefused) as refused:
        key_bytes(bad)

    assert "32 bytes, in base64 or hex: `openssl rand -base64 32`" in str(refused.value)
    assert not any(secret in str(refused.value) for secret in ("s3cret", "zz", BASE64[:8], "é"))


def opening(url: str, key: str | bytes | None) -> Postgres:
    with open_postgres(url, key=key) as pg:
        return pg


def test_a_sealed_database_opens_with_its_own_key_alone(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, before any thread is read; the environment's key will do."""
    opening(postgres_url, KEY)

    with pytest.raises(KeyRefused, match="is sealed: set DARUMA_POSTGRES_KEY to its key"):
        opening(postgres_url, None)
    with pytest.raises(KeyRefused, match="sealed with another key"):
        opening(postgres_url, bytes(32))
    monkeypatch.setenv("DARUMA_POSTGRES_KEY", BASE64)
    assert opening(postgres_url, None).checkpointer.sealing.hides


@pytest.mark.long
def test_a_database_with_threads_in_clear_is_not_sealed(postgres_url: str, tmp_path: Path) -> None:
    """Half of it would stay as it is; without the key it goes on."""
    with open_postgres(postgres_url) as pg:
        finished(pg, tmp_path / "paid")

    with pytest.raises(KeyRefused, match="holds threads in clear: go on without"):
        opening(postgres_url, KEY)
    assert not opening(postgres_url, None).checkpointer.sealing.hides


def test_a_damaged_proof_is_no_way_in(postgres_url: str) -> None:
    """A database that lost its proof, but has threads, counts as one in clear: neither is read."""
    opening(postgres_url, KEY)
    with psycopg.connect(postgres_url) as connection:
        connection.execute("UPDATE daruma_seal SET proof = ''")

    with pytest.raises(KeyRefused, match="sealed with another key"):
        opening(postgres_url, KEY)


def test_the_key_is_nowhere_to_be_seen(postgres_url: str) -> None:
    """Not in what is shown of the open database, nor of the saver and its parts."""
    shown = opening(postgres_url, BASE64)
    saver = shown.checkpointer
    parts = [shown, saver, saver.sealing, saver.replies, vars(saver), vars(saver.sealing)]

    for part in parts:
        assert not any(each in repr(part) for each in (BASE64, KEY.hex(), repr(KEY)))


# --- A checkpoint that is damaged is refused, and the one before it can be resumed (DU-05).


class Foreign(TypedDict):
    task: str
    plan: list[str]


@pytest.mark.long
@pytest.mark.parametrize("key", [None, KEY], ids=["checked", "sealed"])
def test_damaged_in_any_way_a_thread_ends_as_if_it_were_whole(
    postgres_url: str, tmp_path: Path, key: bytes | None
) -> None:
    """It is refused by name, and taken up from the checkpoint that the refusal names.

    What was paid before is not paid again: the tasks of that checkpoint stay done.
    """
    folder = tmp_path / "paid"
    with open_postgres(postgres_url, key=key) as pg:
        whole = essence(finished(pg, folder))
        graph = graph_over(pg, "paid", folder, NEVER)
        killed_before(postgres_url, graph, "settle")
        newest = graph.get_state(THREAD).config["configurable"]["checkpoint_id"]
        for name, statement in DAMAGES.items():
            with restored(postgres_url) as connection:
                assert connection.execute(statement.encode()).rowcount > 0, name

                with pytest.raises(DamagedState) as refused:
                    graph.get_state(THREAD)
                with pytest.raises(DamagedState, match="checkpoint"):
                    graph.invoke(None, THREAD)
                assert f"checkpoint {newest} of thread 't': " in str(refused.value), name
                again = at_the_end(graph, None, point_of(refused.value))

                assert essence(again) == whole, name
    assert folder.with_suffix(".ledger").read_text().split() == ["5", "7"]


def point_of(error: DamagedState) -> Any:
    """The config that an error says one can go on with."""
    found = re.search(r"the one before it, (\S+), is whole", str(error))
    assert found, error
    return {"configurable": {"thread_id": "t", "checkpoint_id": found[1]}}


@pytest.mark.long
@pytest.mark.parametrize("key", [None, KEY], ids=["checked", "sealed"])
def test_a_row_that_is_deleted_is_missed_or_was_not_needed(
    postgres_url: str, tmp_path: Path, key: bytes | None
) -> None:
    """Any row of a thread: a state is refused, or it is the very same state."""
    with open_postgres(postgres_url, key=key) as pg:
        finished(pg, tmp_path / "paid")
        graph = graph_over(pg, "paid", tmp_path / "paid", NEVER)
        killed_before(postgres_url, graph, "settle")
        whole, missed = graph.get_state(THREAD), 0
        newest = whole.config["configurable"]["checkpoint_id"]
        with restored(postgres_url) as connection:
            for table, row in deleted_one_by_one(connection):
                try:
                    read = graph.get_state(THREAD)
                except DamagedState:
                    missed += 1
                else:
                    earlier = (table, row.get("checkpoint_id")) == ("daruma_checkpoints", newest)
                    assert earlier or read.values == whole.values, (table, row)
    assert missed > 20


@pytest.mark.long
def test_what_a_task_wrote_is_there_as_a_whole_or_not_at_all(
    postgres_url: str, tmp_path: Path
) -> None:
    """It is one row: where that is lost, the task runs again. Stock, a part counts as all of it."""
    with open_postgres(postgres_url) as pg:
        whole = essence(finished(pg, tmp_path / "paid"))
        graph = graph_over(pg, "paid", tmp_path / "paid", NEVER)
        killed_before(postgres_url, graph, "settle", after=True)
        newest = graph.get_state(THREAD).config["configurable"]["checkpoint_id"]
        gone = "DELETE FROM daruma_writes WHERE checkpoint_id = %s RETURNING channels"
        with restored(postgres_url) as connection:
            (lost,) = connection.execute(gone, [newest]).fetchall()
            ended = at_the_end(graph, None, THREAD)

    assert len(lost["channels"]) > 1
    assert essence(ended) == whole


def test_an_older_damaged_checkpoint_leaves_the_newest_as_it_is(
    postgres_url: str, tmp_path: Path
) -> None:
    """Its history can not be told, which is said in one line; where it stands, it can."""
    with open_postgres(postgres_url) as pg:
        finished(pg, tmp_path / "paid")
        graph = graph_over(pg, "paid", tmp_path / "paid", NEVER)
        old = [*graph.get_state_history(THREAD)][5].config["configurable"]["checkpoint_id"]
        with restored(postgres_url) as connection:
            connection.execute(
                "UPDATE daruma_checkpoints SET checkpoint = checkpoint - 'ts'"
                " WHERE checkpoint_id = %s",
                [old],
            )

            with pytest.raises(DamagedState, match=f"checkpoint {old} of thread 't': its row"):
                next(graph.get_state_history(THREAD))
            newest = graph.get_state(THREAD)

    assert newest.values["result"].completed


def test_another_graph_on_the_same_database_has_channels_of_its_own(postgres_url: str) -> None:
    """What the machine's channels hold is nothing to a foreign graph with the same names."""
    with open_postgres(postgres_url) as pg:
        builder = StateGraph(Foreign).add_node("plan", lambda _: {"plan": ["a", "list"]})
        foreign: Any = builder.add_edge(START, "plan").compile(pg.checkpointer)
        foreign.invoke({"task": "a text"}, THREAD)

        assert foreign.get_state(THREAD).values == {"task": "a text", "plan": ["a", "list"]}
        with pytest.raises(DamagedState, match="channel 'task' holds a str"):
            build_graph(settings=Settings(), persistence=pg).get_state(THREAD)
