"""What was learned long ago is let go of: a bounded part, once a day."""

from langgraph.store.memory import InMemoryStore
from tests.tools.evolution.ended_tasks import PARSER, a_setback, an_experience, on_record

from daruma.tools.evolution.learning import DAY, MOST, let_go
from daruma.tools.evolution.pitfalls import Pitfalls
from daruma.tools.evolution.shelf import put_experience, shelf

LEAST = 0.5
PLACE = shelf("o", "experiences")


async def filled(old: int = 1) -> Pitfalls:
    """Pitfalls and experiences: as many as that of the first day, and one of the tenth."""
    pitfalls = Pitfalls(InMemoryStore(), "o")
    tasks = [(a_setback(f"old:{n}"), an_experience(n)) for n in range(old)]
    tasks.append((a_setback("new"), an_experience(old, goal=PARSER, at=10 * DAY)))
    for setback, experience in tasks:
        await on_record(pitfalls, setback, experience, LEAST)
        await put_experience(experience, pitfalls.store)
    return pitfalls


async def test_what_was_not_seen_for_so_long_goes_with_its_evidence() -> None:
    """Pitfalls and experiences; others' and newer ones stay."""
    pitfalls = await filled()
    other = Pitfalls(pitfalls.store, "p")
    await on_record(other, a_setback(), an_experience(owner="p"), LEAST)
    (_, old) = await pitfalls.all()

    gone = await let_go(pitfalls, 5, 11 * DAY)

    assert gone == 2
    assert [each.signature for each in await pitfalls.all()] == ["new"]
    assert await pitfalls.evidence(old.id) == []
    assert len(await pitfalls.store.asearch(PLACE)) == 1
    assert len(await other.all()) == 1


async def test_it_is_done_once_a_day() -> None:
    """And again on the next, or when a clock was wrong."""
    pitfalls = await filled()
    assert await let_go(pitfalls, 180, 11 * DAY) == 0

    assert await let_go(pitfalls, 5, 11.5 * DAY) == 0
    assert await let_go(pitfalls, 5, 12 * DAY) == 2


async def test_one_go_is_bounded() -> None:
    """The rest goes with the next task: more may come on a day than one go takes."""
    pitfalls = await filled(MOST + 5)

    gone = [await let_go(pitfalls, 5, at * DAY) for at in (11, 11.1, 11.2)]

    assert gone == [2 * MOST, 10, 0]
