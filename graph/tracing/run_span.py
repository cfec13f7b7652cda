"""The span of a run: from its first step to its end, an interrupt, or whatever stops it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, cast

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanContext, TraceFlags

from daruma.graph.of_a_run import OfARun
from daruma.graph.tracing.endings import ended_with, failed
from daruma.state.channels import Update

SCOPE: Final = "daruma"
"""The instrumentation's name; all spans and metrics are under it."""

TRACEPARENT: Final = "daruma_traceparent"
"""Key of a checkpoint's metadata: the span of the run that wrote it, as W3C writes it."""

_W3C = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_FAILED: Final = frozenset({"failed", "gave_up_after_reflections", "max_steps_exceeded"})


@dataclass
class RunTrace(OfARun):
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
            self.span.set_attribute("daruma.status", result.status)
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
    config: RunnableConfig | None, snapshot: StateSnapshot | None
) -> Iterator[RunnableConfig | None]:
    """Trace a run under the caller's current span; a later run of a thread links to the last one.

    Nothing is attached to the caller's context: a stream is read in pieces, between which other
    work is done.
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
    error: BaseException | None = None
    try:
        yield _noted(run, config)
    except BaseException as raised:
        error = raised
        raise
    finally:
        run.stopped(error)
        span.end()


def _noted(run: RunTrace, config: RunnableConfig | None) -> RunnableConfig:
    own = run.span.get_span_context()
    parent = f"00-{own.trace_id:032x}-{own.span_id:016x}-{own.trace_flags:02x}"
    noted = run.noted(config)
    metadata = {**noted.get("metadata", {}), TRACEPARENT: parent}
    return cast("RunnableConfig", {**noted, "metadata": metadata})


def _links(snapshot: StateSnapshot | None) -> list[Link]:
    """Return a link to the run that wrote the state which is gone on from, in any process."""
    written = ((snapshot and snapshot.metadata) or {}).get(TRACEPARENT, "")
    if not (found := _W3C.fullmatch(str(written))):
        return []
    trace_id, span_id, flags = (int(part, 16) for part in found.groups())
    last = SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(flags))
    return [Link(last, {"daruma.link": "previous_run"})]
