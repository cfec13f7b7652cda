"""What worked before is done again only where it is known, sure and quickly told."""

import asyncio
from dataclasses import replace

import pytest
from tests.parts import a_context, a_failure

from daruma.state.recovery import RecoveryAction, Strategy
from daruma.tools.context import Context
from daruma.tools.recovery.learning import learned_against


def knowing(strategy: Strategy = "retry", confidence: float = 0.8) -> Context:
    async def learned(signature: str, /) -> RecoveryAction | None:
        known = RecoveryAction(strategy=strategy, confidence=confidence)
        return known if signature == a_failure().signature else None

    return replace(a_context(), learned=learned)


def failing(error: BaseException) -> Context:
    async def learned(_: str, /) -> RecoveryAction | None:
        raise error

    return replace(a_context(), learned=learned)


async def test_what_worked_against_the_same_failure_is_found() -> None:
    """RE-08: and it is on record that it was learned."""
    found = await learned_against(a_failure(), knowing())

    assert found == RecoveryAction(strategy="retry", confidence=0.8, by="learned")
    assert await learned_against(a_failure(message="other"), knowing()) is None


@pytest.mark.parametrize(
    ("strategy", "confidence"), [("retry", 0.79), ("escalate", 1.0), ("give-up", 1.0)]
)
async def test_what_would_ask_a_person_or_give_up_is_not_learned(
    strategy: Strategy, confidence: float
) -> None:
    """A model may know better."""
    assert await learned_against(a_failure(), knowing(strategy, confidence)) is None


async def test_what_can_not_say_what_it_learned_is_passed_over() -> None:
    """RE-05: recovery itself never raises."""
    assert await learned_against(a_failure(), failing(OSError("no store"))) is None


async def test_what_does_not_say_it_in_time_is_passed_over() -> None:
    """A store that hangs must not hold a task up."""

    async def learned(_: str, /) -> RecoveryAction | None:
        return await asyncio.Future()

    context = replace(a_context(), learned=learned)

    assert await learned_against(a_failure(), context, seconds=0) is None


async def test_a_cancellation_is_no_failure_of_what_was_learned() -> None:
    """Cancellation passes through all of it."""
    with pytest.raises(asyncio.CancelledError):
        await learned_against(a_failure(), failing(asyncio.CancelledError()))
