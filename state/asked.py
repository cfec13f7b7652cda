"""What a think step asked for, as a signature: equal for calls that are as good as the same."""

import re
from collections.abc import Sequence
from functools import lru_cache

from langchain_core.messages import AIMessage

from daruma.state.digest import digest
from daruma.state.folding import folded
from daruma.state.tool_task import ToolTask

_MAX_NAMES = 3
_UNREAD = frozenset({"invalid_json", "too_large", "cut_off"})


def signature_of(message: AIMessage, calls: Sequence[ToolTask]) -> str:
    """Return the names of the tools and a digest of the calls in their order; empty for none.

    The calls are taken in their canonical form, before a model repairs them or a person edits them:
    a model that asks for the same broken thing again asks for the same. Of a call that could not be
    read its text stands in.
    """
    if not calls:
        return ""
    raw = {call["id"]: call["args"] for call in message.invalid_tool_calls}
    asked = [
        (_key(call.name), folded(raw.get(call.id) if call.problem in _UNREAD else call.args))
        for call in calls
    ]
    return f"{' + '.join(_shown(calls))}#{digest(asked)}"


def tools_in(signature: str) -> tuple[str, ...]:
    """Return the names of the tools, each once, the first three of them."""
    names = signature.rpartition("#")[0]
    return tuple(names.split(" + ")) if names else ()


def _shown(calls: Sequence[ToolTask]) -> list[str]:
    return list(dict.fromkeys(_told(call.name) for call in calls))[:_MAX_NAMES]


@lru_cache(maxsize=1000)
def _told(name: str) -> str:
    return re.sub(r"[^\w.:-]", "?", name, flags=re.ASCII)[:60] or "unnamed"


@lru_cache(maxsize=1000)
def _key(name: str) -> str:
    return re.sub(r"[\s._-]+", "", name).casefold()
