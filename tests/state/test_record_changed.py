"""Changing a record: what holds the values already is not made once more."""

import pytest
from pydantic import ValidationError

from daruma.state.record import changed
from daruma.state.usage import Usage


def test_a_record_that_holds_the_values_is_returned_itself() -> None:
    """It was validated when it was made; another value is validated like any."""
    usage = Usage(role="main", model="m", input_tokens=1)

    assert changed(usage, model="m", input_tokens=1) is usage
    assert changed(usage, input_tokens=2) == Usage(role="main", model="m", input_tokens=2)
    with pytest.raises(ValidationError):
        changed(usage, role="nobody")
