"""What a store holds is read with care."""

from langgraph.store.memory import InMemoryStore

from daruma.state.lessons import Instruction
from daruma.tools.evolution._records import PAGE, Shelf

PLACE = ("a", "b")


def a_shelf(*place: str) -> Shelf[Instruction]:
    return Shelf(InMemoryStore(), Instruction, place or PLACE)


def named(name: str) -> Instruction:
    return Instruction(variant=name, actor="main", place="system")


async def test_all_pages_are_read_up_to_a_limit() -> None:
    """A store gives no more than it is asked for at once."""
    own = a_shelf()
    await own.store.abatch([own.to_put(str(n), named(str(n))) for n in range(PAGE + 5)])

    assert len(await own.all(10 * PAGE)) == PAGE + 5
    assert len(await own.all(PAGE + 2)) == PAGE + 2
    assert await own.delete_all(10 * PAGE) == PAGE + 5
    assert await own.all() == []


async def test_what_lies_deeper_or_does_not_fit_is_left_out() -> None:
    """Foreign and damaged items are no reason to fail; but they can be deleted."""
    own = a_shelf()
    await own.put("good", named("good"))
    value = dict(own.to_put("", named("deeper")).value or {})
    await own.store.aput((*PLACE, "c"), "deeper", value)
    await own.store.aput(PLACE, "more", value | {"unknown": 1})
    await own.store.aput(PLACE, "bad", {"text": 1})

    assert await own.all(10) == [named("good")] == await own.all(10, actor="main")
    assert (await own.get("bad"), await own.get("none")) == (None, None)
    assert await own.delete_all(10) == 3
    assert len(await own.store.asearch(PLACE)) == 1
