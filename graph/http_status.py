"""Which status an HTTP server answers with where Daruma refuses something, or can not do it now."""

from typing import Final

from daruma.graph.new_request import NoSuchThread, NotNow, RequestRefused
from daruma.state.errors import Busy, DarumaError, StorageUnavailable
from daruma.state.interrupts import AnsweredAlready, ReplyRefused

_STATUS: Final[tuple[tuple[type[DarumaError], int], ...]] = (
    (NoSuchThread, 404),
    (NotNow, 409),
    (AnsweredAlready, 409),
    (Busy, 409),
    (RequestRefused, 422),
    (ReplyRefused, 422),
    (StorageUnavailable, 503),
)


def status_of(error: DarumaError) -> int:
    """Return 404 for no such thread, 409 for what does not fit how a thread stands or comes second.

    422 is for a request or a reply that is none, 503 for a lost database, 500 for all else.
    """
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
