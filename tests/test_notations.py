"""Calls in the notations of open models, right, broken and cut, and honest answers (TL-18)."""

import pytest
from tests.notations import (
    NOTATIONS,
    QUOTES,
    SHOWN,
    TAGGED,
    as_json,
    honest,
    runs,
    tasks_of,
    wrong,
)
from tests.tools.repair.corpus.calls import CALLS

PLAIN = [CALLS[n] for n in (7, 14, 24, 9)]


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("quoting", QUOTES)
@pytest.mark.parametrize("notation", NOTATIONS)
def test_calls_in_every_notation_run_as_they_were_meant(
    notation: str, quoting: str, count: int
) -> None:
    """All of them, in their order."""
    meant = PLAIN[:count]

    tasks = tasks_of(NOTATIONS[notation](meant, QUOTES[quoting]))

    assert [task.status for task in tasks] == ["ready"] * count
    assert [as_json((task.name, task.args)) for task in tasks] == [*map(as_json, meant)]


@pytest.mark.parametrize("first", [0, 200])
def test_no_call_is_wrong_or_lost_or_taken_for_an_answer(first: int) -> None:
    """``python -m tests.notations`` tries 20,000 of them."""
    assert wrong(range(first, first + 200))[0] == []


def test_honest_answers_that_quote_calls_stay_answers() -> None:
    """200 of them: none is run, and none is taken for a broken call."""
    answers = [honest(number) for number in range(5 * len(SHOWN))]

    assert len(set(answers)) >= 200
    assert [text for text in answers if tasks_of(text)] == []


def test_every_notation_is_in_the_seeds() -> None:
    """A table that shrinks proves less than its figures say."""
    assert len(NOTATIONS) >= 28
    assert NOTATIONS.keys() > TAGGED


CALL = '{"name": "send_message", "arguments": ARGS}'
ARGS = as_json({"to": ["ann"], "subject": "a", "body": "b", "urgent": True, "headers": {"c": "d"}})
VIEW = '{"name": "str_replace_editor", "arguments": {"command": "view", "path": "a"}}'


@pytest.mark.parametrize(
    ("text", "made"),
    [
        (CALL.replace("ARGS", ARGS)[:-1], True),
        (CALL.replace("ARGS", ARGS.replace('{"c": "d"}', "{}"))[:-2], True),
        (
            CALL.replace("ARGS", '{"to": [], "headers": {"subject": "a", "body": "b"}}')[:-1],
            False,
        ),
        (CALL.replace("ARGS", '{"to": ["ann"], "subject": "a", "body": "b"}')[:-1], True),
        (CALL.replace("ARGS", '{"to": ["ann"], "subject": "a", "body": "b"}')[:-2], False),
        (CALL.replace("ARGS", '{"to": ["ann"]}')[:-3], False),
        (f"[{CALL.replace('ARGS', ARGS)}", False),
        (f"<tool_call>{CALL.replace('ARGS', ARGS)[:-2]}</tool_call>", True),
        (f"<tool_call>{VIEW[:-1]}\n</tool_call>", True),
    ],
)
def test_only_brackets_of_objects_are_added(text: str, made: bool) -> None:
    """Where all arguments are there, and never where the model was cut off."""
    assert [runs(task) for task in tasks_of(text)] == [made]
    assert [runs(task) for task in tasks_of(text, "length")] == [False]
