"""What tracers are shown of a run: LangChain's as metadata, OpenTelemetry's as spans and metrics.

Whether anybody traces is found out without an import of OpenTelemetry; where nobody does, a run
pays nothing.
"""

from daruma.graph.tracing._switch import (
    is_tracing,
    node_traced,
    request_traced,
    run_traced,
    trace_metadata,
    with_trace_metadata,
)

__all__ = [
    "is_tracing",
    "node_traced",
    "request_traced",
    "run_traced",
    "trace_metadata",
    "with_trace_metadata",
]
