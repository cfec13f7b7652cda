"""Small values are made smaller, and nothing that is read as one gets large."""

import zlib
from hashlib import blake2b
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from daruma.graph.storage.sealing import NAMES, deflated, inflated
from daruma.state.errors import DamagedState
from daruma.state.serializer import StrictSerializer
from daruma.state.stored import STORED_TYPES

PARTS = st.sampled_from([b"\xaeschema_version\x01", b"daruma.state.steps", b"said", b"\x00\xff"])


def raw(payload: bytes) -> bytes:
    """Deflate as much as one likes."""
    making = zlib.compressobj(9, zlib.DEFLATED, -15, zdict=NAMES)
    return making.compress(payload) + making.flush()


@given(st.lists(PARTS | st.binary(max_size=30), max_size=80).map(b"".join))
def test_a_value_comes_back_and_is_smaller_than_it_was(payload: bytes) -> None:
    """Or it is stored as it is."""
    made = deflated(payload)

    assert made is None or (inflated(made) == payload and len(made) < len(payload))


def test_a_message_takes_a_third() -> None:
    """Most of what is stored of one is names."""
    call = {"name": "look", "args": {"at": "a file"}, "id": "call_1", "type": "tool_call"}
    message = AIMessage("I shall look into the file.", tool_calls=[call], id="t/1:answer:1")
    _, packed = StrictSerializer(STORED_TYPES).dumps_typed([message])

    made = deflated(packed)

    assert made is not None
    assert len(made) < len(packed) / 3


def test_all_names_are_found_from_the_end_of_the_longest_value() -> None:
    """It is looked back over all of a value, and over the names."""
    own = bytes(Random(1).choices(range(128), k=1800))  # noqa: S311 - any noise will do
    named = own + NAMES[40:140]

    assert len(deflated(named) or named) < len(deflated(own) or own) + 20


def test_what_postgres_makes_smaller_itself_is_left_to_it() -> None:
    """And what is too short to gain anything."""
    assert deflated(b"a" * 2001) is None
    assert deflated(b"a" * 2000) is not None
    assert deflated(b"a" * 63) is None


@pytest.mark.parametrize(
    "made",
    [b"", b"no", raw(b"a" * 5000)[:-1], raw(b"said") + b"more", raw(bytes(10_000_000))],
    ids=["nothing", "other bytes", "cut off", "more behind it", "ten megabytes"],
)
def test_what_is_no_small_value_is_refused(made: bytes) -> None:
    """Whoever writes into the database can not have it grow without bound."""
    with pytest.raises(DamagedState, match="a value is not what was stored"):
        inflated(made)


def test_the_names_are_part_of_what_is_stored() -> None:
    """No value can be read by other ones: whoever wants others needs a kind for them."""
    assert blake2b(NAMES, digest_size=8).hexdigest() == "29dfe3f951237d9a"
