"""What a model is told when it is asked for an action: the six parts of RE-04, bounded."""

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool
from tests.parts import a_context, a_recovery, a_state, a_task, taken
from tests.scripted_runs import shout

from daruma.state.channels import State
from daruma.state.failure import Failure
from daruma.tools.calls.visible import offer_of
from daruma.tools.recovery.proposal import briefing
from daruma.tools.window.tokens import ESTIMATE

LOOP = Failure(code="llm_failure", node="main", message="it broke", tool="shout")
PARTS = ("Goal", "Progress", "Latest step", "Known facts", "Blockers", "Analysis", "Tools")


def told(state: State, stand_ins: tuple[str, ...] = ()) -> str:
    offer = offer_of(state.task, a_context(tools=[shout]))
    return briefing(state, LOOP, offer, stand_ins)


def test_it_has_all_its_parts_in_order() -> None:
    """RE-04."""
    text = told(a_state())

    places = [text.index(f"{part}:") for part in PARTS]
    assert places == sorted(places)


def test_it_tells_what_was_done_and_found() -> None:
    """The latest step with what it came to, and results as facts."""
    call = {"name": "shout", "args": {"text": "x"}, "id": "c1"}
    messages = [
        HumanMessage("Do it"),
        AIMessage("I will.", tool_calls=[call]),
        ToolMessage("XX", tool_call_id="c1", name="shout"),
    ]
    steps = taken("recover", recovery=a_recovery("retry"))
    text = told(a_state(messages=messages, steps=steps, task=a_task(goal="Make noise")))

    expected = ("Make noise", "called shout({'text': 'x'})", "shout gave: XX", "shout: XX")
    assert [part for part in expected if part not in text] == []
    assert "it broke" in text
    assert "tried before: retry (llm_failure)" in text
    assert "Say it loudly." in text


def test_stand_ins_are_named() -> None:
    """RE-08a: candidates for another tool."""
    assert "could stand in for shout: whisper, cry" in told(a_state(), ("whisper", "cry"))


def test_failed_results_are_no_facts() -> None:
    """They are blockers."""
    failed = ToolMessage("no such file", tool_call_id="c1", name="shout", status="error")
    text = told(a_state(messages=[HumanMessage("Do it"), failed]))

    assert "no such file" not in text[text.index("Known facts:") : text.index("Blockers:")]


def test_a_long_history_makes_no_long_request() -> None:
    """A failure may be that the request was too long."""
    results = [
        ToolMessage("x" * 30_000, tool_call_id=f"c{n}", name="shout", id=str(n)) for n in range(50)
    ]
    task = a_task(goal="z" * 100_000)
    text = told(a_state(messages=[HumanMessage("y" * 100_000), *results], task=task))

    assert len(text) < 6_000


def test_the_errors_of_the_last_calls_are_blockers() -> None:
    """RE-04: beside the failure itself, which may say nothing of them."""
    call = {"name": "shout", "args": {"text": "x"}, "id": "c1"}
    answer = AIMessage("", tool_calls=[call], id="t/1:answer:0")
    failed = ToolMessage(
        "no such file", tool_call_id="c1", name="shout", id="t/1:answer:0:c1", status="error"
    )
    text = told(a_state(messages=[HumanMessage("Do it"), answer, failed]))

    blockers = text[text.index("Blockers:") : text.index("Analysis:")]
    assert "it broke" in blockers
    assert "no such file" in blockers


def test_however_many_tools_there_are_it_stays_small() -> None:
    """The request fits a context of 8,000 tokens."""

    def numbered(number: int) -> StructuredTool:
        return StructuredTool.from_function(shout, name=f"shout_{number}", description="word " * 99)

    offer = offer_of(a_task(), a_context(tools=[numbered(n) for n in range(200)]))

    text = briefing(a_state(task=a_task(goal="word " * 9000)), LOOP, offer)

    assert ESTIMATE.of(text) < 6000
    assert [part for part in PARTS if f"{part}:" not in text] == []
