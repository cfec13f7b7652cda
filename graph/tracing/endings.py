"""How a span ends: an interrupt and a cancellation are no errors, everything else that flies is."""

import asyncio
import traceback
from typing import Final

from langgraph.errors import GraphBubbleUp, GraphInterrupt
from opentelemetry.trace import Span, Status, StatusCode

from daruma.graph.raising import Leaving
from daruma.graph.tracing.shown_text import captures, shown

_CANCELLED: Final = (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit)


def failed(span: Span, kind: str, text: str = "") -> None:
    """Mark a span as failed; ``kind`` is its ``error.type``, ``text`` may tell of content."""
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR, shown(text) if text and captures() else kind))


def ended_with(span: Span, error: BaseException | None, kind: str = "") -> None:
    """Say what a span ended with. ``kind`` goes before the name of the exception's class."""
    if isinstance(error, Leaving):
        error = error.error
    if isinstance(error, GraphInterrupt):
        span.set_attribute("daruma.interrupted", True)  # noqa: FBT003 - an attribute's value
    elif isinstance(error, _CANCELLED):
        span.set_attribute("daruma.cancelled", True)  # noqa: FBT003
    elif error is not None and not isinstance(error, GraphBubbleUp):
        failed(span, kind or type(error).__name__, str(error))
        span.add_event("exception", _told(error))


def _told(error: BaseException) -> dict[str, str]:
    """Tell of an exception: its words only where content is captured, since they may quote it."""
    told = {
        "exception.type": f"{type(error).__module__}.{type(error).__qualname__}",
        "exception.stacktrace": shown("".join(traceback.format_tb(error.__traceback__))[-8192:]),
    }
    return {**told, "exception.message": shown(str(error))} if captures() else told
