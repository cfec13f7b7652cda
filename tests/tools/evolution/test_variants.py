"""A task is given what is in use and what is in a test, of its actors, of its owner."""

from typing import Any

import pytest
from langgraph.store.base import BaseStore, Item
from langgraph.store.memory import InMemoryStore
from tests.variant_parts import a_variant

from daruma.state.lessons import Instruction
from daruma.tools.evolution.shelf import shelf
from daruma.tools.evolution.variants import (
    MOST_IN_USE,
    Variant,
    Variants,
    arm_of,
    instructions_of,
    ops,
)


async def kept(*variants: Variant) -> InMemoryStore:
    store = InMemoryStore()
    for each in variants:
        await Variants(store, each.owner).put(each)
    return store


async def items(store: BaseStore, owner: str = "o") -> list[Item]:
    found: list[Any] = await store.abatch(ops(owner))
    return [item for each in found for item in each]


async def given(
    store: BaseStore, *, task: str = "t/1", owner: str = "o", **options: Any
) -> tuple[Instruction, ...]:
    asked = {"actors": ("main", "plan")} | options
    return instructions_of(await items(store, owner), owner=owner, task_id=task, **asked)


def task_in(arm: str, variant: str = "v", *, promoted: bool = False) -> str:
    """The first task that is in an arm."""
    return next(
        f"t/{n}" for n in range(1000) if arm_of(variant, f"t/{n}", promoted=promoted) == arm
    )


async def test_half_of_the_tasks_are_given_what_is_in_a_test() -> None:
    """EV-03: the other half is told apart by an empty text, so that its outcome counts too."""
    store = await kept(a_variant())
    (with_it,) = await given(store, task=task_in("variant"))
    (without,) = await given(store, task=task_in("control"))

    assert (with_it.arm, with_it.text, with_it.place) == ("variant", "Read it first.", "system")
    assert (without.arm, without.text, without.variant) == ("control", "", "v")


async def test_what_is_in_use_goes_to_all_but_a_tenth() -> None:
    """The way back needs tasks without it."""
    store = await kept(a_variant(status="promoted"))
    (with_it,) = await given(store, task=task_in("promoted", promoted=True))
    (without,) = await given(store, task=task_in("control", promoted=True))

    assert (with_it.arm, with_it.text) == ("promoted", "Read it first.")
    assert (without.arm, without.text) == ("control", "")


@pytest.mark.parametrize("status", ["proposed", "rejected", "withdrawn"])
async def test_what_waits_or_is_gone_is_given_to_nobody(status: Any) -> None:
    """EV-03: a prompt is what it was."""
    assert await given(await kept(a_variant(status=status))) == ()


async def test_who_looks_on_is_told_what_waits() -> None:
    """What the task would have been given, if its test had begun."""
    store = await kept(a_variant(status="proposed"), a_variant("gone", "rejected"))

    found = await given(store, observing=True)
    assert [each.variant for each in found] == ["v"]


async def test_an_actor_is_in_one_test_and_has_a_few_in_use() -> None:
    """However many there are: the oldest."""
    used = [a_variant(f"u{n}", "promoted", proposed_at=float(n)) for n in range(MOST_IN_USE + 2)]
    tested = [a_variant(f"t{n}", proposed_at=float(n)) for n in range(3)]
    found = await given(await kept(*tested, *used))

    assert [each.variant for each in found] == ["u0", "u1", "u2", "t0"]


async def test_only_those_whom_the_task_has_are_given_something() -> None:
    """What no prompt shows would only blur the comparison."""
    store = await kept(a_variant("m"), a_variant("p", actor="plan"), a_variant("e", actor="tester"))

    assert [v.variant for v in await given(store, actors=("main",))] == ["m"]
    both = await given(store, actors=("main", "plan", "tester"))
    assert {v.variant: v.place for v in both} == {"m": "system", "p": "plan", "e": "system"}


async def test_another_owners_are_not_seen() -> None:
    """EV-04: not even by their id, nor where one name begins with the other."""
    store = await kept(a_variant(owner="o2"))

    assert await given(store) == ()
    assert await Variants(store, "o").get("v") is None
    assert await Variants(store, "o").all() == []
    assert await Variants(store, "o").withdraw("v", 2.0) is False
    assert (await Variants(store, "o2").all())[0].status == "testing"


async def test_what_says_that_it_is_anothers_is_not_listed() -> None:
    """A foreign value in an owner's namespace is nobody's."""
    store = await kept(a_variant())
    (item,) = await items(store)
    await store.aput(shelf("o", "variants"), "a", item.value | {"owner": "p", "id": "a"})

    assert [each.id for each in await Variants(store, "o").all()] == ["v"]
    assert await Variants(store, "o").get("a") is None


async def test_what_is_foreign_or_damaged_is_passed_over() -> None:
    """What says that it is another's, or fits no variant."""
    store = await kept(a_variant())
    await store.aput(shelf("o", "variants"), "bad", {"status": "testing", "text": 1})
    (item,) = [i for i in await items(store) if i.key == "v"]
    await store.aput(shelf("o", "variants"), "a", item.value | {"owner": "p", "id": "a"})

    assert [each.variant for each in await given(store)] == ["v"]


async def test_what_a_person_withdraws_is_gone_from_every_prompt() -> None:
    """And stays on record."""
    store = await kept(a_variant(status="promoted"))
    done = await Variants(store, "o").withdraw("v", 7.0, "no use")
    found = await Variants(store, "o").get("v")

    assert done
    assert found is not None
    assert (found.status, found.why, found.decided_at) == ("withdrawn", "no use", 7.0)
    assert await given(store) == ()


async def test_they_are_listed_newest_first() -> None:
    """As people look for what is new."""
    old, new = a_variant("a", proposed_at=1.0), a_variant("b", proposed_at=2.0)
    store = await kept(old, new)

    assert await Variants(store, "o").all() == [new, old]
