"""What a checkpoint can not keep unchanged is told before it is tried."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daruma.state.serializer import StrictSerializer
from daruma.tools.calls.parse import DEEPEST, unstorable

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_what_is_storable_comes_back_as_it_was(value: Any) -> None:
    """Through the serializer that is in use."""
    serializer = StrictSerializer(())

    if unstorable(value) is None:
        assert serializer.loads_typed(serializer.dumps_typed(value)) == value


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"n": 2**64}, "64 bits"),
        ([[-(2**63) - 1]], "64 bits"),
        ({"a\ud800": 1}, "half a character"),
        ({"a": ["\udfff"]}, "half a character"),
    ],
)
def test_what_is_not_is_named(value: Any, said: str) -> None:
    """One line for the model."""
    assert said in (unstorable(value) or "")


def test_the_limits_themselves_are_storable() -> None:
    """And NUL, which is trouble only for text of its own."""
    assert unstorable([2**64 - 1, -(2**63), "a\0b", True, 1.5]) is None


def test_deep_values_are_refused_and_not_fallen_over() -> None:
    """A model can write a thousand brackets."""
    value: Any = 1
    for _ in range(DEEPEST * 20):
        value = [value]

    assert "levels deep" in (unstorable(value) or "")
