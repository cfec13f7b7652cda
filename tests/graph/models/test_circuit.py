"""A model that keeps failing is left alone, for a while."""

import gc
from concurrent.futures import ThreadPoolExecutor

import pytest

from daruma.graph.models.faults import FAILURES, OPEN_SECONDS, Circuits, Fault


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def circuits(clock: Clock) -> Circuits:
    return Circuits(clock)


def fail(circuits: Circuits, times: int = FAILURES) -> None:
    for _ in range(times):
        circuits.count("m", Fault("again", "no"))


def test_it_opens_after_failures_in_a_row(circuits: Circuits) -> None:
    """An answer in between begins the count anew."""
    fail(circuits, FAILURES - 1)
    circuits.answered("m")
    fail(circuits, FAILURES - 1)
    before = circuits.allows("m")
    fail(circuits, 1)

    assert (before, circuits.allows("m"), circuits.allows("another")) == (True, False, True)


def test_a_refusal_is_an_answer(circuits: Circuits) -> None:
    """Only what might be met by no other request counts; what tells nothing changes nothing."""
    fail(circuits, FAILURES - 1)
    circuits.count("m", Fault("next", "a bug of the client"))
    fail(circuits, 1)
    untouched = circuits.allows("m")
    circuits.count("m", Fault("final", "no", status=400))

    assert (untouched, circuits.allows("m")) == (False, True)


def test_one_trial_is_let_through_after_a_while(circuits: Circuits, clock: Clock) -> None:
    """If it fails, the next one is as far away again."""
    fail(circuits)
    clock.now = OPEN_SECONDS - 1
    early = circuits.allows("m")
    clock.now = OPEN_SECONDS
    trials = [circuits.allows("m") for _ in range(3)]
    fail(circuits, 1)
    clock.now += OPEN_SECONDS - 1

    assert (early, trials, circuits.allows("m")) == (False, [True, False, False], False)


def test_a_trial_that_succeeds_closes_it(circuits: Circuits, clock: Clock) -> None:
    """For everybody, and with the whole count before it."""
    fail(circuits)
    clock.now = OPEN_SECONDS
    during = (circuits.allows("m"), circuits.is_open("m"))
    circuits.answered("m")

    assert (during, circuits.allows("m"), circuits.is_open("m")) == ((True, True), True, False)


def test_a_trial_that_is_cancelled_leaves_it_open(circuits: Circuits, clock: Clock) -> None:
    """The next trial comes in its time."""
    fail(circuits)
    clock.now = OPEN_SECONDS
    circuits.allows("m")
    clock.now = 2 * OPEN_SECONDS

    assert circuits.allows("m")


def test_what_has_no_key_has_no_circuit(circuits: Circuits) -> None:
    """It is always asked."""
    for _ in range(9):
        circuits.count(None, Fault("again", "no"))

    assert (circuits.allows(None), circuits.is_open(None)) == (True, False)


class Model:
    """An object to be told from others."""


def test_a_model_that_is_gone_is_forgotten(circuits: Circuits) -> None:
    """Its place in memory may soon be another's."""
    model = Model()
    key = circuits.key_of(model)
    same = circuits.key_of(model) == key
    for _ in range(FAILURES):
        circuits.count(key, Fault("again", "no"))
    opened = circuits.is_open(key)
    del model
    gc.collect()

    assert (same, opened, circuits.is_open(key)) == (True, True, False)


def test_threads_count_together(circuits: Circuits, clock: Clock) -> None:
    """Of many that ask at the moment of the trial, one is let through."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: fail(circuits, 1), range(FAILURES)))
        clock.now = OPEN_SECONDS
        allowed = list(pool.map(lambda _: circuits.allows("m"), range(100)))

    assert allowed.count(True) == 1


def test_all_can_be_closed(circuits: Circuits) -> None:
    """As if nothing had failed."""
    fail(circuits)
    circuits.close_all()

    assert circuits.allows("m")
