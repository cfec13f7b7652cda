"""Spans of runs, gathered in this process by OpenTelemetry's own SDK while somebody looks."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Sampler, SamplingResult
from typing_extensions import override


class WhileLooking(Sampler):
    """Takes spans only while somebody looks: a provider can not be taken back."""

    looking = False

    @override
    def should_sample(self, *args: Any, **options: Any) -> SamplingResult:
        return (ALWAYS_ON if self.looking else ALWAYS_OFF).should_sample(*args, **options)

    @override
    def get_description(self) -> str:
        return "while looking"


SAMPLER = WhileLooking()
EXPORTER = InMemorySpanExporter()


class Started(SimpleSpanProcessor):
    """Counts the spans that were begun, and exports those that ended."""

    count = 0

    @override
    def on_start(self, *args: Any, **options: Any) -> None:
        self.count += 1
        super().on_start(*args, **options)


STARTED = Started(EXPORTER)


@dataclass
class Seen:
    """The spans that have ended so far, in the order in which they began."""

    tracer: trace.Tracer

    @property
    def spans(self) -> list[Any]:
        return sorted(EXPORTER.get_finished_spans(), key=lambda span: span.start_time or 0)

    @property
    def open(self) -> int:
        """How many spans have begun and not ended."""
        return STARTED.count - len(EXPORTER.get_finished_spans())

    def named(self, name: str) -> list[Any]:
        return [span for span in self.spans if span.name == name]

    def one(self, name: str) -> Any:
        (span,) = self.named(name)
        return span

    def told(self, name: str) -> dict[str, Any]:
        return dict(self.one(name).attributes or {})

    def parent(self, span: ReadableSpan) -> str:
        """The name of the span that a span is in; empty for a root."""
        own = span.parent and span.parent.span_id
        return next((s.name for s in self.spans if s.context and s.context.span_id == own), "")

    @property
    def tree(self) -> set[tuple[str, str]]:
        """All pairs of a span and what it is in."""
        return {(span.name, self.parent(span)) for span in self.spans}

    @property
    def text(self) -> str:
        """Everything that was exported, as text."""
        return "\n".join(span.to_json() for span in self.spans)


@contextmanager
def spans_seen() -> Iterator[Seen]:
    """Look at all spans that begin from now on."""
    if not isinstance(trace.get_tracer_provider(), TracerProvider):
        provider = TracerProvider(sampler=SAMPLER)
        provider.add_span_processor(STARTED)
        trace.set_tracer_provider(provider)
    EXPORTER.clear()
    STARTED.count, SAMPLER.looking = 0, True
    try:
        yield Seen(trace.get_tracer("test"))
    finally:
        SAMPLER.looking = False
        EXPORTER.clear()
