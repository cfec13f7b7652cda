"""What of a run's config is kept with every checkpoint in clear, and so must be storable. Pure."""

from math import isfinite
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config

from daruma.graph.new_request import RequestRefused
from daruma.tools.calls.parse import unstorable


def refuse_unkept_metadata(config: RunnableConfig) -> None:
    """Refuse texts and numbers that no row keeps as they are, in metadata and in ``configurable``.

    Only those are kept, and only by name: what is nested or live in a config is left out of a
    checkpoint by LangGraph. Raises :class:`~daruma.graph.new_request.RequestRefused`.
    """
    told = ensure_config(config)  # also what the graph is called within
    for where in ("metadata", "configurable"):
        _check(where, told.get(where) or {})


def _check(where: str, given: Any) -> None:
    for name, value in given.items():
        if not isinstance(name, str):
            raise RequestRefused(f"{where}[{name!r}] has no name to be kept by: take a text for it")
        if said := _unkept(name) or _unkept(value):
            raise RequestRefused(
                f"{where}[{name[:100]!r}] can not be stored with a checkpoint: {said}; "
                "leave it out, or give it as plain text"
            )


def _unkept(value: object) -> str | None:
    if isinstance(value, float):
        return None if isfinite(value) else "it is no finite number"
    if isinstance(value, str):
        return "it holds a NUL character" if "\0" in value else unstorable(value)
    return None
