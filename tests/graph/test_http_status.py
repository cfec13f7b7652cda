"""Which status is answered where something is refused."""

import pytest

from daruma.graph.follow import status_of
from daruma.graph.requests import NoSuchThread, NotNow, RequestRefused
from daruma.state.errors import DamagedState, DarumaError, StorageUnavailable, ThreadBusy
from daruma.state.interrupts import AnsweredAlready, ReplyRefused


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (NoSuchThread, 404),
        (NotNow, 409),
        (AnsweredAlready, 409),
        (ThreadBusy, 409),
        (RequestRefused, 422),
        (ReplyRefused, 422),
        (StorageUnavailable, 503),
        (DamagedState, 500),
    ],
)
def test_each_refusal_has_its_status(error: type[DarumaError], status: int) -> None:
    """The narrowest class that is known counts."""
    assert status_of(error("why")) == status
