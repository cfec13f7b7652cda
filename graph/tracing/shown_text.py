"""Which texts a span may hold: those of prompts and outputs only where it was asked for."""

import os
from typing import Final

from daruma.tools.calls.results import clean
from daruma.tools.text.secrets import without_keys

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
    return clean(without_keys(text))[:MOST]
