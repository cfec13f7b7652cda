"""A variant: one learned addition to the prompt of one actor, and how far it has come (EV-03)."""

from dataclasses import replace
from typing import Final, Literal

from pydantic import TypeAdapter

from daruma.state.digest import digest
from daruma.state.lessons import Place
from daruma.state.record import record
from daruma.tools.evolution.instruction_gate import words
from daruma.tools.evolution.withdrawal import Withdrawal

Status = Literal["proposed", "testing", "promoted", "rejected", "withdrawn"]
"""Waits while others only look on; is compared with none; is in use; did not help; was taken back.
"""

OPEN: Final = ("proposed", "testing")


@record
class Variant:
    """One addition to a prompt. ``tasks`` and ``pitfalls`` are what it was made from, by their ids.

    ``advice`` is the text that it was worded from; ``why`` what the last decision of it was, as of
    ``decided_at``. ``review`` counts the comparisons that are over: 0 is its test, the others are
    those that it stands while it is in use. Times are Unix time in seconds.
    """

    id: str
    owner: str
    actor: str
    place: Place
    text: str
    advice: str
    status: Status = "proposed"
    tasks: tuple[str, ...] = ()
    pitfalls: tuple[str, ...] = ()
    why: str = ""
    proposed_at: float = 0.0
    decided_at: float = 0.0
    review: int = 0
    schema_version: int = 1


VARIANT: TypeAdapter[Variant] = TypeAdapter(Variant)


def variant_id(owner: str, actor: str, advice: str) -> str:
    """Return the id of the variant that an advice makes, however it is worded in the end.

    The same words are the same variant, so that one that was rejected does not come back.
    """
    return digest([owner, actor, words(advice)])


def place_of(actor: str) -> Place:
    """Return where an actor reads what it has learned."""
    return "plan" if actor == "plan" else "system"


def taken_back(variant: Variant, given: Withdrawal) -> Variant:
    """Return a variant as it is once it was withdrawn."""
    return replace(variant, status="withdrawn", why=given.why, decided_at=given.at)


def oldest_first(variant: Variant) -> tuple[float, str]:
    """Order variants by age: of several tests of one actor the first is the one that counts."""
    return variant.proposed_at, variant.id
