"""The first look of a run that goes on: what changed in the workspace while nobody ran (RO-07)."""

from asyncio import Lock
from typing import Any

from daruma.graph.of_a_run import OfARun
from daruma.state.savepoint import Drifted
from daruma.tools.context import Context
from daruma.tools.verification import drift


class FirstLook(OfARun):
    """Looks once in a run, before its first node does anything; several wait for one look."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._taken = False

    async def at(self, node: str, state: Any, context: Context) -> Drifted | None:
        """Return what drifted, for the first node only; ``intake`` looks for itself."""
        if self._taken and not self._lock.locked():
            return None
        async with self._lock:  # a sibling's work must not be taken for what others changed
            first, self._taken = not self._taken, True
            if not first or node == "intake":
                return None
            return await drift(state.task, context, getattr(state, "drifted", None))
