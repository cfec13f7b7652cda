"""The span of one request to a model, by OpenTelemetry's conventions for generative AI."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from langchain_core.messages import AIMessage
from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind

from daruma.graph.failover import Tried
from daruma.graph.models.faults import Fault, fault_of
from daruma.graph.pursuit import Pursuit
from daruma.graph.tracing.endings import ended_with
from daruma.graph.tracing.message_content import content_of
from daruma.graph.tracing.metrics import counted
from daruma.graph.tracing.shown_text import captures
from daruma.tools.calls.results import ENDINGS

_SCOPE: Final = "daruma"


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
        ending = next((told[key] for key in ENDINGS if told.get(key)), None)
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
    started, kind, asked = time.monotonic(), "", _attributes(this)
    with _span(this, asked) as span:
        told = ModelSpan(span)
        try:
            yield told
        except Exception as error:
            fault = fault_of(error)
            kind = str(fault.status) if fault.status else type(error).__name__
            ended_with(span, error, kind)
            raise
        except BaseException as error:
            ended_with(span, error)
            kind = type(error).__name__
            raise
        finally:
            counted(asked, time.monotonic() - started, told.message, kind)


@contextmanager
def _span(this: Pursuit, asked: dict[str, Any]) -> Iterator[Span]:
    around = trace.get_current_span()
    if not around.is_recording():
        yield around
        return
    span = trace.get_tracer(_SCOPE).start_span(
        f"chat {asked['gen_ai.request.model']}",
        kind=SpanKind.CLIENT,
        attributes={**asked, **_details(this)},
    )
    try:
        with trace.use_span(span, record_exception=False, set_status_on_exception=False):
            yield span
    finally:
        span.end()


def _attributes(this: Pursuit) -> dict[str, Any]:
    """Return what the conventions ask of every request, for spans and metrics alike."""
    provider, _, name = this.model.partition(":")
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": name or this.model,
    }


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
        **(_failover(this, this.tried[-1]) if this.tried else {}),
    }
    if captures():
        told["gen_ai.input.messages"] = content_of(this.request.messages)
    return {key: value for key, value in told.items() if value is not None}


def _failover(this: Pursuit, last: Tried) -> dict[str, Any]:
    return {
        "daruma.failover.from": this.chain[last.place],
        "daruma.failover.to": this.model,
        "daruma.failover.why": _why(last.fault),
    }


def _why(fault: Fault) -> str:
    """Name the fault without its words: they may quote the request."""
    return str(fault.status) if fault.status else fault.cause or fault.code
