"""Requests that fit: counting tokens, and showing less of the history where it is too long.

``Draft`` is a request before it is sent. One that is over its budget, or that a provider refuses
as too long, is brought under it by ``compact_history``: shorter results first, then a summary
(CX-02).
"""

from daruma.tools.window._compaction import CompactionResult, compact_history
from daruma.tools.window._view import (
    Draft,
    after_provider_refusal,
    check_size,
    context_usage,
    sent_history,
    text_ends,
    too_large_update,
)

__all__ = [
    "CompactionResult",
    "Draft",
    "after_provider_refusal",
    "check_size",
    "compact_history",
    "context_usage",
    "sent_history",
    "text_ends",
    "too_large_update",
]
