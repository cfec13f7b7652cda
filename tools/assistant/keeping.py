"""The assistant's tools for what is kept: to list, complete and delete it."""

from dataclasses import replace
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from daruma.tools.assistant.items import Item, Kind, find, items, keep, remove
from daruma.tools.errors import ToolError
from daruma.tools.shipped_tool import shipped_tool
from daruma.tools.tool import Surroundings, Tool

MOST_LISTED: Final = 100


class ListArgs(BaseModel):
    """List todos, scheduled tasks, goals and reminders: open ones first, by their dates."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Kind | None = Field(default=None, description="Only these; all if left out.")


class OneArgs(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(description="Its id, as list_assistant_items shows it.")


class CompleteArgs(OneArgs):
    """Mark a todo, scheduled task, goal or reminder as done."""


class DeleteArgs(OneArgs):
    """Delete a todo, scheduled task, goal or reminder for good."""


async def _list(args: ListArgs, at: Surroundings) -> str:
    found = await items(at.needs_store(), at.settings.memory.namespace, args.kind)
    more = len(found) - MOST_LISTED
    lines = [item.line for item in found[:MOST_LISTED]]
    return "\n".join([*lines, f"and {more} more"] if more > 0 else lines) or "There are none."


async def _complete(args: CompleteArgs, at: Surroundings) -> str:
    item = (await _found(args.id, at))._replace(done=True)
    await keep(at.needs_store(), at.settings.memory.namespace, item, at.now())
    return f"Done: {item.line}"


async def _delete(args: DeleteArgs, at: Surroundings) -> str:
    item = await _found(args.id, at)
    await remove(at.needs_store(), at.settings.memory.namespace, item)
    return f"Deleted: {item.line}"


async def _found(id_: str, at: Surroundings) -> Item:
    item = await find(at.needs_store(), at.settings.memory.namespace, id_)
    if item is None:
        raise ToolError(f"there is no item {id_!r}: list_assistant_items shows those there are")
    return item


def _changing(made: Tool) -> Tool:
    """Return a tool that may be called again: the effect is that of one call."""
    return replace(made, idempotent=True)


KEEPING: Final[tuple[Tool, ...]] = (
    shipped_tool("list_assistant_items", ListArgs, "none", _list, toolset="assistant"),
    _changing(
        shipped_tool(
            "complete_assistant_item", CompleteArgs, "external", _complete, toolset="assistant"
        )
    ),
    _changing(
        shipped_tool("delete_assistant_item", DeleteArgs, "external", _delete, toolset="assistant")
    ),
)
