"""A message is known as an answer, or as something else, by its form.

``pytest -k table_of_next_messages -s tests/tools/continuity`` prints the published table.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts import Says, a_clarification, a_context, a_state
from tests.tools.continuity.next_messages import (
    CHOICE,
    COUNT,
    DATE,
    HARDER,
    HELD_OUT,
    KNOWN,
    OTHER_LANGUAGES,
    OTHER_MATTERS,
    TITLE,
    Next,
)

from daruma.state.conversation import Clarification
from daruma.state.failure import ModelFailed
from daruma.tools.context import EXACT
from daruma.tools.continuity._continuation import (
    MOST_SHOWN,
    answers_by_form,
    besides_time,
    expects,
    judge_answer,
    says_yes,
)
from daruma.tools.dates import plain

NOW = datetime(2026, 11, 22, 15, 0, tzinfo=UTC)
SETS = {"known": KNOWN, "held out": HELD_OUT, "hard": HARDER}


def judged_continuation(messages: Sequence[Next]) -> dict[str, list[str]]:
    """The messages by what the rule makes of them."""
    found: dict[str, list[str]] = {"right": [], "unsure": [], "wrong": []}
    for each in messages:
        verdict = answers_by_form(each.message, each.after, NOW)
        how = "unsure" if verdict == "unsure" else "right" if verdict == each.wanted else "wrong"
        found[how].append(each.message)
    return found


def test_the_table_of_next_messages() -> None:
    """What docs/measured.md publishes: how often the rule is right, leaves it open, or is wrong."""
    found = {name: judged_continuation(messages) for name, messages in SETS.items()}
    counts = {
        name: tuple(len(each[how]) for how in ("right", "unsure", "wrong"))
        for name, each in found.items()
    }
    print("\n| messages | right | left to the model | wrong |\n|---|---|---|---|")  # noqa: T201
    for name, (right, unsure, wrong) in counts.items():
        print(f"| {name} ({right + unsure + wrong}) | {right} | {unsure} | {wrong} |")  # noqa: T201
    print("wrong:", found["hard"]["wrong"])  # noqa: T201

    assert counts == {"known": (42, 0, 0), "held out": (30, 4, 0), "hard": (12, 20, 3)}


@pytest.mark.parametrize("each", KNOWN, ids=lambda each: each.message)
def test_what_is_known_is_known(each: Next) -> None:
    """CO-02: also in German and in Chinese."""
    assert answers_by_form(each.message, each.after, NOW) == each.wanted


@pytest.mark.parametrize("message", ["", "  ", "\u200b", "tomorrow " * 100])
def test_what_says_nothing_and_what_says_much_is_left_open(message: str) -> None:
    """The one is no answer, the other more than one."""
    assert answers_by_form(message, DATE, NOW) == "unsure"


@pytest.mark.parametrize("message", ["what do you mean?", "send the report on Friday"])
def test_what_may_be_both_is_left_open(message: str) -> None:
    """A question about the question; a request with a date in it."""
    assert answers_by_form(message, DATE, NOW) == "unsure"


@pytest.mark.parametrize("message", OTHER_MATTERS)
def test_a_day_in_a_message_is_not_enough(message: str) -> None:
    """CO-02: one that says more than when may be a new request, or a no: the form does not tell."""
    assert answers_by_form(message, DATE, NOW) != "resume"


def test_other_languages_are_left_to_the_model() -> None:
    """CO-02: whatever is said in French, Spanish or Japanese."""
    assert {answers_by_form(message, DATE, NOW) for message in OTHER_LANGUAGES} == {"unsure"}


@pytest.mark.parametrize(
    ("text", "besides"),
    [
        ("around 4 pm tomorrow", []),
        ("tomorrow works for me", []),
        ("Am besten Freitag gegen 17 Uhr", ["besten"]),
        ("mail Bob tomorrow", ["mail", "bob"]),
        ("not tomorrow", ["not"]),
        ("five apples", None),
        ("", None),
    ],
)
def test_words_that_say_nothing_of_time_are_left(text: str, besides: list[str] | None) -> None:
    """Those that say nothing by themselves are not; a word that negates is."""
    assert besides_time(plain(text), NOW) == besides


def test_what_the_question_was_about_may_be_named_with_the_day() -> None:
    """It is no other matter."""
    assert answers_by_form("tomorrow for the milk", DATE, NOW) == "resume"


@given(st.text(max_size=500), st.sampled_from([DATE, TITLE, COUNT, replace(DATE, question="")]))
def test_any_message_has_a_verdict(message: str, after: Clarification) -> None:
    """Nothing is raised, whatever is said."""
    assert answers_by_form(message, after, NOW) in ("resume", "stale", "unsure")


@pytest.mark.parametrize(
    ("field", "kind"),
    [
        ("reminder_date", "date"),
        ("due_time", "date"),
        ("start-time", "date"),
        ("sometimes", "text"),
        ("seat_count", "number"),
        ("title", "text"),
    ],
)
def test_a_field_holds_what_its_name_says(field: str, kind: str) -> None:
    """By whole words of it."""
    assert expects(field) == kind


FOLDER = Clarification(target_action="tidy", question="Which one?", missing_fields=("folder",))


@pytest.mark.parametrize(
    ("message", "verdict"), [("/srv/data", "resume"), ("/help", "stale"), ("/help me", "stale")]
)
def test_a_path_is_an_answer_and_a_command_is_none(message: str, verdict: str) -> None:
    """Both begin with a slash; a path goes on with one."""
    assert answers_by_form(message, FOLDER, NOW) == verdict


def test_a_long_answer_may_speak_of_calling_something_off() -> None:
    """Only a short message that does so is the end of it."""
    assert answers_by_form("the plumber has to cancel his visit on Friday", TITLE, NOW) == "unsure"
    assert answers_by_form("cancel it", TITLE, NOW) == "stale"


@pytest.mark.parametrize(
    ("message", "after", "verdict"),
    [
        ("book 3 flights", COUNT, "stale"),
        ("3 flights", COUNT, "resume"),
        ("hello, it is about the milk", TITLE, "resume"),
        ("hello there", TITLE, "stale"),
        ("which calendar should it be", CHOICE, "stale"),
        ("work", CHOICE, "resume"),
    ],
)
def test_what_looks_like_an_answer_at_its_edge(
    message: str, after: Clarification, verdict: str
) -> None:
    """A request with a number in it, a greeting before an answer, the whole question again."""
    assert answers_by_form(message, after, NOW) == verdict


# --- Only a clear yes of the model goes on with a clarification.


@pytest.mark.parametrize(
    ("text", "yes"),
    [
        ('{"answers": true}', True),
        ('```json\n{"answers": true}\n```', True),
        ('{"answers": false}', False),
        ('{"answers": 1}', False),
        ('{"answers": "true"}', False),
        ('Yes: {"answers": true}', False),
        ("[true]", False),
        ("true", False),
        ("", False),
        ("[" * 100_000, False),
    ],
)
def test_a_yes_is_the_one_object_that_says_so(text: str, yes: bool) -> None:
    """Anything else, and less, is none."""
    assert says_yes(text) is yes


async def test_the_auxiliary_model_is_asked_once_and_exactly() -> None:
    """The message stands in the request as data, cut; the step is that of the new task."""
    ask = Says('{"answers": true}')
    found = await judge_answer("hm " * 5000, DATE, a_state(), a_context(ask=ask), "t/2")

    (step,) = found.steps
    assert found.resumes
    assert ask.sampled == [EXACT]
    assert len(ask.requests[0][1].text) < MOST_SHOWN + 200
    assert (step.kind, step.task_id, step.ok) == ("intake", "t/2", True)
    assert step.usage is not None
    assert step.usage.role == "auxiliary"


async def test_a_model_that_does_not_answer_says_nothing() -> None:
    """What starts anew only asks again."""
    context = a_context(ModelFailed("the provider is down"))
    found = await judge_answer("hm, let me see", DATE, a_state(), context, "t/2")

    assert not found.resumes
    assert [step.ok for step in found.steps] == [False]


async def test_what_the_rule_knows_is_asked_of_nobody() -> None:
    """It costs nothing."""
    ask = Says("unused")
    found = await judge_answer("tomorrow", DATE, a_state(), a_context(ask=ask), "t/2")
    other = await judge_answer("@chat hi", a_clarification(), a_state(), a_context(ask=ask), "t/2")

    assert (found.resumes, other.resumes) == (True, False)
    assert (ask.requests, found.steps) == ([], [])
