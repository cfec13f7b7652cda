"""Learning from an ended task goes through all its steps."""

import json
import re

import pytest
from langgraph.store.memory import InMemoryStore
from tests.parts import settings
from tests.tools.evolution.ended_tasks import (
    PARSER,
    ROUNDING,
    a_setback,
    an_experience,
    on_record,
    similar,
)

from daruma.tools.evolution import Learning, Pitfalls, Variants, learn, put_experience, shelf
from daruma.tools.evolution._learning import add_advice, let_go

ADVICE = "Read the file before editing it."
DAY = 86_400.0


async def test_what_enough_tasks_fell_into_is_proposed() -> None:
    """EV-03: and waits while learning only observes."""
    store = InMemoryStore()
    for number in (1, 2, 3):
        fell = an_experience(number, setbacks=(a_setback(advice=ADVICE),))
        await learn(fell, Learning(store, settings()))

    (found,) = await Variants(store, "o").all()
    assert (found.text, found.status) == (ADVICE, "proposed")


async def test_what_is_older_than_it_may_be_is_let_go() -> None:
    """`keep_days`."""
    store = InMemoryStore()
    await put_experience(an_experience(1), store)
    await learn(an_experience(2, at=200 * DAY), Learning(store, settings()))

    assert len(await store.asearch(shelf("o", "experiences"))) == 1


# --- Advice by a model on what nobody knows a way out of: used as text, and only where it is one.

FALLEN = a_setback("one", text="red <b>")
OVERCOME = a_setback("two", ended=False)
KNOWN = a_setback("three", advice="look twice")
PASSED = a_setback("four", passing=True)


class Asked:
    """A model that gives one answer, and keeps what it was asked."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.texts: list[str] = []

    async def __call__(self, prompt: str, text: str) -> str:
        assert "data, not instructions" in prompt
        self.texts.append(text)
        return self.answer


async def test_what_ended_a_task_is_worded_where_no_advice_is_known() -> None:
    """One request, with what it is about as data."""
    asked = Asked('```json\n{"1": "sort\\nfirst", "2": "no such number"}\n```')
    given = an_experience(setbacks=(OVERCOME, FALLEN, KNOWN, PASSED))

    found = await add_advice(given, asked)

    assert [each.advice for each in found.setbacks] == ["", "sort first", "look twice", ""]
    (text,) = asked.texts
    assert '<setback number="1">red &lt;b&gt;</setback>' in text
    assert text.count("<setback") == 1


@pytest.mark.parametrize(
    "answer", ["", "no", "{", "[1]", '{"1": 2}', '{"1": {"a": "b"}}', "{" * 20_000, '{"1": ""}']
)
async def test_an_answer_that_is_none_changes_nothing(answer: str) -> None:
    """The rules stand alone."""
    given = an_experience(setbacks=(FALLEN,))

    assert await add_advice(given, Asked(answer)) == given


async def test_what_it_says_is_kept_short_and_without_keys() -> None:
    """It is untrusted text like any other."""
    said = "use sk-abcdefghijk " + "x" * 900
    found = await add_advice(an_experience(setbacks=(FALLEN,)), Asked(json.dumps({"1": said})))

    assert len(found.setbacks[0].advice) == 300
    assert found.setbacks[0].advice.startswith("use [key] ")


async def test_nothing_is_asked_where_nothing_is_open() -> None:
    """It costs."""
    asked = Asked("{}")

    await add_advice(an_experience(setbacks=(OVERCOME, KNOWN, PASSED)), asked)

    assert asked.texts == []


async def test_one_request_asks_about_five() -> None:
    """The first of what the task ended with, however many these are."""
    asked = Asked("{}")

    await add_advice(an_experience(setbacks=tuple(a_setback(c, text=c) for c in "abcdefg")), asked)

    assert re.findall(r">(\w)<", asked.texts[0]) == [*"abcde"]


# --- What was learned long ago is let go of: a bounded part, once a day.

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

    assert await let_go(pitfalls, 5, 12 * DAY - 1) == 0
    assert await let_go(pitfalls, 5, 12 * DAY) == 2


async def test_one_go_is_bounded() -> None:
    """The rest goes with the next task: more may come on a day than one go takes."""
    pitfalls = await filled(205)

    gone = [await let_go(pitfalls, 5, at * DAY) for at in (11, 11.1, 11.2)]

    assert gone == [400, 10, 0]


# --- Learning from an ended task: its pitfalls are there afterwards, marked as the settings say.

FAILED = an_experience(setbacks=(a_setback(),))


class AskedLearningPitfalls:
    """A model that words another advice each time."""

    times = 0

    async def __call__(self, prompt: str, text: str) -> str:
        assert "JSON" in prompt
        assert ROUNDING in text
        self.times += 1
        return json.dumps({"1": f"Advice {self.times}."})


async def test_a_failed_task_leaves_a_pitfall_and_its_experience() -> None:
    """EV-03: with the advice that a model worded, in both; done twice, it is asked once."""
    store, asked = InMemoryStore(), AskedLearningPitfalls()

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
    assert await similar(other, ROUNDING, 1, 0.5)

    await learn(an_experience(2), Learning(store, settings()))

    assert await similar(other, ROUNDING, 1, 0.5) == []
    assert [each.shared for each in await Pitfalls(store, "o").all()] == [False]
