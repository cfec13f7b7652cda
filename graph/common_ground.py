"""What all nodes of one run work with: made for the first of them, and found by the others."""

from collections.abc import Callable
from operator import is_
from typing import Any, TypeVar, TypeVarTuple

from langchain_core.runnables import RunnableConfig

from daruma.graph.of_a_run import OfARun

T = TypeVar("T")
Of = TypeVarTuple("Of")


class CommonGround(OfARun):
    """What was made last, and what it was made of: members may have settings of their own."""

    def __init__(self) -> None:
        self._last: tuple[tuple[Any, ...], Any] = (), None

    @classmethod
    def of(cls, config: RunnableConfig) -> "CommonGround":
        """Return that of the run which a node is called in; a new one outside of any."""
        return cls.found_in(config) or cls()

    def made(self, make: Callable[[*Of], T], *of: *Of) -> T:
        """Return what is made of these very things."""
        known, made = self._last
        if len(known) != len(of) or not all(map(is_, known, of)):
            made = make(*of)
            self._last = of, made
        found: T = made
        return found
