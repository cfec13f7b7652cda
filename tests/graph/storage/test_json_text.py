"""What is written into rows as JSON is what Python's own would have written."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daruma.graph.storage.saving import json_text

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


@given(VALUES)
def test_what_is_written_is_read_as_the_same(value: Any) -> None:
    """Also numbers that the fast writer does not know, and texts of any signs."""
    assert json.loads(json_text(value)) == value


class Colour(StrEnum):
    """A kind of text."""

    RED = "red"


def test_kinds_of_texts_and_numbers_are_written_as_such() -> None:
    """As the names of models and settings in a checkpoint's metadata may be."""
    assert json.loads(json_text({"colour": Colour.RED, 7: 2**70})) == {"colour": "red", "7": 2**70}


@dataclass
class Point:
    """No JSON."""

    x: int


@pytest.mark.parametrize("value", [Point(1), datetime.now(UTC), b"x", {1}])
def test_what_is_no_json_is_refused(value: object) -> None:
    """It would come back as something else."""
    with pytest.raises(TypeError, match="not JSON serializable"):
        json_text([value])
