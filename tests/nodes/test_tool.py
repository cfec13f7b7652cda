"""One call is run and answered, whatever becomes of it."""

import asyncio
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langgraph.errors import GraphInterrupt
from tests.parts import a_call, a_context, a_state, a_task, no_sandbox, settings
from tests.sandboxes import sandbox_at

from daruma.graph.storage._ledgers import Place, ProcessLedger
from daruma.nodes.tool import tool
from daruma.state.calls import Dispatch
from daruma.state.channels import Update
from daruma.state.errors import CutOff, HoldLost, StorageUnavailable
from daruma.state.events import Event
from daruma.state.messages import short_values
from daruma.state.outcome import result_of
from daruma.tools.sandbox import Sandbox
from daruma.tools.threads import MOST_TOOL_THREADS, in_tool_thread


def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


def fall() -> str:
    """Fall over."""
    raise KeyError("absent")


def ask() -> str:
    """Ask a person."""
    raise GraphInterrupt


async def run(
    name: str, *, workspace: str | None = None, events: list[Event] | None = None, **args: Any
) -> Update:
    call = a_call("c1", name=name, args=args)
    context = a_context(tools=[shout, fall, ask], events=events)
    return await tool(Dispatch(task=a_task(workspace=workspace), call=call), context)


def outcome(update: Update) -> tuple[str, str, str]:
    (message,), call = update["messages"], update["calls"]
    assert not isinstance(call, tuple)
    return call.status, message.status, message.text  # type: ignore[union-attr]  # a ToolMessage


async def test_a_call_is_answered_with_its_result() -> None:
    """TL-03: exactly one message."""
    assert outcome(await run("shout", text="hi")) == ("done", "success", "HI")


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        ("fall", {}, "KeyError: 'absent'"),
        ("shout", {}, "text"),
        ("gone", {}, "the tool 'gone' is no longer there"),
        ("search", {"pattern": "x"}, "the tool 'search' is no longer there"),
    ],
)
async def test_a_call_that_fails_is_answered_with_its_error(
    name: str, args: dict[str, Any], said: str
) -> None:
    """TL-03: the loop goes on, also after a bug of the tool."""
    events: list[Event] = []
    status, shown, text = outcome(await run(name, events=events, **args))

    assert (status, shown) == ("failed", "error")
    assert said in text
    assert [(each.type, getattr(each, "ok", None)) for each in events] == [
        ("tool_started", None), ("tool_completed", False)
    ]  # fmt: skip


async def test_an_expected_error_is_told_in_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A class of ``ToolError`` is written for the model; its name says nothing."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "work").mkdir()
    work = str(tmp_path / "work")
    update = await run("str_replace_editor", workspace=work, command="view", path="../x")

    assert outcome(update)[2].startswith("Error: ")
    assert "PathRefused" not in outcome(update)[2]


async def test_a_workspace_that_is_gone_is_told(tmp_path: Path) -> None:
    """It is the model's to hear, not a bug."""
    update = await run("search", workspace=str(tmp_path / "gone"), pattern="x")

    assert outcome(update)[0] == "failed"


async def test_an_interrupt_of_a_tool_is_not_swallowed() -> None:
    """LangGraph's own control flow passes through."""
    with pytest.raises(GraphInterrupt):
        await run("ask")


@pytest.mark.parametrize("cut_off", [StorageUnavailable("gone"), HoldLost("t")])
async def test_that_the_storage_is_gone_is_nothing_to_tell_the_model(cut_off: CutOff) -> None:
    """DU-04: the run stops before this call, and goes on from there."""

    def write() -> str:
        """Write it down."""
        raise cut_off

    call = a_call("c1", name="write", args={})
    with pytest.raises(type(cut_off)):
        await tool(Dispatch(task=a_task(), call=call), a_context(tools=[write]))


async def test_start_and_end_are_told() -> None:
    """PL-04: with what was called, and whether it went well."""
    events: list[Event] = []
    await run("shout", events=events, text="hi")

    started, completed = (event.to_dict() for event in events)
    assert (started["type"], started["call_id"], started["summary"]) == ("tool_started", "c1", "hi")
    assert (completed["type"], completed["ok"], completed["output"]) == (
        "tool_completed",
        True,
        "HI",
    )


async def test_the_seconds_of_a_call_are_on_record_in_every_life() -> None:
    """MO-07: `timings` is right, after a crash between the call and its checkpoint too."""
    time, ledger = [100.0], ProcessLedger()

    def wait(seconds: float) -> str:
        """Wait so long."""
        time[0] += seconds
        return "waited"

    call = a_call("c1", name="wait", args={"seconds": 2.0})
    dispatch = Dispatch(task=a_task(), call=call)
    for life, took in (("one", (100.0, 2.0)), ("two", (500.0, 2.0))):
        journal = ledger.journal_at(Place("t", "", "1"), life)
        context = replace(a_context(tools=[wait]), now=lambda: time[0], journal=journal)
        (step,) = (await tool(dispatch, context))["steps"]
        assert (step.kind, step.signature, step.ok) == ("tool", "wait", True)
        assert (step.at, step.seconds) == took
        time[0] = 500.0
    state = a_state(steps=[step, step])
    assert result_of(state, "completed", "Done.", now=600.0).timings["tool"] == 4.0


def test_the_summary_is_short() -> None:
    """For one line of progress: long, multi-line and structured arguments are left out."""
    args = {"path": "a.py", "text": "x" * 81, "more": "a\nb", "line": 3, "list": ["x"]}

    assert short_values(args) == "a.py 3"


class Gone(BaseException):
    """Nobody's to expect, as those of test frameworks and of some libraries."""


FALLS = [Gone("x"), BaseExceptionGroup("x", [Gone()]), SystemExit("3"), GeneratorExit("x")]


@pytest.mark.parametrize(
    ("error", "later"), [*((each, False) for each in FALLS), *((each, True) for each in FALLS[:3])]
)
async def test_whatever_a_tool_raises_is_its_failure(error: BaseException, later: bool) -> None:
    """TL-03: also what is no ``Exception``, on a thread and in the loop of the node.

    Command-line functions raise ``SystemExit``; only who waits for the tool can end the run.
    """

    def leave() -> str:
        """Leave."""
        raise error

    async def leave_later() -> str:
        """Leave from a loop, whose task would take its whole loop along."""
        raise error

    call = a_call("c1", name="leave_later" if later else "leave", args={})
    context = a_context(tools=[leave, leave_later])
    update = await tool(Dispatch(task=a_task(), call=call), context)

    said = "Error: SystemExit: 3" if error is FALLS[2] else type(error).__name__
    assert said in update["messages"][0].text


@pytest.mark.parametrize(
    ("rule", "said"), [("deny", "denied by policy"), ("confirm", "a person has to approve")]
)
async def test_a_call_that_may_not_run_any_more_does_not(rule: str, said: str) -> None:
    """TL-15: a thread may be resumed under other settings than its calls were decided under."""
    heard: list[str] = []

    def whisper(text: str) -> str:
        """Say it quietly."""
        heard.append(text)
        return text

    context = a_context(tools=[whisper], given=settings(tools={"policy": {"whisper": rule}}))
    call = a_call("c1", name="whisper", args={"text": "hi"})

    status, _, text = outcome(await tool(Dispatch(task=a_task(), call=call), context))

    assert (status, heard) == ("failed", [])
    assert said in text


@pytest.mark.parametrize("level", ["absent", "none", "landlock"])
async def test_without_namespaces_a_command_waits_for_a_person(level: Any, tmp_path: Path) -> None:
    """TL-24: nothing else can keep it from all changes; nothing is started."""
    events: list[Event] = []
    context = replace(a_context(events=events), open_sandbox=no_sandbox)
    if level != "absent":

        async def opened() -> Sandbox:
            return sandbox_at(level)

        context = replace(context, open_sandbox=opened)
    call = a_call("c1", name="run_command", args={"command": "ls"}, read_only=True)
    update = await tool(Dispatch(task=a_task(workspace=str(tmp_path)), call=call), context)

    assert update == {"calls": replace(call, status="awaiting", read_only=False)}
    assert events == []


async def test_a_call_that_is_given_up_is_unknown() -> None:
    """TL-21: after the time that the settings give it, and neither failed nor done."""

    async def hang() -> str:
        """Never end."""
        await asyncio.Event().wait()
        return ""

    context = a_context(tools=[hang], given=settings(tools={"timeout": 0.02}))
    call = a_call("c1", name="hang", args={})

    status, kind, text = outcome(await tool(Dispatch(task=a_task(), call=call), context))

    assert (status, kind) == ("unknown", "error")
    assert "outcome_unknown: hang did not end in 0.02 s" in text


async def test_a_time_limit_around_a_call_that_never_began_is_one() -> None:
    """Python knows a limit's cancellation by its very type; nobody else's kind is taken for it."""
    gate = threading.Event()
    held = [asyncio.ensure_future(in_tool_thread(gate.wait)) for _ in range(MOST_TOOL_THREADS)]
    await asyncio.sleep(0)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await run("shout", text="hi")
    gate.set()
    await asyncio.gather(*held)
