"""A record is written without its defaults, and is read as if it had been written with them."""

from typing import Any

import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage
from langgraph.checkpoint.serde.jsonplus import _msgpack_enc
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Overwrite, Send
from tests.parts import a_call, a_task

from daruma.state.calls import Dispatch
from daruma.state.record import record
from daruma.state.serializer import Packing, Records, Unpacking
from daruma.state.steps import Step
from daruma.state.stored import STORED_TYPES
from daruma.state.usage import Usage


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
