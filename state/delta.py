"""A delta channel whose cost grows with what is new, not with how much there is (DU-08)."""

from typing import Any, ClassVar, Generic, Self, TypeVar

from langgraph.channels import DeltaChannel

V = TypeVar("V", bound=list[Any])


class GrowingDelta(DeltaChannel[V], Generic[V]):
    """Keeps each write, and a whole copy after as many writes as half of what there is.

    LangGraph's own keeps one after every so many writes, so that those of a thread of 1,000 steps
    take several times its history. This one's take twice of it at most, however long it is. The
    first copy comes after ``snapshot_frequency`` writes: until then each step keeps what is new,
    and reading takes some 0.05 ms for each write, a third of which a copy would take, too.
    """

    __slots__ = ("_least",)
    _least: int
    _part: ClassVar[int] = 2

    @property
    def snapshot_frequency(self) -> int:
        """How many writes since the last copy make LangGraph keep one."""
        kept = len(self.value) if self.is_available() else 0
        return max(self._least, (kept + 1) // self._part)

    @snapshot_frequency.setter
    def snapshot_frequency(self, least: int) -> None:
        self._least = least

    def copy(self) -> Self:
        new = super().copy()
        new._least = self._least
        return new

    def from_checkpoint(self, checkpoint: Any) -> Self:
        new = super().from_checkpoint(checkpoint)
        new._least = self._least
        return new


class RareDelta(GrowingDelta[V]):
    """The same for what is seldom written, and little: a whole copy after an eighth as many writes.

    The way back to a copy leads through all that the thread did since.
    """

    __slots__ = ()
    _part: ClassVar[int] = 8
