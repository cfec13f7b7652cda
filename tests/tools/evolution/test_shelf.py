"""What a store holds is read with care."""

from langgraph.store.memory import InMemoryStore
from pydantic import TypeAdapter

from daruma.state.lessons import Instruction
from daruma.tools.evolution._shelf import PAGE, all_in, plain, valid

ADAPTER: TypeAdapter[Instruction] = TypeAdapter(Instruction)
PLACE = ("a", "b")


def value(name: str) -> dict[str, object]:
    return plain(ADAPTER, Instruction(variant=name, actor="main", place="system"))


async def test_all_pages_are_read_up_to_a_limit() -> None:
    """A store gives no more than it is asked for at once."""
    store = InMemoryStore()
    for number in range(PAGE + 5):
        await store.aput(PLACE, str(number), value(str(number)))

    assert len(await all_in(store, ADAPTER, PLACE, 10 * PAGE)) == PAGE + 5
    assert len(await all_in(store, ADAPTER, PLACE, PAGE + 2)) == PAGE + 2


async def test_what_lies_deeper_or_does_not_fit_is_left_out() -> None:
    """Older, foreign and damaged items are no reason to fail."""
    store = InMemoryStore()
    await store.aput(PLACE, "good", value("good"))
    await store.aput((*PLACE, "c"), "deeper", value("deeper"))
    await store.aput(PLACE, "more", value("more") | {"unknown": 1})
    await store.aput(PLACE, "bad", {"text": 1})

    found = await all_in(store, ADAPTER, PLACE, 10)
    assert [each.variant for each in found] == ["good"]
    assert valid(ADAPTER, await store.aget(PLACE, "bad")) is None
    assert valid(ADAPTER, None) is None
