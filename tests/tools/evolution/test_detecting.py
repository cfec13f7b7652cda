"""What a task says of pitfalls: those it met, and those it did not meet."""

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import Op, PutOp, Result
from langgraph.store.memory import InMemoryStore
from tests.tools.evolution.ended_tasks import (
    PARSER,
    ROUNDING,
    a_setback,
    an_experience,
    on_record,
    told_of,
)
from typing_extensions import override

from daruma.state.lessons import Experience, Pitfall
from daruma.tools.evolution.evidence import Evidence, group_of, summed_up
from daruma.tools.evolution.pitfalls import Pitfalls, detect
from daruma.tools.evolution.shelf import shelf

LEAST = 0.5
MET = (a_setback(),)


def done(number: int, goal: str = ROUNDING, *told: str) -> Experience:
    """A task that was completed, and told of those pitfalls."""
    lessons = told_of(*told, task=f"t{number}/1")
    return an_experience(number, goal=goal, status="completed", lessons=lessons)


async def after(*experiences: Experience) -> list[Pitfall]:
    """What is kept after tasks."""
    pitfalls = Pitfalls(InMemoryStore(), "o")
    for experience in experiences:
        await detect(experience, pitfalls, LEAST)
    return await pitfalls.all()


async def test_what_a_task_met_becomes_a_pitfall() -> None:
    """EV-03: each setback, for its actor; what is passing makes none."""
    outage = a_setback("main:llm_failure:APIError", passing=True)
    (found,) = await after(an_experience(setbacks=(*MET, outage)))

    assert (found.signature, found.tasks, found.level) == (MET[0].signature, 1, "high")


class Forgetful(InMemoryStore):
    """A store where a person forgets what is said of one group as soon as it is said."""

    @override
    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        lost = shelf("o", "evidence", group_of("o", "main", "lost"))
        return await super().abatch(
            [
                each._replace(value=None)
                if isinstance(each, PutOp) and each.namespace == lost
                else each
                for each in ops
            ]
        )


async def test_what_is_forgotten_meanwhile_does_not_end_what_else_is_learned() -> None:
    """The task's other setbacks are put down all the same."""
    pitfalls = Pitfalls(Forgetful(), "o")
    met = (a_setback("lost"), a_setback("kept"))

    await detect(an_experience(setbacks=met), pitfalls, LEAST)

    assert [each.signature for each in await pitfalls.all()] == ["kept"]


async def test_a_task_alike_that_went_well_speaks_against_it() -> None:
    """Untold, it is clear: one of two is not sure enough."""
    (found,) = await after(an_experience(1, setbacks=MET), done(2))

    assert (found.clear, found.avoided, found.level) == (1, 0, "low")
    assert found.confidence == pytest.approx(1.5 / 3.5)


async def test_a_task_that_was_told_and_went_well_does_not() -> None:
    """It avoided it: telling helps, and goes on."""
    (first,) = await after(an_experience(1, setbacks=MET))
    (found,) = await after(an_experience(1, setbacks=MET), done(2, ROUNDING, first.id))

    assert (found.clear, found.avoided, found.level) == (0, 1, "high")
    assert found.confidence == first.confidence


async def test_a_task_that_was_told_of_another_says_nothing_of_it() -> None:
    """It did not go well by itself: it was helped."""
    (found,) = await after(an_experience(1, setbacks=MET), done(2, ROUNDING, "another-1"))

    assert (found.clear, found.avoided, found.level) == (0, 0, "high")


async def test_a_pitfall_that_leads_astray_is_told_no_more() -> None:
    """EV-03: the same task was told of it, and fell to something else."""
    (first,) = await after(an_experience(1, setbacks=MET))
    astray = a_setback("check:lint")
    again = an_experience(2, setbacks=(astray,), lessons=told_of(first.id))
    found = {each.signature: each for each in await after(an_experience(1, setbacks=MET), again)}

    assert (found[first.signature].in_vain, found[first.signature].level) == (1, "low")
    assert found["check:lint"].level == "high"


async def test_what_one_task_fell_to_stays_grave_though_the_next_overcame_it() -> None:
    """And the newest advice is the one that is told."""
    first = a_setback(advice="look once")
    second = a_setback(ended=False, advice="look twice")
    (found,) = await after(
        an_experience(1, setbacks=(first,)), an_experience(2, setbacks=(second,))
    )

    assert (found.level, found.advice) == ("high", "look twice")


async def test_what_a_task_met_belongs_to_its_own_goal_whatever_it_was_told_of() -> None:
    """What it met is of its kind of task; what it was told of was of another."""
    firsts = (an_experience(1, setbacks=MET), an_experience(2, PARSER, setbacks=MET))
    (other,) = [each.id for each in await after(*firsts) if each.goals == (PARSER,)]
    again = an_experience(3, setbacks=MET, lessons=told_of(other))
    found = await after(*firsts, again)

    assert {each.goals: (each.tasks, each.repeated) for each in found} == {
        (ROUNDING,): (2, 1),
        (PARSER,): (1, 0),
    }


async def test_only_what_lies_in_a_groups_own_namespace_speaks_of_it() -> None:
    """A store may take a namespace for the beginning of others."""
    pitfalls = Pitfalls(InMemoryStore(), "o")
    await detect(an_experience(1, setbacks=MET), pitfalls, LEAST)
    place = shelf("o", "evidence", group_of("o", MET[0].actor, MET[0].signature))
    (item,) = await pitfalls.store.asearch(place)
    await pitfalls.store.aput((*place, "beneath"), "x", item.value | {"task": "x/1"})
    await detect(an_experience(2, setbacks=MET), pitfalls, LEAST)

    assert [each.tasks for each in await pitfalls.all()] == [2]


async def test_a_task_that_was_broken_off_says_nothing_of_what_it_did_not_meet() -> None:
    """It may have been on its way to it."""
    (first,) = await after(an_experience(1, setbacks=MET))
    broken = an_experience(2, status="cancelled", lessons=told_of(first.id))

    assert await after(an_experience(1, setbacks=MET), broken) == [first]


async def test_of_several_of_one_group_the_one_that_was_told_is_meant() -> None:
    """One task says one thing of a group."""
    firsts = (an_experience(1, setbacks=MET), an_experience(2, PARSER, setbacks=MET))
    for told in await after(*firsts):
        found = await after(*firsts, done(3, ROUNDING, told.id))

        assert {each.id: each.avoided for each in found if each.avoided} == {told.id: 1}


async def test_a_task_alike_that_fell_to_something_else_says_nothing_of_it() -> None:
    """In a series each may have a trap of its own."""
    seventh = an_experience(1, goal="Fix module number 7", setbacks=MET)
    (first,) = await after(seventh)
    eighth = an_experience(2, "Fix module number 8", setbacks=(a_setback("x"),))
    found = await after(seventh, replace(eighth, lessons=told_of(first.id)))

    assert {each.in_vain for each in found} == {0}


async def test_a_task_of_the_same_kind_says_nothing_of_it() -> None:
    """What goes well in the eighth module may still fail in the seventh."""
    seventh = an_experience(1, goal="Fix module number 7", setbacks=MET)
    (found,) = await after(seventh, done(2, "Fix module number 8"))

    assert (found.clear, found.level) == (0, "high")


async def test_a_task_that_was_told_and_met_it_counts_as_both() -> None:
    """It was seen in two tasks, once though told."""
    (first,) = await after(an_experience(1, setbacks=MET))
    again = an_experience(2, setbacks=MET, lessons=told_of(first.id))
    (found,) = await after(an_experience(1, setbacks=MET), again)

    assert (found.tasks, found.repeated, found.avoided) == (2, 1, 0)


@pytest.mark.parametrize(
    "other",
    [
        done(2, PARSER),
        replace(done(2), status="failed"),
        replace(done(2), setbacks=MET),
        done(0),
    ],
    ids=["another goal", "failed", "met it too", "before it"],
)
async def test_others_say_nothing_against_it(other: Experience) -> None:
    """Only a task alike that went well without it, and later, does."""
    found = await after(an_experience(1, setbacks=MET), other)

    assert all(each.clear == each.avoided == 0 for each in found)


async def test_a_job_that_is_done_twice_changes_nothing() -> None:
    """EV-03: by the id of the task."""
    tasks = (an_experience(1, setbacks=MET), done(2), an_experience(3, setbacks=MET))

    assert await after(*tasks, *tasks) == await after(*tasks)


async def test_what_was_met_stays_met_though_the_task_went_well_later() -> None:
    """A task that was taken up again is one task."""
    failed = an_experience(1, setbacks=MET)
    (found,) = await after(failed, an_experience(2, setbacks=MET), done(3), replace(done(1), at=9))

    assert (found.tasks, found.clear) == (2, 1)


async def test_anothers_pitfall_is_never_written_to() -> None:
    """EV-04: though a task was told of it, as both share."""
    store = InMemoryStore()
    theirs = Pitfalls(store, "p", shared=True)
    made = await on_record(theirs, a_setback(), an_experience(1, owner="p"), LEAST)
    told = replace(done(2, ROUNDING, made.id), at=5)

    await detect(told, Pitfalls(store, "o", shared=True), LEAST)
    assert await store.asearch(shelf("o", "evidence")) == []
    await detect(replace(told, setbacks=MET), Pitfalls(store, "o", shared=True), LEAST)

    assert await theirs.all() == [made]
    (own,) = await Pitfalls(store, "o").all()
    assert (own.owner, own.tasks, own.repeated) == ("o", 1, 0)


FACTS = st.lists(
    st.tuples(
        st.sampled_from(["failed", "clear", "avoided", "repeated"]),
        st.sampled_from([ROUNDING, PARSER, "Fix how invoices are rounded in bill/split.py", ""]),
        st.integers(0, 5),
    ),
    max_size=12,
)


@given(FACTS, st.randoms())
def test_pitfalls_are_made_of_the_facts_alone(
    facts: list[tuple[str, str, int]], draw: object
) -> None:
    """In any order; each task that met something belongs to one pitfall."""
    made = [
        Evidence(
            task=f"t{n}",
            how=how,  # type: ignore[arg-type]
            at=float(at),
            owner="o",
            actor="main",
            signature="s",
            goal=goal,
            kind="check",
        )
        for n, (how, goal, at) in enumerate(facts)
    ]
    shuffled = list(made)
    draw.shuffle(shuffled)  # type: ignore[attr-defined]

    found = summed_up(made, LEAST)

    assert found == summed_up(shuffled, LEAST)
    assert sum(each.pitfall.tasks for each in found) == sum(each.seen for each in made)
    assert all(0 <= each.pitfall.confidence <= 1 for each in found)
    assert len({each.pitfall.id for each in found}) == len(found)
