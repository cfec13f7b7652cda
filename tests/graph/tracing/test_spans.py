"""Whole runs as OpenTelemetry sees them: one tree of spans each, every one of them ended."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import StatusCode
from tests.parts import memory, settings
from tests.scripted_runs import Run, against, call, calls, fall, phases, say, shout
from tests.spans_seen import Seen, spans_seen

from daruma.graph.build import build_graph

ROOT = "invoke_agent daruma"
QUICK = settings(
    spec_review={"enabled": False},
    tools={"policy": {"run_command": "allow"}},
    fallback_chain={"recovery": {"wait_seconds": 0}},
    llm={"requests": {"wait_seconds": 0}},
)
CONFIG: Any = {"configurable": {"thread_id": "t"}}
REQUEST: Any = {"messages": [("user", "Say my-own-words")], "mode": "react"}


@pytest.fixture
def seen() -> Iterator[Seen]:
    with spans_seen() as seen:
        yield seen
        assert seen.open == 0


def echo(text: str) -> str:
    """Say it, within a span of one's own."""
    with trace.get_tracer("application").start_as_current_span("application's own"):
        return text


def test_a_run_is_one_tree(seen: Seen) -> None:
    """FA-07: run, node, request, tool; a tool's own spans are below its call."""
    run = Run([calls(call("echo", text="a")), say()], tools=[echo], settings=QUICK)

    with seen.tracer.start_as_current_span("caller"):
        run.ask()

    assert seen.tree == {
        ("caller", ""),
        (ROOT, "caller"),
        ("intake", ROOT),
        ("main", ROOT),
        ("chat scripted", "main"),
        ("tool", ROOT),
        ("execute_tool echo", "tool"),
        ("application's own", "execute_tool echo"),
        ("finish", ROOT),
    }
    assert [span.name for span in seen.spans if span.status.status_code == StatusCode.ERROR] == []


def test_nodes_say_where_the_run_stands(seen: Seen) -> None:
    """FA-07: task, mode and budget, as the node began."""
    Run([calls("shout"), say()], tools=[shout], settings=QUICK).ask()

    told = [dict(span.attributes or {}) for span in seen.named("main")]
    assert [each["daruma.budget.think.spent"] for each in told] == [0, 1]
    assert told[0]["daruma.budget.think.of"] == 50
    assert (told[0]["daruma.task_id"], told[0]["daruma.mode"]) == ("t/1", "react")
    root = seen.told(ROOT)
    assert (root["gen_ai.conversation.id"], root["daruma.status"]) == ("t", "completed")


async def test_an_asynchronous_run_is_the_same_tree(seen: Seen) -> None:
    """``ainvoke`` and ``astream``, side by side, each under its own caller."""
    graph: Any = build_graph(Run([say()] * 2).model, settings=QUICK, checkpointer=memory())

    async def called(name: str) -> None:
        with seen.tracer.start_as_current_span(name):
            config = {"configurable": {"thread_id": name}}
            async for _ in graph.astream(REQUEST, config, stream_mode="custom"):
                pass

    await asyncio.gather(called("one"), called("two"))

    trees = {}
    for root in seen.named(ROOT):
        own = [s for s in seen.spans if s.context.trace_id == root.context.trace_id]
        trees[seen.parent(root)] = sorted(span.name for span in own)
    assert set(trees) == {"one", "two"}
    assert [len(names) for names in trees.values()] == [6, 6]


def test_members_are_below_their_node(seen: Seen) -> None:
    """Each member's nodes are within the span of that member, and name it."""
    plan = phases({"id": "a", "expert": "developer"}, {"id": "b", "expert": "tester"})
    script = {"plan": [plan], "main@a": [say()], "main@b": [say()]}

    Run(script, settings=QUICK).ask(mode="team_collab")

    inner = [s for s in seen.named("main") if s.attributes]
    above = {span.context.span_id: span for span in seen.named("member")}
    pairs = {
        (span.attributes["daruma.member"], above[span.parent.span_id].attributes["daruma.phase"])
        for span in inner
    }
    assert pairs == {("a", "a"), ("b", "b")}


def test_a_failover_is_one_span_for_each_request(seen: Seen, tmp_path: Path) -> None:
    """FA-07: which request it was, from which model to which, and why."""
    (tmp_path / "s.yaml").write_text("- say: From the script.\n")
    given = QUICK.model_copy(
        update={"llm": settings(llm={"fallback_models": [f"scripted:{tmp_path}/s.yaml"]}).llm}
    )

    Run([{"raise": "down for my-own-words"}], settings=given).ask()

    first, second = (span for span in seen.spans if span.name.startswith("chat "))
    assert first.status.status_code == StatusCode.ERROR
    assert first.attributes["error.type"] == "ScriptedFault"
    told = second.attributes
    assert told["daruma.failover.attempt"] == 2
    assert told["daruma.failover.to"] == f"scripted:{tmp_path}/s.yaml"
    assert told["daruma.failover.why"] == "ScriptedFault"
    assert told["daruma.role"] == "fallback"
    assert "my-own-words" not in seen.text


def test_a_recovery_names_its_strategy(seen: Seen) -> None:
    """The node that fails says so; recovery says what it did; the run itself went well."""
    script = {"main": [{"raise": "down"}, say()], "recovery": [against("retry")]}

    Run(script, settings=QUICK).ask()

    told = seen.told("recovery")
    assert told["daruma.recovery.strategy"] == "retry"
    assert seen.named("main")[0].attributes["error.type"] == "llm_failure"
    assert seen.told(ROOT)["daruma.status"] == "completed"
    assert seen.one(ROOT).status.status_code == StatusCode.UNSET


def test_an_interrupt_is_no_error_and_the_next_run_links_to_it(seen: Seen) -> None:
    """Also from another process: the link is kept with the thread's checkpoints."""
    script = [calls(call("shout")), say()]
    run = Run(script, tools=[shout], settings=settings(tools={"policy": {"shout": "confirm"}}))

    run.ask().approve()

    asked, answered = seen.named(ROOT)
    waited = [s for s in seen.spans if (s.attributes or {}).get("daruma.interrupted")]
    assert {span.name for span in waited} == {ROOT, "gate"}
    assert all(span.status.status_code == StatusCode.UNSET for span in seen.spans)
    assert [link.context.span_id for link in answered.links] == [asked.context.span_id]
    assert asked.links == ()


def test_a_bug_shows_where_it_is(seen: Seen) -> None:
    """An exception that nobody expected: its type and place, and its words only if asked for."""
    Run([], settings=QUICK).ask("Say my-own-words")

    root, broken = seen.one(ROOT), seen.one("main")
    assert root.status.status_code == broken.status.status_code == StatusCode.ERROR
    assert broken.attributes["error.type"] == "ScriptExhausted"
    (told,) = (event.attributes for event in broken.events if event.name == "exception")
    assert "scripted.py" in told["exception.stacktrace"]
    assert "my-own-words" not in seen.text


def test_a_tool_that_fails_is_marked(seen: Seen) -> None:
    """The call, not the run."""
    Run([calls(call("fall", text="x")), say()], tools=[fall], settings=QUICK).ask()

    assert seen.one("execute_tool fall").status.status_code == StatusCode.ERROR
    assert seen.one(ROOT).status.status_code == StatusCode.UNSET


def test_checks_and_commands_are_spans(seen: Seen, tmp_path: Path) -> None:
    """VE: the checks of a verification hold one span for each command, with its sandbox's level."""
    given = settings(
        **{**QUICK.model_dump(), "verification": {"enabled": True, "commands": ["true"]}}
    )

    Run([say()], settings=given).ask(workspace=str(tmp_path))

    assert ("checks", "verify") in seen.tree
    assert ("command verification", "checks") in seen.tree
    assert seen.told("command verification")["daruma.sandbox.level"] != ""


def test_a_stream_that_is_left_ends_its_spans(seen: Seen) -> None:
    """Who goes away cancels the run: that is told, and is no error."""
    run = Run([calls("shout"), say()], tools=[shout], settings=QUICK)
    parts = run.graph.stream(REQUEST, CONFIG, stream_mode="custom")
    next(parts)

    parts.close()

    assert seen.told(ROOT)["daruma.cancelled"] is True
    assert seen.one(ROOT).status.status_code == StatusCode.UNSET


def test_what_was_said_is_told_only_if_asked_for(
    seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenTelemetry's own switch; keys are masked in any case."""
    script = [calls(call("shout", text="sk-abcdefghijkl loud")), say("my-own-answer")]

    Run(script, tools=[shout], settings=QUICK).ask("Say my-own-words")
    quiet = seen.text
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    Run(script, tools=[shout], settings=QUICK).ask("Say my-own-words")

    assert [w for w in ("my-own-words", "my-own-answer", "loud", "LOUD") if w in quiet] == []
    assert "my-own-words" in seen.text
    assert "my-own-answer" in seen.text
    assert "sk-abcdefghijkl" not in seen.text
