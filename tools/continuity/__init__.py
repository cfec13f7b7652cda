"""Clarifications: asking the user for what a call lacks, and going on with it (CO-01, CO-02).

Whether the next message is the answer is read off its form, in English, German and Chinese, or else
asked of a model.
"""

from typing import TYPE_CHECKING

from daruma._doors import open_late

if TYPE_CHECKING:
    from daruma.tools.continuity._clarification import (
        TAKE_UP_MODE,
        advance,
        ask_for_missing,
        clarification_note,
        clarification_update,
        fill_in,
        note_question,
        offer_leaving_out,
        take_up,
    )
    from daruma.tools.continuity._continuation import is_calling_off
else:
    __getattr__ = open_late(
        __name__,
        {
            "_clarification": (
                "TAKE_UP_MODE advance ask_for_missing clarification_note "
                "clarification_update fill_in note_question offer_leaving_out take_up"
            ),
            "_continuation": "is_calling_off",
        },
    )

__all__ = [
    "TAKE_UP_MODE",
    "advance",
    "ask_for_missing",
    "clarification_note",
    "clarification_update",
    "fill_in",
    "is_calling_off",
    "note_question",
    "offer_leaving_out",
    "take_up",
]
