"""The kind of value that state is made of: small, frozen, validated when it is built."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import pytest
from pydantic import ValidationError

from daruma.state.record import change_record, copy_with
from daruma.state.usage import Usage

# --- A plain dataclass is copied with other values.


@dataclass(frozen=True)
class Order:
    """Several fields, one of which makes its own value."""

    item: str
    count: int = 1
    notes: list[str] = field(default_factory=list)

    @cached_property
    def shown(self) -> str:
        """What is found out once."""
        return self.item.upper()


def test_a_copy_is_what_replace_makes() -> None:
    """The value itself stays as it is."""
    order = Order("tea", 2, ["hot"])

    assert copy_with(order, count=3) == replace(order, count=3) == Order("tea", 3, ["hot"])
    assert order.count == 2


def test_what_a_value_has_found_out_goes_with_it() -> None:
    """So it is not found out anew."""
    order = Order("tea")
    shown = order.shown

    assert copy_with(order, count=3).shown is shown


# --- Changing a record: what holds the values already is not made once more.


def test_a_record_that_holds_the_values_is_returned_itself() -> None:
    """It was validated when it was made; another value is validated like any."""
    usage = Usage(role="main", model="m", input_tokens=1)

    assert change_record(usage, model="m", input_tokens=1) is usage
    assert change_record(usage, input_tokens=2) == Usage(role="main", model="m", input_tokens=2)
    with pytest.raises(ValidationError):
        change_record(usage, role="nobody")
