"""Advice by a model on what nobody knows a way out of: used as text, and only where it is one."""

import json

import pytest
from tests.tools.evolution.ended_tasks import a_setback, an_experience

from daruma.tools.evolution.learning import advised

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

    found = await advised(given, asked)

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

    assert await advised(given, Asked(answer)) == given


async def test_what_it_says_is_kept_short_and_without_keys() -> None:
    """It is untrusted text like any other."""
    said = "use sk-abcdefghijk " + "x" * 900
    found = await advised(an_experience(setbacks=(FALLEN,)), Asked(json.dumps({"1": said})))

    assert len(found.setbacks[0].advice) == 300
    assert found.setbacks[0].advice.startswith("use [key] ")


async def test_nothing_is_asked_where_nothing_is_open() -> None:
    """It costs."""
    asked = Asked("{}")

    await advised(an_experience(setbacks=(OVERCOME, KNOWN, PASSED)), asked)

    assert asked.texts == []
