"""Chapter 5: what a failed task says (EM)."""

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from tests.spec.face import RecordingModel, Run, action, call, calls, say

from daruma import build_graph

UNAIDED: dict[str, Any] = {"fallback_chain": {"recovery": {"enabled": False}}}


class Failing(RecordingModel):
    """Raises what it was given, whatever it is asked."""

    _error: BaseException = ValueError()

    def raising(self, error: BaseException) -> "Failing":
        self._error = error
        return self

    def answer(self, *_: Any, **__: Any) -> AIMessage:
        raise self._error


def failed_of(error: BaseException, **chain: Any) -> Any:
    """The result of a task whose model raises."""
    given = {"recovery": {"enabled": False}} | chain
    model = Failing(script=[]).raising(error)
    graph: Any = build_graph(model, settings={"fallback_chain": given})
    return graph.invoke({"messages": [HumanMessage("Do it")]})["result"]


class ProviderTimeout(Exception):
    """A provider's own class."""


def test_a_failed_task_says_what_and_what_to_do() -> None:
    """EM-01: five fields, and a text with numbered suggestions."""
    result = Run([{"raise": "the provider is down"}], **UNAIDED).ask().result
    error = result.error_struct

    assert error is not None
    fields = {"error_code", "message", "suggestions", "retryable", "original_error"}
    assert fields <= error.to_dict().keys()
    assert "the provider is down" in error.message
    text = error.to_error_message()
    assert text.startswith(error.message)
    for number, suggestion in enumerate(error.suggestions, 1):
        assert f"{number}. {suggestion}" in text
    assert result.error_message == text


@pytest.mark.parametrize(
    ("error", "code", "retryable"),
    [
        (TimeoutError(), "timeout", True),
        (ProviderTimeout("slow"), "timeout", True),
        (ConnectionError("gone"), "llm_failure", True),
    ],
)
def test_failures_are_classified_by_their_exception(
    error: Exception, code: str, retryable: bool
) -> None:
    """EM-02: without asking any model."""
    struct = failed_of(error).error_struct

    assert (struct.error_code, struct.retryable) == (code, retryable)


def test_a_loop_and_a_short_script_have_codes_of_their_own() -> None:
    """EM-02: a loop may be tried again; a script that ends too early is the user's to mend."""

    def look(text: str) -> str:
        """Look."""
        return text

    loop = Run([calls(call("look", text="x"))] * 9, with_tools=[look], **UNAIDED).ask().result
    short = Run([], **UNAIDED).ask().result

    assert loop.error_struct is not None
    assert (loop.error_struct.error_code, loop.error_struct.retryable) == ("loop_detected", True)
    assert short.error_struct is not None
    told = short.error_struct.error_code, short.error_struct.retryable
    assert told == ("script_mismatch", False)


async def test_cancellation_is_no_failure() -> None:
    """EM-02: it propagates, and the thread can go on."""
    begun = asyncio.Event()

    async def hang(text: str) -> str:
        """Hang."""
        if begun.is_set():
            return text
        begun.set()
        await asyncio.Event().wait()
        return text

    look: dict[str, Any] = {"policy": {"hang": "allow"}, "in_doubt": "tell"}
    run = Run([calls(call("hang", "c1", text="x")), say()], with_tools=[hang], tools=look)
    running = asyncio.ensure_future(
        run.graph.ainvoke({"messages": [HumanMessage("Do it")]}, run.config)
    )
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert run.snapshot.values.get("result") is None
    assert run.snapshot.next
    out = await run.graph.ainvoke(None, run.config)
    assert out["result"].completed


def test_what_is_said_can_be_changed_and_is_there_in_chinese() -> None:
    """EM-03: suggestions and whether to try again, by code; the technical message stays."""
    rules = {"llm_failure": {"suggestions": ["Ask Ann."], "retryable": False}}
    changed = failed_of(ConnectionError("gone"), emergency={"rules": rules}).error_struct
    chinese = failed_of(ConnectionError("gone"), emergency={"language": "zh"}).error_struct
    other = failed_of(TimeoutError(), emergency={"rules": rules}).error_struct

    assert (list(changed.suggestions), changed.retryable) == (["Ask Ann."], False)
    assert any("\u4e00" <= each <= "\u9fff" for each in chinese.suggestions[0])
    assert "gone" in chinese.message
    assert other.retryable
    assert "Ask Ann." not in other.suggestions


def test_the_code_is_that_of_the_first_failure() -> None:
    """EM-04: not of what failed while it was dealt with."""
    look = [calls(call("look", text="x"))] * 3

    def look_(text: str) -> str:
        """Look."""
        return text

    look_.__name__ = "look"
    script = {"main": [*look, {"raise": "down"}]}
    script["recovery"] = [action("parameter-adjustment"), action("give-up")]
    settings: dict[str, Any] = {"fallback_chain": {"recovery": {"wait_seconds": 0}}}
    run = Run(script, with_tools=[look_], **settings).ask()

    assert len(run.happened("recovery_started")) >= 1
    assert run.result.error_struct is not None
    assert run.result.error_struct.error_code == "loop_detected"


def test_the_tiers_can_be_switched_off() -> None:
    """EM-05: recovery, emergency, or all of it: then what was raised is raised."""
    error = ConnectionError("gone")
    unaided = failed_of(error)
    helped = Run({"main": [{"raise": "down"}] * 2, "recovery": [action("give-up")]}).ask()

    assert unaided.status == "failed"
    assert helped.model.asked("recovery") != []
    for chain in ({"emergency": {"enabled": False}}, {"enabled": False}):
        with pytest.raises(ConnectionError) as raised:
            failed_of(error, **chain)
        assert raised.value is error
    whole = Run([{"raise": "down"}], fallback_chain={"enabled": False})
    with pytest.raises(Exception, match="down"):
        whole.ask()
    assert whole.model.asked("recovery") == []
