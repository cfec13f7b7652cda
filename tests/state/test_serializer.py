"""Only what the project stores is read back, and only when it validates (DU-05)."""

import pickle
from collections import deque
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.serde import jsonplus
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_METHODS, SAFE_MSGPACK_TYPES
from langgraph.checkpoint.serde.jsonplus import _msgpack_enc
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Command, Interrupt, Overwrite, Send, TimeoutPolicy
from tests.parts import a_call, a_task

from daruma.state import serializer
from daruma.state.calls import Dispatch
from daruma.state.errors import DamagedState
from daruma.state.record import record
from daruma.state.serializer import STORED_TYPES, Packing, Records, StrictSerializer, Unpacking
from daruma.state.steps import Step
from daruma.state.usage import Usage


@record
class Part:
    name: str
    schema_version: int = 1


@record
class Whole:
    parts: tuple[Part, ...]
    title: str = ""
    schema_version: int = 3

    @classmethod
    def migrate(cls, payload: dict[str, Any]) -> dict[str, Any]:
        old = payload.pop("name", "")
        return {**payload, "title": f"{old} of version {payload.get('schema_version')}"}


@record
class Unversioned:
    size: int


@record
class Foreign:
    name: str


@dataclass
class Plain:
    name: str


SERIALIZER = StrictSerializer([Part, Whole, Unversioned])


def round_trip(value: Any) -> Any:
    return SERIALIZER.loads_typed(SERIALIZER.dumps_typed(value))


def crafted(code: int, *content: Any) -> tuple[str, bytes]:
    return "msgpack", ormsgpack.packb(ormsgpack.Ext(code, _msgpack_enc(content)))


def stored(record_type: type, **fields: Any) -> tuple[str, bytes]:
    place = record_type.__module__, record_type.__name__
    return crafted(jsonplus.EXT_CONSTRUCTOR_KW_ARGS, *place, fields)


WHOLE = Whole(parts=(Part(name="a"), Part(name="b")), title="ab")


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"bytes",
        bytearray(b"more"),
        {"plain": [1, 2.5, "text", None, True]},
        WHOLE,
        [WHOLE, {"deep": [Part(name="c")]}],
        Unversioned(size=1),
        Send("node", WHOLE),
        Send("node", {"part": Part(name="c")}, timeout=TimeoutPolicy(run_timeout=3.0)),
        Overwrite([WHOLE]),
        Interrupt(value={"parts": [Part(name="c")]}, id="i", response_schema={"type": "object"}),
        Command(goto=["node"], update={"whole": WHOLE}, resume={"i": "yes"}),
        _DeltaSnapshot([WHOLE]),
        HumanMessage("hello", id="1"),
        AIMessage("", tool_calls=[{"name": "f", "args": {"x": 1}, "id": "2"}]),
        ToolMessage("done", tool_call_id="2", artifact={"size": 1}),
        datetime(2026, 11, 21, 8, 30, tzinfo=UTC),
        datetime(2026, 11, 21, tzinfo=ZoneInfo("Europe/Berlin")).tzinfo,
        date(2026, 11, 21),
        time(8, 30, tzinfo=UTC),
        timedelta(days=1, seconds=2),
        UUID(int=7),
        Decimal("1.10"),
        {1, 2},
        frozenset({"a"}),
        deque([1, 2]),
        Path("/some/file"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_stored_comes_back_equal_and_of_its_type(value: Any) -> None:
    """Records survive inside everything that LangGraph itself stores."""
    back = round_trip(value)

    assert back == value
    assert type(back) is type(value)


def test_a_list_becomes_the_tuple_that_the_record_declares() -> None:
    """Msgpack knows no tuples; the record's constructor does."""
    assert isinstance(round_trip(WHOLE).parts, tuple)


def test_all_stored_types_of_the_project_can_be_read() -> None:
    """What the database holds and what the serializer allows is one list."""
    assert StrictSerializer(STORED_TYPES).loads_typed(("null", b"")) is None


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (SERIALIZER.dumps_typed(Foreign(name="x")), "Foreign"),
        (SERIALIZER.dumps_typed({"deep": [Foreign(name="x")]}), "Foreign"),
        (SERIALIZER.dumps_typed(Send("node", Foreign(name="x"))), "Foreign"),
        (SERIALIZER.dumps_typed(_DeltaSnapshot([Foreign(name="x")])), "Foreign"),
        (stored(Part, name=["not", "text"]), "Part.*name: "),
        (stored(Part), "Part.*name: "),
        (stored(Part, name="x", unknown=1), "Part.*unknown: "),
        (stored(Part, name="x", schema_version=2), "Part.*schema_version is 2"),
        (stored(Part, name="x", schema_version="new"), "Part.*schema_version is 'new'"),
        (stored(Whole, parts=[{"name": "x"}, 3], schema_version=3), r"Whole.*parts\.1"),
        (crafted(0, "os", "system", "true"), "os.system"),
        (crafted(1, "subprocess", "Popen", [["true"]]), "subprocess.Popen"),
        (crafted(2, "builtins", "eval", {}), "builtins.eval"),
        (crafted(3, "datetime", "datetime", "1", "strptime"), "datetime.strptime"),
        (crafted(3, "datetime", "datetime", "soon", "fromisoformat"), "fromisoformat"),
        (crafted(4, Part.__module__, "Part", {"name": "x"}), "unknown form 4"),
        (
            crafted(5, "langchain_core.messages.human", "HumanMessage", {}, ""),
            "HumanMessage.*content",
        ),
        (crafted(6, "<f8", [1], "C", b""), "unknown form 6"),
        (crafted(99, "datetime", "date", [1, 1, 1]), "unknown form 99"),
        (crafted(2, "just one"), "malformed"),
        (crafted(2, Part.__module__, "Part", "no fields"), "Part"),
        (("msgpack", b"\xc1"), "no msgpack"),
        (("msgpack", SERIALIZER.dumps_typed(WHOLE)[1][:-3]), "no msgpack"),
        (("json", b'{"lc": 2, "type": "constructor", "id": ["os", "getcwd"]}'), "json"),
        (("pickle", pickle.dumps(1)), "pickle"),
    ],
)
def test_anything_else_is_refused_in_one_line_that_names_it(
    data: tuple[str, bytes], named: str
) -> None:
    """LangGraph would hand the raw data to the graph instead, with a warning at most."""
    with pytest.raises(DamagedState, match=named) as refused:
        SERIALIZER.loads_typed(data)

    assert "\n" not in str(refused.value)


def test_a_crafted_value_executes_nothing(tmp_path: Path) -> None:
    """LangGraph's default serializer runs ``os.system`` out of the database."""
    trace = tmp_path / "trace"
    attack = crafted(0, "os", "system", f"touch {trace}")
    nested = "msgpack", ormsgpack.packb([ormsgpack.Ext(7, attack[1])])

    for data in (attack, nested):
        with pytest.raises(DamagedState):
            SERIALIZER.loads_typed(data)

    assert not trace.exists()


def test_a_bottomless_value_is_refused() -> None:
    """Nesting can not exhaust the stack."""
    packed = ormsgpack.packb(0)
    for _ in range(2000):
        packed = ormsgpack.packb(ormsgpack.Ext(jsonplus.EXT_DELTA_SNAPSHOT, packed))

    with pytest.raises(DamagedState):
        SERIALIZER.loads_typed(("msgpack", packed))


@pytest.mark.parametrize("version", [1, 2, None])
def test_an_older_record_is_migrated_before_it_is_built(version: int | None) -> None:
    """A record from before there were versions has none at all."""
    fields = {"parts": [], "name": "plan"} | ({"schema_version": version} if version else {})

    assert SERIALIZER.loads_typed(stored(Whole, **fields)) == Whole(
        parts=(), title=f"plan of version {version}"
    )


def test_an_older_record_without_migration_gets_the_defaults_of_what_is_new() -> None:
    """A field that was only added needs no migration; the record is of today's version."""
    assert SERIALIZER.loads_typed(stored(Part, name="x", schema_version=0)) == Part(name="x")


def test_langgraph_can_not_loosen_it() -> None:
    """Compiling a graph offers the serializer more types; it stays as it was made."""
    offered = SERIALIZER.with_msgpack_allowlist([Foreign, Plain])

    with pytest.raises(DamagedState, match="Foreign"):
        offered.loads_typed(SERIALIZER.dumps_typed(Foreign(name="x")))


def test_a_type_that_would_not_validate_is_refused_at_once() -> None:
    """A plain dataclass takes whatever it is given, so that nothing would be checked."""
    with pytest.raises(TypeError, match="Plain"):
        StrictSerializer([Plain])


@given(st.binary(max_size=80), st.integers(0, 127))
def test_no_bytes_do_anything_but_read_or_be_refused(noise: bytes, code: int) -> None:
    """Whatever the database holds: a value, or :class:`DamagedState`."""
    for packed in (noise, ormsgpack.packb(ormsgpack.Ext(code, noise))):
        try:
            SERIALIZER.loads_typed(("msgpack", packed))
        except DamagedState:
            continue


@given(st.integers(0, 10_000), st.integers(0, 255))
def test_a_flipped_byte_never_yields_another_type(place: int, byte: int) -> None:
    """Damage shows as an error, or as another value of the same record, never as a raw dict."""
    _, packed = SERIALIZER.dumps_typed(WHOLE)
    damaged = bytearray(packed)
    damaged[3 + place % (len(packed) - 3)] = byte

    try:
        back = SERIALIZER.loads_typed(("msgpack", bytes(damaged)))
    except DamagedState:
        return
    assert isinstance(back, Whole)


# --- A record is written without its defaults, and is read as if it had been written with them.


@record
class Inner:
    name: str = ""
    schema_version: int = 1


@record
class Mixed:
    number: int | float | bool | str | None = 0
    flag: bool | int = False
    parts: tuple[Inner, ...] = ()
    inner: Inner | None = None
    named: Any = "a"
    schema_version: int = 2


RECORDS: Records = {
    (each.__module__, each.__name__): each for each in (*STORED_TYPES, Inner, Mixed)
}
PACKING = Packing(RECORDS.values())

SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.text()
INNER = st.builds(Inner, name=st.sampled_from(["", "b"]))
MIXED = st.builds(
    Mixed,
    number=SCALARS,
    flag=st.sampled_from([False, True, 0, 1]),
    parts=st.lists(INNER, max_size=2).map(tuple),
    inner=st.none() | INNER,
    named=st.sampled_from(["a", "", None, 0, [], {"x": 1}]),
)


def read(packed: bytes) -> Any:
    return Unpacking(RECORDS).read(packed)


@given(MIXED)
def test_what_is_read_is_what_was_written(value: Mixed) -> None:
    """Also where it only equals the default, as 0 does False and 0.0; ``repr`` tells them apart."""
    for each in ([value], {"key": value}, _DeltaSnapshot([value])):
        assert repr(read(PACKING.pack(each))) == repr(read(_msgpack_enc(each)))


@pytest.mark.parametrize(
    "value",
    [
        Step(kind="think", task_id="t", at=1.5, usage=Usage(role="main", model="m")),
        Send("tool", Dispatch(task=a_task(), call=a_call())),
        Send("tool", a_call(), timeout=5.0),
        Overwrite([Step(kind="tool", task_id="t")]),
        [AIMessage("hi", id="a")],
    ],
    ids=["record", "send", "limited send", "overwrite", "message"],
)
def test_what_was_written_with_its_defaults_is_read_the_same(value: Any) -> None:
    """As threads of old are, and what LangGraph writes."""
    assert repr(read(PACKING.pack(value))) == repr(read(_msgpack_enc(value)))


def test_only_what_is_no_default_is_written_and_the_version() -> None:
    """Without a version, a record would pass for one from before there were any."""
    packed = PACKING.pack(Mixed(flag=True))

    def fields(_: int, payload: bytes) -> Any:
        return ormsgpack.unpackb(payload)[2]

    assert ormsgpack.unpackb(packed, ext_hook=fields) == {"flag": True, "schema_version": 2}


def test_a_call_that_is_sent_takes_half_the_room() -> None:
    """It is written twice in each step: as what the task wrote, and as what the channel holds."""
    sent = Send("tool", Dispatch(task=a_task(), call=a_call()))

    assert len(PACKING.pack(sent)) < 0.55 * len(_msgpack_enc(sent))


def test_what_is_safe_to_read_is_what_langgraph_takes_for_safe() -> None:
    """DU-05: a class that it adds, or takes back, is decided on here, too."""
    assert serializer._SAFE == SAFE_MSGPACK_TYPES | SAFE_MSGPACK_METHODS
    assert jsonplus._option == serializer._OPTIONS
