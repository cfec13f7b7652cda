"""The span of a node, and what happens within it: tools, checks, commands."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from langgraph.errors import GraphBubbleUp, GraphInterrupt
from opentelemetry import context as otel
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span

from daruma.graph.tracing._callbacks import About
from daruma.graph.tracing._spans import SCOPE, RunTrace, captures, ended_with, failed, shown
from daruma.state.channels import Update
from daruma.state.events import (
    CommandRun,
    Event,
    RecoveryChosen,
    RecoveryCompleted,
    ToolCompleted,
    ToolStarted,
    VerificationCompleted,
    VerificationStarted,
)

# --- What events say of a node's inside, as attributes of spans below its own.


def _of_tool(event: ToolStarted) -> dict[str, Any]:
    told = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": event.tool,
        "gen_ai.tool.call.id": event.call_id,
        "gen_ai.tool.type": "function",
    }
    content = {"daruma.tool.summary": shown(event.summary)} if captures() else {}
    return told | content


def _of_command(event: CommandRun) -> dict[str, Any]:
    told: dict[str, Any] = {
        "daruma.command.purpose": event.purpose,
        "daruma.sandbox.level": event.sandbox,
        "daruma.sandbox.not_covered": event.not_covered,
    }
    if event.violation:
        told["daruma.sandbox.violation"] = event.violation
    if event.exit_code is not None:
        told["process.exit.code"] = event.exit_code
    return {**told, "process.command_line": shown(event.command)} if captures() else told


def _of_recovery(event: RecoveryChosen | RecoveryCompleted) -> dict[str, Any]:
    if isinstance(event, RecoveryCompleted):
        return {
            "daruma.recovery.strategy": event.strategy,
            "daruma.recovery.carried": event.carried,
        }
    told = {
        "daruma.recovery.strategy": event.strategy,
        "daruma.recovery.by": event.by,
        "daruma.recovery.confidence": event.confidence,
    }
    return {**told, "daruma.recovery.reasoning": shown(event.reasoning)} if captures() else told


# --- The span of a node, and what happens within it: tools, commands and checks, from its events.


class NodeSpan:
    """What a node's span is told while the node runs; some events open and close spans below it."""

    def __init__(self, span: Span, run: RunTrace) -> None:
        self._node, self._run = span, run
        self._open: list[tuple[Span, Any]] = []

    def heard(self, emit: Callable[[Event], None]) -> Callable[[Event], None]:
        """Return what sends events on, and turns those that say so into spans and attributes."""

        def hear(event: Event) -> None:
            emit(event)
            self._hear(event)

        return hear

    def returned(self, update: Update, state: object) -> None:
        """Take down what the node came to; a failure is one that was not there before."""
        self._run.noticed(update)
        failure = update.get("failure")
        if failure and failure != getattr(state, "failure", None):
            failed(self._node, failure.code, failure.message)

    def stopped(self, error: BaseException | None) -> None:
        """End what is still open within the node, and say what the node ended with."""
        while self._open:
            ended_with(self._open[-1][0], error)
            self._end()
        ended_with(self._node, error)

    def _hear(self, event: Event) -> None:
        match event:
            case ToolStarted():
                self._begin(f"execute_tool {event.tool}", _of_tool(event))
            case ToolCompleted():
                output = {"gen_ai.tool.call.result": event.output}
                self._end("" if event.ok else "tool_error", output)
            case VerificationStarted():
                self._begin("checks", {"daruma.checks": len(event.commands)})
            case VerificationCompleted():
                if event.passed is not None:  # else nothing was checked
                    self._node.set_attribute("daruma.verification.passed", event.passed)
                error = "verification_failed" if event.passed is False else ""
                self._end(error, {"daruma.verification.summary": event.summary})
            case CommandRun():
                self._command(event)
            case RecoveryChosen() | RecoveryCompleted():
                self._node.set_attributes(_of_recovery(event))

    def _begin(self, name: str, attributes: Mapping[str, Any]) -> None:
        span = trace.get_tracer(SCOPE).start_span(name, self._around(), attributes=attributes)
        token = otel.attach(trace.set_span_in_context(span, otel.get_current()))
        self._open.append((span, token))

    def _end(self, error: str = "", content: Mapping[str, str] | None = None) -> None:
        if not self._open:
            return
        span, token = self._open.pop()
        if content and captures():
            span.set_attributes({key: shown(text) for key, text in content.items()})
        if error:
            failed(span, error)
        span.end()
        otel.detach(token)

    def _around(self) -> otel.Context:
        around = self._open[-1][0] if self._open else self._node
        return trace.set_span_in_context(around, otel.get_current())

    def _command(self, event: CommandRun) -> None:
        """Show a command that has ended: its event tells how long it took."""
        now = time.time_ns()
        span = trace.get_tracer(SCOPE).start_span(
            f"command {event.purpose}",
            self._around(),
            attributes=_of_command(event),
            start_time=now - int(event.seconds * 1e9),
        )
        if event.exit_code != 0:
            stopped = "stopped" if event.exit_code is None else "exit_code"
            failed(span, "timeout" if event.timed_out else event.stopped_by or stopped)
        span.end(now)


@contextmanager
def node_span(run: RunTrace, told: About, *, nested: bool) -> Iterator[NodeSpan]:
    """Trace a node, under the run; in a member's machine (``nested``) under the member's node."""
    parent: Context = otel.get_current() if nested else run.context
    span = trace.get_tracer(SCOPE).start_span(told.node, parent, attributes=told.attributes)
    node, error = NodeSpan(span, run), None
    token: Any = otel.attach(trace.set_span_in_context(span, otel.get_current()))
    try:
        yield node
    except BaseException as raised:
        error = raised
        run.interrupted = run.interrupted or isinstance(raised, GraphInterrupt)
        if isinstance(raised, Exception) and not isinstance(raised, GraphBubbleUp):
            run.bug = type(raised).__name__
        raise
    finally:
        node.stopped(error)
        span.end()
        otel.detach(token)
