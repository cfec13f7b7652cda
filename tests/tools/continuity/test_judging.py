"""Only a clear yes of the model goes on with a clarification."""

import pytest
from tests.parts import Says, a_clarification, a_context, a_state
from tests.tools.continuity.next_messages import DATE

from daruma.state.failure import ModelFailed
from daruma.tools.context import EXACT
from daruma.tools.continuity.continuation import MOST_SHOWN, judged, says_yes


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
    found = await judged("hm " * 5000, DATE, a_state(), a_context(ask=ask), "t/2")

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
    found = await judged("hm, let me see", DATE, a_state(), context, "t/2")

    assert not found.resumes
    assert [step.ok for step in found.steps] == [False]


async def test_what_the_rule_knows_is_asked_of_nobody() -> None:
    """It costs nothing."""
    ask = Says("unused")
    found = await judged("tomorrow", DATE, a_state(), a_context(ask=ask), "t/2")
    other = await judged("@chat hi", a_clarification(), a_state(), a_context(ask=ask), "t/2")

    assert (found.resumes, other.resumes) == (True, False)
    assert (ask.requests, found.steps) == ([], [])
