"""Whether a folder's tasks are learned from, on one line."""

import asyncio

from langgraph.store.base import BaseStore

from daruma.graph.command_line.learned import Learned
from daruma.graph.command_line.pitfall_view import listing
from daruma.state.settings.sections import Evolution
from daruma.tools.memory.memories import owner_of


async def learning_text(store: BaseStore, given: Evolution) -> str:
    """Say whether learning is on, and how many pitfalls the current folder has."""
    if not given.enabled:
        return "off, by evolution.enabled"
    owner = await asyncio.to_thread(owner_of, given.namespace, ".")
    found = await listing(Learned(store, owner, given), everything=True)
    high = sum(each.level == "high" for each in found.pitfalls)
    how = "observing, by evolution.observe_only" if given.observe_only else "on"
    return f"{how}; pitfalls of this folder: {len(found.pitfalls)}, of which high: {high}"
