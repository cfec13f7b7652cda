"""Learning from an ended task: its pitfalls are there afterwards, marked as the settings say."""

import json

from langgraph.store.memory import InMemoryStore
from tests.parts import settings
from tests.tools.evolution.ended_tasks import ROUNDING, a_setback, an_experience

from daruma.tools.evolution.learning import Learning, learn
from daruma.tools.evolution.pitfalls import Pitfalls
from daruma.tools.evolution.shelf import shelf

FAILED = an_experience(setbacks=(a_setback(),))


class Asked:
    """A model that words another advice each time."""

    times = 0

    async def __call__(self, prompt: str, text: str) -> str:
        assert "JSON" in prompt
        assert ROUNDING in text
        self.times += 1
        return json.dumps({"1": f"Advice {self.times}."})


async def test_a_failed_task_leaves_a_pitfall_and_its_experience() -> None:
    """EV-03: with the advice that a model worded, in both; done twice, it is asked once."""
    store, asked = InMemoryStore(), Asked()

    for _ in range(2):
        await learn(FAILED, Learning(store, settings(), asked))

    (found,) = await Pitfalls(store, "o").all()
    (kept,) = await store.asearch(shelf("o", "experiences"))
    assert (found.advice, found.tasks) == ("Advice 1.", 1)
    assert asked.times == 1
    assert kept.value["setbacks"][0]["advice"] == "Advice 1."


async def test_a_setting_that_was_taken_back_takes_all_marks_off() -> None:
    """EV-04: with the next task, whatever that one met."""
    store = InMemoryStore()
    other = Pitfalls(store, "p", shared=True)
    await learn(FAILED, Learning(store, settings(evolution={"shared": True})))
    assert await other.similar(ROUNDING, 1, min_confidence=0.5)

    await learn(an_experience(2), Learning(store, settings()))

    assert await other.similar(ROUNDING, 1, min_confidence=0.5) == []
    assert [each.shared for each in await Pitfalls(store, "o").all()] == [False]
