"""What is stored is told from what somebody, or something, made of it since."""

import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.graph import START, StateGraph
from langgraph.types import Command
from tests.damages import KEY, THREAD, finished, restored
from typing_extensions import TypedDict

from daruma import ScriptedChatModel, Settings, build_graph
from daruma.graph.storage import Postgres, open_postgres
from daruma.graph.storage._sealing import Checked, Sealed, Sealing, deflate, inflate
from daruma.graph.sync import run as run_on_loop
from daruma.state.errors import DamagedState

SEALED = Sealed(bytes(range(32)))
OTHER_KEY = Sealed(bytes(32))
SEALINGS = st.sampled_from([Checked(), SEALED])
BYTES = st.binary(max_size=60) | st.binary(min_size=8, max_size=60).map(lambda each: each * 30)
VALUES = st.tuples(st.sampled_from(["msgpack", "null", "msgpack/3"]), BYTES)
PLACES = st.lists(st.text(max_size=6), min_size=1, max_size=5)


@given(SEALINGS, VALUES, PLACES)
def test_what_is_sealed_is_opened_in_its_place(
    sealing: Sealing, value: tuple[str, bytes], place: list[str]
) -> None:
    """Nothing is lost on the way."""
    assert sealing.open(sealing.seal(value, place), place) == value


@given(SEALINGS, VALUES, st.integers(0, 10_000), st.integers(1, 255))
def test_any_flipped_byte_is_refused(
    sealing: Sealing, value: tuple[str, bytes], at: int, flip: int
) -> None:
    """Of a value, sealed or not, wherever it is."""
    kind, stored = sealing.seal(value, ["t", "channel"])
    damaged = bytearray(stored)
    damaged[at % len(stored)] ^= flip

    with pytest.raises(DamagedState):
        sealing.open((kind, bytes(damaged)), ["t", "channel"])


@given(SEALINGS, VALUES, st.integers(0, 10_000))
def test_any_value_that_is_cut_off_is_refused(
    sealing: Sealing, value: tuple[str, bytes], length: int
) -> None:
    """Down to nothing at all."""
    kind, stored = sealing.seal(value, ["t"])

    with pytest.raises(DamagedState):
        sealing.open((kind, stored[: length % len(stored)]), ["t"])


@pytest.mark.long
@given(VALUES, PLACES, PLACES)
def test_a_sealed_value_is_refused_in_any_other_place(
    value: tuple[str, bytes], place: list[str], other: list[str]
) -> None:
    """Names are told apart wherever one of them ends: ``a, bc`` is not ``ab, c``."""
    sealed = SEALED.seal(value, place)

    if other != place:
        with pytest.raises(DamagedState, match="not what was stored in its place"):
            SEALED.open(sealed, other)


@given(VALUES, st.text(max_size=8).filter(bool))
def test_the_kind_of_a_value_can_not_be_changed(value: tuple[str, bytes], more: str) -> None:
    """It decides how the bytes are read, and how many writes there were."""
    for sealing in (Checked(), SEALED):
        kind, stored = sealing.seal(value, ["t"])
        with pytest.raises(DamagedState):
            sealing.open((kind + more, stored), ["t"])


def test_clear_text_is_refused_where_all_is_sealed() -> None:
    """Whoever may write into the database can not put a value of his own there."""
    for given_value in (("msgpack", b"\xc0"), Checked().seal(("msgpack", b"\xc0"), ["t"])):
        with pytest.raises(DamagedState, match="in clear, where all are sealed"):
            SEALED.open(given_value, ["t"])


def test_another_key_opens_nothing() -> None:
    """Nor does no key at all."""
    sealed = SEALED.seal(("msgpack", b"\xc0"), ["t"])

    with pytest.raises(DamagedState, match="not what was stored"):
        OTHER_KEY.open(sealed, ["t"])
    with pytest.raises(DamagedState, match="is sealed, in a database that is not"):
        Checked().open(sealed, ["t"])


def test_a_value_without_a_digest_is_refused() -> None:
    """Nobody has stored it."""
    with pytest.raises(DamagedState, match="not what was stored"):
        Checked().open(("msgpack", b"\xc0"), ["t"])


def test_values_that_nobody_may_read_tell_nothing_by_their_length() -> None:
    """One that repeats itself, or what is known, would be shorter than others."""
    known, other = (("msgpack", each) for each in (b"\xa9AIMessage" * 50, os.urandom(500)))

    assert len(SEALED.seal(known, ["t"])[1]) == len(SEALED.seal(other, ["t"])[1])
    assert len(Checked().seal(known, ["t"])[1]) < 100


def test_the_same_value_never_looks_the_same() -> None:
    """Nobody sees that two channels hold the same."""
    assert SEALED.seal(("null", b""), ["t"]) != SEALED.seal(("null", b""), ["t"])


@pytest.mark.long
@given(st.text(max_size=20), st.text(max_size=20), PLACES, PLACES)
def test_a_mark_changes_with_the_text_and_under_a_key_with_the_place(
    text: str, other: str, place: list[str], elsewhere: list[str]
) -> None:
    """So a row that stays in clear can not be another's; without a key it may be copied."""
    assert (Checked().mark(text, place) == Checked().mark(other, elsewhere)) == (text == other)
    same = (text, place) == (other, elsewhere)
    assert (SEALED.mark(text, place) == SEALED.mark(other, elsewhere)) == same
    assert SEALED.mark(text, place) != OTHER_KEY.mark(text, place)


# --- Small values are made smaller, and nothing that is read as one gets large.

PARTS = st.sampled_from([b"\xaeschema_version\x01", b"daruma.state.steps", b"said", b"\x00\xff"])


def raw(payload: bytes) -> bytes:
    """Deflate as much as one likes."""
    making = zlib.compressobj(9, zlib.DEFLATED, -13)
    return making.compress(payload) + making.flush()


@given(st.lists(PARTS | st.binary(max_size=30), max_size=80).map(b"".join))
def test_a_value_comes_back_and_is_smaller_than_it_was(payload: bytes) -> None:
    """Or it is stored as it is."""
    made = deflate(payload)

    assert made is None or (inflate(made) == payload and len(made) < len(payload))


def test_what_postgres_makes_smaller_itself_is_left_to_it() -> None:
    """And what is too short to gain anything."""
    assert deflate(b"a" * 2001) is None
    assert deflate(b"a" * 2000) is not None
    assert deflate(b"a" * 63) is None


@pytest.mark.parametrize(
    "made",
    [b"", b"no", raw(b"a" * 5000)[:-1], raw(b"said") + b"more", raw(bytes(10_000_000))],
    ids=["nothing", "other bytes", "cut off", "more behind it", "ten megabytes"],
)
def test_what_is_no_small_value_is_refused(made: bytes) -> None:
    """Whoever writes into the database can not have it grow without bound."""
    with pytest.raises(DamagedState, match="a value is not what was stored"):
        inflate(made)


# --- In a sealed database nothing of what a task is about can be read, or put in another's place.

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
    policy = {"tools": {"policy": {"run_command": "allow"}}}
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


@pytest.mark.long
def test_a_task_leaves_nothing_in_clear(postgres_url: str, tmp_path: Path) -> None:
    """Goal, workspace, plan, arguments, results, answers, replies: no table shows any of them."""
    with open_postgres(postgres_url, key=KEY) as pg:
        ended = told(pg, tmp_path / CANARY)

    assert ended["result"].completed, ended["result"]
    assert singing(postgres_url) == set()


@pytest.mark.long
def test_the_same_task_without_a_key_is_there_to_be_read(postgres_url: str, tmp_path: Path) -> None:
    """Else the test above would find nothing whatever was stored."""
    with open_postgres(postgres_url) as pg:
        told(pg, tmp_path / CANARY)

    assert singing(postgres_url) >= {
        "daruma_blobs",
        "daruma_writes",
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
        rows = str(connection.execute("SELECT checkpoint FROM daruma_checkpoints").fetchall())
    assert read == history[1] == {**values, "nothing": None}
    assert CANARY not in rows
    assert "987654321" not in rows


SWAPS = {
    "another version": "UPDATE daruma_blobs a SET blob = b.blob, type = b.type "
    "FROM daruma_blobs b WHERE a.channel = b.channel AND a.version <> b.version",
    "another thread": "UPDATE daruma_blobs a SET blob = b.blob, type = b.type "
    "FROM daruma_blobs b WHERE a.thread_id = 't' AND b.thread_id = 'u'"
    " AND a.channel = b.channel AND a.channel = 'task'",
    "another task's write": "UPDATE daruma_writes a SET blob = b.blob, type = b.type "
    "FROM daruma_writes b WHERE a.channels = b.channels AND 'messages' = ANY(a.channels) "
    "AND a.checkpoint_id <> b.checkpoint_id",
    "another thread's row": "UPDATE daruma_checkpoints a SET checkpoint = jsonb_set("
    "b.checkpoint, '{id}', to_jsonb(a.checkpoint_id)) FROM daruma_checkpoints b "
    "WHERE a.thread_id = 't' AND b.thread_id = 'u'",
    "clear text": "UPDATE daruma_blobs SET type = 'msgpack', blob = '\\xc0'",
}


@pytest.mark.long
def test_what_is_sealed_elsewhere_is_refused(postgres_url: str, tmp_path: Path) -> None:
    """A value of another version, thread or task, and one in clear, are damage by their names."""
    with open_postgres(postgres_url, key=KEY) as pg:
        task = finished(pg, tmp_path / "paid").values["task"]
        graph = build_graph(settings=Settings(), persistence=pg)
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
        run_on_loop(replies.accept("t", {"one": {"answer": CANARY}, "two": {"answer": "no"}}))
        assert run_on_loop(replies.find("t", ["one"])) == {"one": {"answer": CANARY}}
        with psycopg.connect(postgres_url) as connection:
            connection.execute(
                "UPDATE daruma_replies a SET reply = b.reply FROM daruma_replies b "
                "WHERE a.interrupt_id = 'two' AND b.interrupt_id = 'one'"
            )

        with pytest.raises(DamagedState, match="the reply to two on thread 't': a sealed value"):
            run_on_loop(replies.find("t", ["two"]))
