"""State that a person or Studio writes by hand: what could not be read back is refused before."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.types import StateUpdate

from daruma.graph.new_request import RequestRefused
from daruma.state.channels import misfit_of


def edited(supersteps: Sequence[Sequence[tuple[Any, ...]]]) -> list[list[StateUpdate]]:
    """Return updates as the machine stores them.

    Raises :class:`~daruma.graph.new_request.RequestRefused` for a value that is none of its
    channel's: reading it back would find the thread damaged.
    """
    return [[_edited(StateUpdate(*update)) for update in updates] for updates in supersteps]


def _edited(update: StateUpdate) -> StateUpdate:
    values = update.values
    if not isinstance(values, Mapping):
        return update  # nothing, or a form of LangGraph's own
    if "messages" in values:
        values = {**values, "messages": _several(values["messages"])}
    if said := misfit_of(values):
        raise RequestRefused(f"the state can not be changed so: {said}")
    return update._replace(values=values)


def _several(given: Any) -> Any:
    """Return messages as a list; the reducer takes each part of what it is given for one."""
    pair = isinstance(given, tuple) and all(isinstance(part, str) for part in given)
    return [given] if pair or isinstance(given, str | Mapping | BaseMessage) else given
