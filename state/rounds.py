"""Rounds of the tool loop: what was asked for, and what it came to. Read from the step record."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from daruma.state.observed import FAILED
from daruma.state.recovery import DONE
from daruma.state.step import Step

_BY_A_PERSON = frozenset({"approved", "instructed", "answered"})


class Round(NamedTuple):
    """``calls`` is the signature of what was asked for, ``outcome`` the digest of its results.

    Both are empty for an answer without calls, which never repeats another one.
    """

    calls: str
    outcome: str

    @property
    def failed(self) -> bool:
        return self.outcome.startswith(FAILED)

    @property
    def comparable(self) -> bool:
        return bool(self.calls and self.outcome)


def attempt(steps: Sequence[Step]) -> Sequence[Step]:
    """Return the steps since the last reflection (RE-02), word of a person, or retry.

    What recovery waited for before it is tried again may have changed: it is tried in earnest.
    """
    return steps[_after_last(steps, _begins_anew) :]


def since_recovery(steps: Sequence[Step]) -> Sequence[Step]:
    """Return the steps since the last recovery."""
    return steps[_after_last(steps, lambda step: step.kind == "recover") :]


def rounds(steps: Sequence[Step], now: Step) -> list[Round]:
    """Return the rounds that ``now``, the think step at hand, has seen the end of.

    Model calls that failed, and calls that were not run because they would have repeated
    themselves, are no rounds: nothing came of them.
    """
    return [
        Round(step.signature, after.saw) for step, after in pairwise(_thinks(steps, now)) if step.ok
    ]


def refused(steps: Sequence[Step]) -> bool:
    """Whether calls were not run since the last round, because they repeated themselves."""
    thinks = [step for step in steps if step.kind == "think"]
    last = _after_last(thinks, lambda step: step.ok)
    return any(step.signature for step in thinks[last:])


def _thinks(steps: Sequence[Step], now: Step) -> Iterator[Step]:
    yield from (step for step in steps if step.kind == "think")
    yield now


def _begins_anew(step: Step) -> bool:
    done = step.recovery
    by_a_person = done is not None and done.carried in _BY_A_PERSON
    retried = done is not None and done.strategy == "retry" and done.carried in DONE
    return step.kind == "reflect" or by_a_person or retried


def _after_last(steps: Sequence[Step], wanted: Callable[[Step], bool]) -> int:
    found = (n for n in range(len(steps), 0, -1) if wanted(steps[n - 1]))
    return next(found, 0)
