"""The spans of a run (FA-07): of its requests to models, its nodes, and what happens in these."""

import asyncio
import json
import os
import re
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.types import StateSnapshot
from opentelemetry import context as otel
from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.metrics import Histogram
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from daruma.graph.errors import ExitRun
from daruma.graph.models import Pursuit, fault_of
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
from daruma.state.messages import END_REASON_KEYS
from daruma.state.text import storable_text
from daruma.tools.text import without_keys

# --- Which texts a span may hold: those of prompts and outputs only where it was asked for.

VARIABLE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""OpenTelemetry's own switch for the content of messages."""
_ON: Final = frozenset({"true", "1", "span_only", "span_and_event"})

MOST: Final = 8192
"""Characters of one text in a span; exporters refuse batches of some megabytes."""


def captures() -> bool:
    """Whether spans are to hold what was said and put out."""
    return os.environ.get(VARIABLE, "").strip().lower() in _ON


def shown(text: str) -> str:
    """Return a text as a span may hold it: without keys, and not endless."""
    return storable_text(without_keys(text))[:MOST]


# --- How a span ends: an interrupt and a cancellation are no errors, everything else that flies is.

_CANCELLED: Final = (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit)


def failed(span: Span, kind: str, text: str = "") -> None:
    """Mark a span as failed; ``kind`` is its ``error.type``, ``text`` may tell of content."""
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR, shown(text) if text and captures() else kind))


def ended_with(span: Span, error: BaseException | None, kind: str = "") -> None:
    """Say what a span ended with. ``kind`` goes before the name of the exception's class."""
    if isinstance(error, ExitRun):
        error = error.error
    if isinstance(error, GraphInterrupt):
        span.set_attribute("daruma.interrupted", True)  # noqa: FBT003 - an attribute's value
    elif isinstance(error, _CANCELLED):
        span.set_attribute("daruma.cancelled", True)  # noqa: FBT003
    elif error is not None and not isinstance(error, GraphBubbleUp):
        failed(span, kind or type(error).__name__, str(error))
        trace_ = "".join(traceback.format_tb(error.__traceback__))[-MOST:]
        told = {
            "exception.type": f"{type(error).__module__}.{type(error).__qualname__}",
            "exception.stacktrace": shown(trace_),
        }
        if captures():  # else its words are not told: they may quote the content
            told["exception.message"] = shown(str(error))
        span.add_event("exception", told)


# --- Messages as the conventions for generative AI write them into a span: JSON, without keys.

_ROLES: Final = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}


def content_of(messages: Iterable[BaseMessage]) -> str:
    """Return messages as ``[{"role", "parts": [...]}]``; each text is cut where it is too long."""
    return json.dumps(
        [{"role": _ROLES.get(m.type, m.type), "parts": _parts(m)} for m in messages],
        ensure_ascii=False,
    )


def _parts(message: BaseMessage) -> list[dict[str, Any]]:
    text = shown(message.text)
    if isinstance(message, ToolMessage):
        return [{"type": "tool_call_response", "id": message.tool_call_id, "response": text}]
    parts: list[dict[str, Any]] = [{"type": "text", "content": text}] if text else []
    if isinstance(message, AIMessage):
        parts += [
            {
                "type": "tool_call",
                "id": call["id"],
                "name": call["name"],
                "arguments": shown(json.dumps(call["args"], ensure_ascii=False, default=str)),
            }
            for call in message.tool_calls
        ]
    return parts


# --- What is counted of requests to models: how long they took, and their tokens.

SCOPE: Final = "daruma"
"""The instrumentation's name; all spans and metrics are under it."""


def counted(asked: dict[str, Any], seconds: float, answer: AIMessage | None, error: str) -> None:
    """Count a request; ``error`` is its ``error.type``, empty for one that was answered."""
    durations, tokens = _instruments(metrics.get_meter_provider())
    durations.record(seconds, {**asked, **({"error.type": error} if error else {})})
    if answer is not None and (usage := answer.usage_metadata):
        tokens.record(usage["input_tokens"], {**asked, "gen_ai.token.type": "input"})
        tokens.record(usage["output_tokens"], {**asked, "gen_ai.token.type": "output"})


@cache
def _instruments(provider: metrics.MeterProvider) -> tuple[Histogram, Histogram]:
    meter = provider.get_meter(SCOPE)
    return (
        meter.create_histogram(
            "gen_ai.client.operation.duration", "s", "How long a request to a model took."
        ),
        meter.create_histogram(
            "gen_ai.client.token.usage", "{token}", "Tokens that a request to a model took."
        ),
    )


# --- The span of one request to a model, by OpenTelemetry's conventions for generative AI.


class ModelSpan:
    """What is told of a request, and of its answer once there is one."""

    def __init__(self, span: Span) -> None:
        self._span = span
        self.message: AIMessage | None = None

    def answered(self, message: AIMessage) -> None:
        """Take down what the answer says of itself, and what it cost."""
        self.message = message
        told = message.response_metadata
        usage: Any = message.usage_metadata or {}
        ending = next((told[key] for key in END_REASON_KEYS if told.get(key)), None)
        cached = usage.get("input_token_details", {}).get("cache_read")
        attributes = {
            "gen_ai.response.id": message.id,
            "gen_ai.response.model": told.get("model_name"),
            "gen_ai.response.finish_reasons": [str(ending)] if ending else None,
            "gen_ai.usage.input_tokens": usage.get("input_tokens"),
            "gen_ai.usage.output_tokens": usage.get("output_tokens"),
            "gen_ai.usage.cache_read.input_tokens": cached,
        }
        self._span.set_attributes({k: v for k, v in attributes.items() if v is not None})
        if captures():
            self._span.set_attribute("gen_ai.output.messages", content_of([message]))


@contextmanager
def model_span(this: Pursuit) -> Iterator[ModelSpan]:
    """Trace a request, and count it; within a run that is not traced it is only counted."""
    started, kind = time.monotonic(), ""
    provider, _, name = this.model.partition(":")
    asked = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": name or this.model,
    }
    with _span(this, asked) as span:
        told = ModelSpan(span)
        try:
            yield told
        except BaseException as error:
            fault = fault_of(error) if isinstance(error, Exception) else None
            kind = str(fault.status) if fault and fault.status else type(error).__name__
            ended_with(span, error, kind)
            raise
        finally:
            counted(asked, time.monotonic() - started, told.message, kind)


@contextmanager
def _span(this: Pursuit, asked: dict[str, Any]) -> Iterator[Span]:
    around = trace.get_current_span()
    if not around.is_recording():
        yield around
        return
    span = trace.get_tracer(SCOPE).start_span(
        f"chat {asked['gen_ai.request.model']}",
        kind=SpanKind.CLIENT,
        attributes={**asked, **_details(this)},
    )
    try:
        with trace.use_span(span, record_exception=False, set_status_on_exception=False):
            yield span
    finally:
        span.end()


def _details(this: Pursuit) -> dict[str, Any]:
    options = this.request.options()
    told = {
        "daruma.node": this.node,
        "daruma.role": this.used,
        "daruma.call": this.call,
        "daruma.member": this.member or None,
        "gen_ai.request.temperature": options.get("temperature"),
        "gen_ai.request.max_tokens": options.get("max_tokens"),
        "daruma.failover.attempt": this.requests + 1,
    }
    if this.tried:
        last = this.tried[-1]
        fault = last.fault  # named without its words: they may quote the request
        told |= {
            "daruma.failover.from": this.chain[last.place],
            "daruma.failover.to": this.model,
            "daruma.failover.why": str(fault.status) if fault.status else fault.cause or fault.code,
        }
    if captures():
        told["gen_ai.input.messages"] = content_of(this.request.messages)
    return {key: value for key, value in told.items() if value is not None}


# --- The span of a run: from its first step to its end, an interrupt, or whatever stops it.

TRACEPARENT: Final = "daruma_traceparent"
"""Key of a checkpoint's metadata: the span of the run that wrote it, as W3C writes it."""

_W3C = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_FAILED: Final = frozenset({"failed", "gave_up_after_reflections", "max_steps_exceeded"})


@dataclass
class RunTrace:
    """The span of one run, for its nodes; it hangs on the run's config, and crosses all threads."""

    span: Span
    context: Context
    interrupted: bool = False
    result: bool = False
    bug: str = ""

    def noticed(self, update: Update) -> None:
        """Take down what a node says of the task as a whole."""
        if task := update.get("task"):
            self.span.set_attributes({"daruma.task_id": task.id, "daruma.mode": task.mode})
        if result := update.get("result"):
            self.result = True
            checked = result.checked.outcome
            self.span.set_attributes({"daruma.status": result.status, "daruma.checked": checked})
            if result.status in _FAILED:
                struct = result.error_struct
                failed(self.span, struct.error_code if struct else result.status)

    def stopped(self, error: BaseException | None) -> None:
        """Take down what the run ended with, if it did not come to a result of its own."""
        if error is None and self.bug and not self.result and not self.interrupted:
            failed(self.span, self.bug)
        if self.interrupted:
            self.span.set_attribute("daruma.interrupted", True)  # noqa: FBT003 - a value
        ended_with(self.span, error)


@contextmanager
def run_span(
    config: RunnableConfig | None, snapshot: StateSnapshot | None, key: str
) -> Iterator[RunnableConfig | None]:
    """Trace a run under the caller's current span; a later run of a thread links to the last one.

    ``key`` is what the config that is yielded has it under. Nothing is attached to the caller's
    context: a stream is read in pieces, between which other work is done.
    """
    thread = str((config or {}).get("configurable", {}).get("thread_id", ""))
    span = trace.get_tracer(SCOPE).start_span(
        "invoke_agent daruma",
        links=_links(snapshot),
        attributes={
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "daruma",
            **({"gen_ai.conversation.id": thread, "daruma.thread_id": thread} if thread else {}),
        },
    )
    if not span.is_recording():  # there is no SDK, or this trace was not sampled
        yield config
        return
    run = RunTrace(span, trace.set_span_in_context(span))
    own = span.get_span_context()
    parent = f"00-{own.trace_id:032x}-{own.span_id:016x}-{own.trace_flags:02x}"
    given = config or RunnableConfig()
    error: BaseException | None = None
    try:
        configurable = {**given.get("configurable", {}), key: run}
        metadata = {**given.get("metadata", {}), TRACEPARENT: parent}
        noted = {**given, "configurable": configurable, "metadata": metadata}
        yield cast("RunnableConfig", noted)
    except BaseException as raised:
        error = raised
        raise
    finally:
        run.stopped(error)
        span.end()


def _links(snapshot: StateSnapshot | None) -> list[Link]:
    """Return a link to the run that wrote the state which is gone on from, in any process."""
    written = ((snapshot and snapshot.metadata) or {}).get(TRACEPARENT, "")
    if not (found := _W3C.fullmatch(str(written))):
        return []
    trace_id, span_id, flags = (int(part, 16) for part in found.groups())
    last = SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(flags))
    return [Link(last, {"daruma.link": "previous_run"})]


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
def node_span(
    run: RunTrace, node: str, attributes: Mapping[str, str | float], *, nested: bool
) -> Iterator[NodeSpan]:
    """Trace a node, under the run; in a member's machine (``nested``) under the member's node."""
    parent: Context = otel.get_current() if nested else run.context
    span = trace.get_tracer(SCOPE).start_span(node, parent, attributes=attributes)
    noted, error = NodeSpan(span, run), None
    token: Any = otel.attach(trace.set_span_in_context(span, otel.get_current()))
    try:
        yield noted
    except BaseException as raised:
        error = raised
        run.interrupted = run.interrupted or isinstance(raised, GraphInterrupt)
        if isinstance(raised, Exception) and not isinstance(raised, GraphBubbleUp):
            run.bug = type(raised).__name__
        raise
    finally:
        noted.stopped(error)
        span.end()
        otel.detach(token)
