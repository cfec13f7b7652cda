"""Learned additions to prompts, who is given them, and the A/B test before one stays (EV-03)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import comb
from typing import Final, Literal

from langgraph.store.base import BaseStore, Item, SearchOp

from daruma.state.lessons import Instruction, Place
from daruma.state.record import record
from daruma.state.text import LENGTH, digest
from daruma.tools.evolution._records import Shelf, read_record, shelf
from daruma.tools.text import split_words

# --- That a variant was taken back by a person: a fact of its own, which no decision undoes.

_KEY: Final = "withdrawn"


@record
class Withdrawal:
    """Why a variant was withdrawn, and when: Unix time in seconds."""

    why: str
    at: float
    schema_version: int = 1


async def withdrawal_of(store: BaseStore, owner: str, variant: str) -> Withdrawal | None:
    """Return what is on record of a variant's withdrawal; None if there is nothing."""
    return await _withdrawals(store, owner, variant).get(_KEY)


def _withdrawals(store: BaseStore, owner: str, variant: str) -> Shelf[Withdrawal]:
    return Shelf(store, Withdrawal, shelf(owner, "outcomes", variant, _KEY))


# --- A variant: one learned addition to the prompt of one actor, and how far it has come (EV-03).

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


def variant_id(owner: str, actor: str, advice: str) -> str:
    """Return the id of the variant that an advice makes, however it is worded in the end.

    The same words are the same variant, so that one that was rejected does not come back.
    """
    return digest([owner, actor, split_words(advice)])


def place_of(actor: str) -> Place:
    """Return where an actor reads what it has learned."""
    return "plan" if actor == "plan" else "system"


def mark_withdrawn(variant: Variant, given: Withdrawal) -> Variant:
    """Return a variant as it is once it was withdrawn."""
    return replace(variant, status="withdrawn", why=given.why, decided_at=given.at)


def oldest_first(variant: Variant) -> tuple[float, str]:
    """Order variants by age: of several tests of one actor the first is the one that counts."""
    return variant.proposed_at, variant.id


# --- Fisher's exact test: how likely a difference of two success rates is where there is none.


def chance_of_better(wins: int, of: int, other_wins: int, other_of: int) -> float:
    """Return the one-sided p-value that the first rate is greater than the other.

    It is the chance that, all the successes being dealt out blindly, the first gets ``wins`` or
    more of them (R. A. Fisher, *The Design of Experiments*, 1935). Computed in whole numbers.
    Raises ValueError for counts that can not be.

    >>> chance_of_better(3, 3, 0, 3)
    0.05
    """
    if not (0 <= wins <= of and 0 <= other_wins <= other_of):
        raise ValueError(f"not counts of successes: {wins} of {of}, {other_wins} of {other_of}")
    successes, everybody = wins + other_wins, of + other_of
    most = min(of, successes)
    ways = sum(comb(of, k) * comb(other_of, successes - k) for k in range(wins, most + 1))
    return ways / comb(everybody, successes)


# --- Whether a learned instruction helps: which tasks are given it, and what their outcomes say.
#
# A task's arm depends on the task and the variant alone. The outcomes are looked at at fixed sizes
# only, so that looking often can not find what is not there.

Arm = Literal["variant", "control", "promoted"]

LOOKS: Final = (20, 40, 80, 160)
"""Outcomes per arm at which a test is looked at; the last one ends it."""
CONTROL_LOOKS: Final = (5, 10, 20, 40)
"""Outcomes without it at which one that is in use is looked at: nine times as many have it."""
ALPHA: Final = 0.05
"""The chance at most that one which does nothing is promoted, shared evenly by the looks."""
CONTROL_SHARE: Final = 0.1
"""The part of the tasks that goes on without an instruction that is in use."""

Verdict = Literal["better", "worse", "no difference"]


@record
class Outcome:
    """How one task ended, and whether it was given the variant. ``at`` is Unix time in seconds."""

    task_id: str
    variant: str
    arm: Arm
    ok: bool
    at: float
    schema_version: int = 1

    @property
    def treated(self) -> bool:
        """Whether the instruction stood in the task's prompt."""
        return self.arm != "control"


@dataclass(frozen=True)
class Decision:
    """What a look at the outcomes came to, why, and as of when (of the outcomes: no clock)."""

    verdict: Verdict
    why: str
    at: float


def arm_of(variant: str, task_id: str, *, promoted: bool) -> Arm:
    """Return the arm of a task: half and half in a test, one in ten without it later."""
    share = int(digest([variant, task_id]), 16) / 16**LENGTH
    if promoted:
        return "control" if share < CONTROL_SHARE else "promoted"
    return "variant" if share < 0.5 else "control"


def decision(outcomes: Sequence[Outcome]) -> Decision | None:
    """Return what the outcomes of a test say; None while it has to go on.

    At each look the first so many outcomes of each arm are compared, by time. It is better, or
    worse, where the one-sided exact test says so at ``ALPHA`` over the number of looks.
    """
    treated, control = _arms(outcomes)
    for size in LOOKS:
        if min(len(treated), len(control)) < size:
            return None
        found = _look(treated[:size], control[:size])
        if found.verdict != "no difference" or size == LOOKS[-1]:
            return found
    return None


def setback_in_use(outcomes: Sequence[Outcome]) -> Decision | None:
    """Return what is said of one in use since it was last reviewed; None while it goes on.

    The looks are at fixed numbers of tasks without it, with all that had it until then. After the
    last look the review is over ("no difference"), and the next one begins with newer outcomes.
    """
    treated, control = _arms(outcomes)
    for size in CONTROL_LOOKS:
        if len(control) < size:
            return None
        until = control[size - 1]
        since = [each for each in treated if _order(each) <= _order(until)]
        found = _look(since, control[:size])
        if found.verdict == "worse" or size == CONTROL_LOOKS[-1]:
            return found
    return None


def _arms(outcomes: Sequence[Outcome]) -> tuple[list[Outcome], list[Outcome]]:
    ordered = sorted(outcomes, key=_order)
    return [o for o in ordered if o.treated], [o for o in ordered if not o.treated]


def _order(outcome: Outcome) -> tuple[float, str]:
    return outcome.at, outcome.task_id


def _look(treated: Sequence[Outcome], control: Sequence[Outcome]) -> Decision:
    wins, others = sum(o.ok for o in treated), sum(o.ok for o in control)
    up = chance_of_better(wins, len(treated), others, len(control))
    down = chance_of_better(others, len(control), wins, len(treated))
    threshold = ALPHA / len(LOOKS)
    verdict: Verdict = (
        "better" if up < threshold else "worse" if down < threshold else "no difference"
    )
    told = f"{wins} of {len(treated)} succeeded with it, {others} of {len(control)} without"
    why = f"{verdict}: {told} (p {min(up, down):.4f}, threshold {threshold})"
    return Decision(verdict, why, max(o.at for o in (*treated, *control)))


# --- The variants of an owner's prompts in a store, and which of them a task is given.

LIVE: Final[tuple[Status, ...]] = ("proposed", "testing", "promoted")
MOST_IN_USE: Final = 3
"""Instructions of one actor that are in use at most: a prompt must not grow for ever."""
_LIMIT: Final = 50


class Variants:
    """What was made of one owner's experience for its prompts; another's are not to be seen."""

    def __init__(self, store: BaseStore, owner: str) -> None:
        self._store = store
        self._owner = owner
        self._shelf = Shelf(store, Variant, shelf(owner, "variants"))

    async def get(self, id_: str) -> Variant | None:
        """Return a variant; None for one that does not exist or is not this owner's."""
        found = await self._shelf.get(id_)
        return found if found and found.owner == self._owner else None

    async def all(self) -> list[Variant]:
        """Return the variants, the newest first."""
        ours = (each for each in await self._shelf.all() if each.owner == self._owner)
        return sorted(ours, key=oldest_first, reverse=True)

    async def made_of(self, pitfall: str) -> list[Variant]:
        """Return those made of a pitfall that a prompt may hold: in use, compared, or waiting."""
        return [v for v in await self.all() if v.status in LIVE and pitfall in v.pitfalls]

    async def put(self, variant: Variant) -> None:
        """Keep a variant as it is now."""
        await self._shelf.put(variant.id, variant)

    async def withdraw(self, id_: str, at: float, why: str = "a person withdrew it") -> bool:
        """Take a variant out of every prompt for good; whether there was one."""
        variant = await self.get(id_)
        if variant is None:
            return False
        given = Withdrawal(why=why, at=at)
        await _withdrawals(self._store, self._owner, id_).put(_KEY, given)
        await self.put(mark_withdrawn(variant, given))
        return True


def variant_ops(owner: str) -> list[SearchOp]:
    """Return the reads that :func:`instructions_of` needs, to be made with others in one batch."""
    place = shelf(owner, "variants")
    return [SearchOp(place, filter={"status": status}, limit=_LIMIT) for status in LIVE]


def instructions_of(
    items: Iterable[Item],
    *,
    owner: str,
    task_id: str,
    actors: Iterable[str],
    observing: bool = False,
) -> tuple[Instruction, ...]:
    """Return what a task is given of what :func:`variant_ops` found: in use, and in a test.

    ``actors`` are those that the task has: of another's nothing is given, as it would tell nothing.
    Of each at most one is in a test, and ``MOST_IN_USE`` are in use. With ``observing`` what waits
    counts as if it were in a test: what the task would have been given. Pure.
    """
    there = (each for each in items if tuple(each.namespace) == shelf(owner, "variants"))
    read = (read_record(Variant, each) for each in there)
    found = sorted((v for v in read if v and v.owner == owner), key=oldest_first)
    given: list[Variant] = []
    for actor in sorted(set(actors)):
        ours = [each for each in found if each.actor == actor]
        tested = [v for v in ours if v.status == "testing" or (observing and v.status in OPEN)]
        given += [v for v in ours if v.status == "promoted"][:MOST_IN_USE]
        given += tested[:1]
    arms = {v.id: arm_of(v.id, task_id, promoted=v.status == "promoted") for v in given}
    return tuple(
        Instruction(
            variant=each.id,
            actor=each.actor,
            place=each.place,
            text="" if arms[each.id] == "control" else each.text,
            arm=arms[each.id],
        )
        for each in given
    )
