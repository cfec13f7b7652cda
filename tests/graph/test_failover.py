"""The next move after failed requests: a table of cases, and limits that no case can break."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daruma.graph.models.failover import MAX_RETRY_AFTER, MAX_WAIT, Move, Tried, next_move
from daruma.graph.models.faults import Fault, Kind
from daruma.state.settings.sections import Requests

LIMITS = Requests(wait_seconds=1)


def failed(*kinds: Kind, place: int = 0, retry_after: float | None = None) -> list[Tried]:
    return [Tried(place, Fault(kind, "no", retry_after=retry_after)) for kind in kinds]


def skipped(place: int = 0) -> list[Tried]:
    return [Tried(place, Fault("next", "not asked"), asked=False)]


def move(tried: list[Tried], chain: int = 1, elapsed: float = 1, limits: Requests = LIMITS) -> Move:
    return next_move(tried, chain=chain, limits=limits, elapsed=elapsed, luck=1.0)


def again(wait: float) -> Move:
    return Move("again", 0, wait)


NEXT = Move("next model", 1)
GAVE_UP = Move("gave up", 0)
THREE = failed("again", "again", "again")


@pytest.mark.parametrize(
    ("tried", "chain", "elapsed", "expected"),
    [
        (failed("again"), 1, 1, again(1)),
        (failed("again", "again"), 1, 1, again(2)),
        (failed("again", "again", "again"), 1, 1, GAVE_UP),
        (failed("again", "again", "again"), 2, 1, NEXT),
        (failed("mend"), 1, 1, again(0)),
        (failed("mend", "mend", "mend"), 1, 1, GAVE_UP),
        (failed("next"), 1, 1, GAVE_UP),
        (failed("next"), 2, 1, NEXT),
        (failed("final"), 2, 1, GAVE_UP),
        (failed("again", retry_after=0), 1, 1, again(0)),
        (failed("again", retry_after=120), 1, 1, again(120)),
        (failed("again", retry_after=121), 1, 1, GAVE_UP),
        (failed("again", retry_after=121), 2, 1, NEXT),
        (failed("again", retry_after=120), 1, 480, GAVE_UP),
        (failed("again", retry_after=120), 2, 480, NEXT),
        (failed("again"), 1, 300, again(1)),
        (failed("again"), 2, 299, NEXT),
        (failed("again"), 2, 298, again(1)),
        (failed("again"), 2, 599.5, NEXT),
        (failed("again"), 2, 600, GAVE_UP),
        (failed("next"), 2, 600, GAVE_UP),
        (skipped(), 2, 1, NEXT),
        (skipped() + failed("again", "again", place=1), 2, 1, Move("again", 1, 2)),
        (THREE + failed("again", "again", "again", place=1), 3, 1, Move("gave up", 1)),
        (THREE + failed("again", "again", place=1), 3, 1, Move("again", 1, 2)),
    ],
)
def test_the_next_move(tried: list[Tried], chain: int, elapsed: float, expected: Move) -> None:
    """TL-17: again after a wait, the next model at once, or the end."""
    assert move(tried, chain, elapsed) == expected


def test_the_wait_is_spread_by_luck_up_to_a_limit() -> None:
    """What failed for many at once is not asked by all of them at once again."""
    tried, limits = failed("again", "again"), Requests(wait_seconds=60)

    waits = [
        next_move(tried, chain=1, limits=limits, elapsed=0, luck=luck).wait for luck in (0, 0.5, 1)
    ]

    assert waits == [0, MAX_WAIT / 2, MAX_WAIT]


def test_half_of_a_short_time_is_left_for_the_next_model() -> None:
    """A time that one whole request would use up is shared."""
    limits = Requests(wait_seconds=1, seconds=300, total_seconds=20)

    assert move(failed("again"), chain=2, elapsed=8, limits=limits).then == "again"
    assert move(failed("again"), chain=2, elapsed=9, limits=limits).then == "next model"


def test_fewer_requests_may_be_allowed() -> None:
    """A model that keeps failing gets one."""
    limits = Requests(per_model=1, per_call=2)

    assert move(failed("again"), 3, limits=limits) == NEXT
    assert move(failed("again") + failed("again", place=1), 3, limits=limits).then == "gave up"


def test_a_model_that_was_not_asked_takes_nothing_from_the_others() -> None:
    """Passing it over is no request."""
    limits = Requests(wait_seconds=1, per_call=2)

    assert move(skipped() + failed("again", place=1), 2, limits=limits) == Move("again", 1, 1)


FAULTS = st.builds(
    Fault,
    kind=st.sampled_from(["again", "again", "mend", "next", "final"]),
    message=st.just("no"),
    retry_after=st.none() | st.floats(0, 1000),
)
LIMITED = st.builds(
    Requests,
    per_model=st.integers(1, 3),
    per_call=st.integers(1, 6),
    wait_seconds=st.floats(0, 100),
    total_seconds=st.floats(0.1, 1000),
)


@given(
    faults=st.lists(st.tuples(FAULTS, st.booleans(), st.floats(0, 100)), min_size=40, max_size=40),
    limits=LIMITED,
    chain=st.integers(1, 9),
    luck=st.floats(0, 1),
)
def test_no_run_of_failures_breaks_a_limit(
    faults: list[tuple[Fault, bool, float]], limits: Requests, chain: int, luck: float
) -> None:
    """TL-17: requests to a model, requests in all, and the time at which the last one begins."""
    tried: list[Tried] = []
    place, clock = 0, 0.0
    for fault, asked, seconds in faults:
        assert clock < limits.total_seconds
        skips = not asked and fault.kind == "next"
        tried.append(Tried(place, fault, asked=not skips))
        clock += seconds
        done = next_move(tried, chain=chain, limits=limits, elapsed=clock, luck=luck)
        if done.then == "gave up":
            break
        assert done.place == place + (done.then == "next model") < chain
        assert 0 <= done.wait <= MAX_RETRY_AFTER
        place, clock = done.place, clock + done.wait
    else:
        pytest.fail("it never ends")

    requests = [each.place for each in tried if each.asked]
    assert len(requests) <= limits.per_call
    assert max(map(requests.count, requests), default=0) <= limits.per_model
