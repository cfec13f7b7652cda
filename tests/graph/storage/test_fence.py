"""Only what the fence says is told as a lost hold (DU-03)."""

import pytest
from psycopg import DatabaseError
from psycopg.errors import DiskFull

from daruma.graph.storage.ledgers import Hold
from daruma.graph.storage.saving import lost_by
from daruma.state.errors import HoldLost

HOLD = Hold("t", 1, "run")


class Refused(DatabaseError):
    """What the fence raises."""

    sqlstate = "DR001"


@pytest.mark.parametrize(
    ("hold", "raised", "told"),
    [(HOLD, Refused, HoldLost), (HOLD, DiskFull, DiskFull), (None, Refused, Refused)],
)
def test_a_hold_is_lost_where_the_fence_says_so(
    hold: Hold | None, raised: type[DatabaseError], told: type[Exception]
) -> None:
    """Any other error of the database is what it is."""
    with pytest.raises(told), lost_by(hold):
        raise raised("no")
