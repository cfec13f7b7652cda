"""Learning from an ended task goes through all its steps."""

from dataclasses import replace

from langgraph.store.memory import InMemoryStore
from tests.parts import settings
from tests.tools.evolution.ended_tasks import a_setback, an_experience
from tests.variant_parts import a_variant, an_ended, given_to

from daruma.tools.evolution.learning import DAY, Learning, learn
from daruma.tools.evolution.shelf import put_experience, shelf
from daruma.tools.evolution.variants import Variants

ADVICE = "Read the file before editing it."


async def test_what_enough_tasks_fell_into_is_proposed() -> None:
    """EV-03: and waits while learning only observes."""
    store = InMemoryStore()
    for number in (1, 2, 3):
        fell = an_experience(number, setbacks=(a_setback(advice=ADVICE),))
        await learn(fell, Learning(store, settings()))

    (found,) = await Variants(store, "o").all()
    assert (found.text, found.status) == (ADVICE, "proposed")


async def test_the_outcome_of_a_task_in_a_comparison_is_counted() -> None:
    """EV-03."""
    store = InMemoryStore()
    await Variants(store, "o").put(a_variant())
    await learn(an_ended("t/1", lessons=given_to("t/1", "variant")), Learning(store, settings()))

    assert len(await store.asearch(shelf("o", "outcomes", "v", "0"))) == 1


async def test_what_is_older_than_it_may_be_is_let_go() -> None:
    """`keep_days`."""
    store = InMemoryStore()
    await put_experience(an_experience(1), store)
    await learn(an_experience(2, at=200 * DAY), Learning(store, settings()))

    assert len(await store.asearch(shelf("o", "experiences"))) == 1


async def test_a_task_that_was_taken_up_again_would_not_have_been_told_of_itself() -> None:
    """EV-03: what it would have been given stays what it was at first."""
    store = InMemoryStore()
    fell = an_experience(1, setbacks=(a_setback(),))
    for each in (fell, replace(fell, at=2.0)):
        await learn(each, Learning(store, settings()))

    (kept,) = await store.asearch(shelf("o", "experiences"))
    assert (kept.value["at"], kept.value["would_have"]) == (2.0, None)
