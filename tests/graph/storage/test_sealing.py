"""What is stored is told from what somebody, or something, made of it since."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daruma.graph.storage.sealing import Checked, Sealed, Sealing
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


def test_a_value_from_before_there_were_digests_is_read() -> None:
    """It is the serializer's to refuse."""
    assert Checked().open(("msgpack", b"\xc0"), ["t"]) == ("msgpack", b"\xc0")


def test_values_that_nobody_may_read_tell_nothing_by_their_length() -> None:
    """One that repeats itself, or what is known, would be shorter than others."""
    known, other = (("msgpack", each) for each in (b"\xa9AIMessage" * 50, os.urandom(500)))

    assert len(SEALED.seal(known, ["t"])[1]) == len(SEALED.seal(other, ["t"])[1])
    assert len(Checked().seal(known, ["t"])[1]) < 100


def test_the_same_value_never_looks_the_same() -> None:
    """Nobody sees that two channels hold the same."""
    assert SEALED.seal(("null", b""), ["t"]) != SEALED.seal(("null", b""), ["t"])


@given(st.text(max_size=20), st.text(max_size=20), PLACES, PLACES)
def test_a_mark_changes_with_the_text_and_under_a_key_with_the_place(
    text: str, other: str, place: list[str], elsewhere: list[str]
) -> None:
    """So a row that stays in clear can not be another's; without a key it may be copied."""
    assert (Checked().mark(text, place) == Checked().mark(other, elsewhere)) == (text == other)
    same = (text, place) == (other, elsewhere)
    assert (SEALED.mark(text, place) == SEALED.mark(other, elsewhere)) == same
    assert SEALED.mark(text, place) != OTHER_KEY.mark(text, place)
