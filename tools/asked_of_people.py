"""Asking people: the one place where a node stops for an answer."""

from collections.abc import Mapping
from typing import Any

from langgraph.types import interrupt

from daruma.state.inbox import inbox_of
from daruma.state.interrupts import reply_schema


def asked_of_people(question: Mapping[str, Any], at: float) -> Any:
    """Ask, and return the reply once there is one; a node begins anew with it.

    The schema of a reply goes with the question, for clients that make a form of it, and so do the
    form of chat clients and when it was ``asked_at`` (Unix seconds): a reply that was sent before
    can not be meant for it.
    """
    told = {**question, "asked_at": at, **inbox_of(question)}
    return interrupt(told, response_schema=reply_schema(question))
