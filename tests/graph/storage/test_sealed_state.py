"""In a sealed database nothing of what a task is about can be read, or put in another's place."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Command
from tests.damages import KEY, THREAD, finished, restored
from typing_extensions import TypedDict

from daruma import ScriptedChatModel, Settings, build_graph
from daruma.graph.storage.postgres import Postgres, open_postgres
from daruma.graph.storage.sealing import Checked
from daruma.state.errors import DamagedState

CANARY = "kanarienvogel"
PLAN = {"phases": [{"id": "p1", "title": f"Feed the {CANARY}", "instructions": CANARY}]}
SCRIPT: dict[str, Any] = {
    "plan": [{"json": PLAN}, {"json": PLAN}],
    "main": [
        {"calls": [{"name": "feed", "args": {"bird": CANARY}}]},
        {"calls": [{"name": "run_command", "args": {"command": f"echo {CANARY}"}}]},
        {"say": f"The {CANARY} sings."},
    ],
}


def feed(bird: str) -> str:
    """Feed a bird."""
    if bird != CANARY:
        raise ValueError
    return f"{bird} was fed" + " and fed" * 10_000


def told(pg: Postgres, folder: Path) -> Any:
    """Run a task that has the canary wherever a task can have one."""
    folder.mkdir()
    pg.store.put(("daruma", "memory"), "one", {"text": f"the {CANARY} sings", "bird": CANARY})
    pg.store.put(("daruma", "memory"), "two", {CANARY: "sings"}, index=[CANARY])
    policy = {"sandbox": {"require": "none"}, "tools": {"policy": {"run_command": "allow"}}}
    settings = Settings.model_validate(policy | {"verification": {"commands": [f"echo {CANARY}"]}})
    model = ScriptedChatModel(script=SCRIPT)
    graph: Any = build_graph(model, [feed], settings, persistence=pg)
    goal = {"messages": [("user", f"Feed {CANARY}")], "mode": "plan_exec", "workspace": str(folder)}
    asked = graph.invoke(goal, THREAD)
    reply: dict[str, Any] = {"decision": "reject", "feedback": f"Not so fast, {CANARY}"}
    asked = graph.invoke(Command(resume={asked["__interrupt__"][0].id: reply}), THREAD)
    reply = {"decision": "confirm"}
    return graph.invoke(Command(resume={asked["__interrupt__"][0].id: reply}), THREAD)


def singing(url: str) -> set[str]:
    """The tables that hold the canary where anybody can read it, in a text or in bytes."""
    tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
    songs = (CANARY, CANARY.encode().hex())
    with psycopg.connect(url) as connection:
        return {
            table
            for (table,) in connection.execute(tables).fetchall()
            for (row,) in connection.execute(f"SELECT to_jsonb(t) FROM {table} t").fetchall()  # noqa: S608
            for shown in (str(row), *made_large(row.values()))
            if any(song in shown for song in songs)
        }


def made_large(columns: Iterable[Any]) -> Iterator[str]:
    """What of a row was deflated, which needs no key to be read."""
    texts = [each for each in columns if isinstance(each, str)]
    for kind in (each for each in texts if each.startswith("small:")):
        for payload in (each for each in texts if each.startswith("\\x")):
            yield Checked().open((kind, bytes.fromhex(payload[2:])), ())[1].hex()


def test_a_task_leaves_nothing_in_clear(postgres_url: str, tmp_path: Path) -> None:
    """Goal, workspace, plan, arguments, results, answers, replies: no table shows any of them."""
    with open_postgres(postgres_url, key=KEY) as pg:
        ended = told(pg, tmp_path / CANARY)

    assert ended["result"].completed, ended["result"]
    assert singing(postgres_url) == set()


def test_the_same_task_without_a_key_is_there_to_be_read(postgres_url: str, tmp_path: Path) -> None:
    """Else the test above would find nothing whatever was stored."""
    with open_postgres(postgres_url) as pg:
        told(pg, tmp_path / CANARY)

    assert singing(postgres_url) >= {
        "checkpoint_blobs",
        "checkpoint_writes",
        "daruma_effects",
        "daruma_items",
        "daruma_outputs",
        "daruma_replies",
    }


class Plain(TypedDict):
    text: str
    number: int
    ratio: float
    flag: bool
    nothing: None


def test_texts_and_numbers_are_sealed_too(postgres_url: str) -> None:
    """LangGraph keeps them in the checkpoint's row, in clear, whatever its serializer does."""
    values = {"text": CANARY, "number": 987654321, "ratio": 0.987654321, "flag": True}
    with open_postgres(postgres_url, key=KEY) as pg:
        builder = StateGraph(Plain).add_node("go", lambda _: {"number": 987654321, "nothing": None})
        graph: Any = builder.add_edge(START, "go").compile(pg.checkpointer)
        graph.invoke({**values, "number": 1}, THREAD)
        graph.update_state(THREAD, None, as_node="__copy__")
        read = graph.get_state(THREAD).values
        history = [past.values for past in graph.get_state_history(THREAD)]

    with psycopg.connect(postgres_url) as connection:
        rows = str(connection.execute("SELECT checkpoint FROM checkpoints").fetchall())
    assert read == history[1] == {**values, "nothing": None}
    assert CANARY not in rows
    assert "987654321" not in rows


SWAPS = {
    "another version": "UPDATE checkpoint_blobs a SET blob = b.blob, type = b.type "
    "FROM checkpoint_blobs b WHERE a.channel = b.channel AND a.version <> b.version",
    "another thread": "UPDATE checkpoint_blobs a SET blob = b.blob, type = b.type "
    "FROM checkpoint_blobs b WHERE a.thread_id = 't' AND b.thread_id = 'u'"
    " AND a.channel = b.channel AND a.channel = 'task'",
    "another task's write": "UPDATE checkpoint_writes a SET blob = b.blob, type = b.type "
    "FROM checkpoint_writes b WHERE a.channel = b.channel AND a.channel = 'messages' "
    "AND a.checkpoint_id <> b.checkpoint_id",
    "another thread's row": "UPDATE checkpoints a SET checkpoint = jsonb_set("
    "b.checkpoint, '{id}', to_jsonb(a.checkpoint_id)) FROM checkpoints b "
    "WHERE a.thread_id = 't' AND b.thread_id = 'u'",
    "clear text": "UPDATE checkpoint_blobs SET type = 'msgpack', blob = '\\xc0'",
}


def test_what_is_sealed_elsewhere_is_refused(postgres_url: str, tmp_path: Path) -> None:
    """A value of another version, thread or task, and one in clear, are damage by their names."""
    with open_postgres(postgres_url, key=KEY) as pg:
        task = finished(pg, tmp_path / "paid").values["task"]
        graph = build_graph("scripted:none", settings=Settings(), persistence=pg)
        graph.update_state({"configurable": {"thread_id": "u"}}, {"task": task}, as_node="main")
        for name, statement in SWAPS.items():
            with restored(postgres_url) as connection:
                assert connection.execute(statement.encode()).rowcount > 0, name
                with pytest.raises(DamagedState, match="of thread 't': "):
                    graph.get_state(THREAD)


def test_a_reply_is_sealed_for_its_question(postgres_url: str) -> None:
    """An approval given to one question is none to another."""
    with open_postgres(postgres_url, key=KEY) as pg:
        replies = pg.checkpointer.replies
        replies.accept("t", {"one": {"answer": CANARY}, "two": {"answer": "no"}})
        assert replies.accepted("t", ["one"]) == {"one": {"answer": CANARY}}
        with psycopg.connect(postgres_url) as connection:
            connection.execute(
                "UPDATE daruma_replies a SET reply = b.reply FROM daruma_replies b "
                "WHERE a.interrupt_id = 'two' AND b.interrupt_id = 'one'"
            )

        with pytest.raises(DamagedState, match="the reply to two on thread 't': a sealed value"):
            replies.accepted("t", ["two"])
