"""The journal of effects, as tools see it: what is about to be done, and what came of it (DU-06).

An intent is durable before anything is done, so that a call that was cut short is known as one. An
outcome is durable before the machine is told of it, so that a killed run need not do it again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from daruma.state.tool_task import ToolTaskStatus

Settles = Literal["again", "restore", "ask", "tell"]
"""What becomes of a call that was cut short. See :func:`daruma.tools.effect.settles`."""


@dataclass(frozen=True)
class Effect:
    """A call that changes something: which one it is, and a digest of exactly what it does."""

    call: str
    digest: str
    settles: Settles
    workspace: str = ""


@dataclass(frozen=True)
class Outcome:
    """What came of a call, as the machine is told; ``reference`` is the id of a longer text."""

    status: ToolTaskStatus
    text: str
    reference: str = ""


@dataclass(frozen=True)
class Entry:
    """What is on record of an effect. ``key`` is its own for ever, through any number of attempts.

    ``cut_short`` says that an earlier run began it, and that nobody knows what came of that.
    """

    effect: Effect
    key: str
    attempt: int = 1
    cut_short: bool = False
    outcome: Outcome | None = None


class Journal(Protocol):
    """The journal at one place of a thread. Raises what its storage does; then nothing may run."""

    async def begin(self, effect: Effect) -> Entry:
        """Put an intent on record, or find what is there of it."""

    async def again(self, entry: Entry) -> Entry:
        """Put on record that a call which was cut short is made once more."""

    async def end(self, entry: Entry, outcome: Outcome) -> None:
        """Put an outcome on record."""

    async def forget(self, entry: Entry) -> None:
        """Take an intent back: nothing was done."""

    async def cut_short(self, workspace: str) -> Sequence[Entry]:
        """Return what earlier runs began in a workspace here, and did not end."""


class NoJournal:
    """The journal of a run that nobody can take up again."""

    async def begin(self, effect: Effect) -> Entry:
        return Entry(effect, key=effect.digest[:16])

    async def again(self, entry: Entry) -> Entry:
        return replace(entry, attempt=entry.attempt + 1, cut_short=False)

    async def end(self, entry: Entry, outcome: Outcome) -> None:
        """Keep nothing."""

    async def forget(self, entry: Entry) -> None:
        """Keep nothing."""

    async def cut_short(self, workspace: str) -> Sequence[Entry]:  # noqa: ARG002 - a Journal
        return ()
