"""The journal of effects (DU-06), and turns of the calls that change one workspace."""

from asyncio import Lock
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Protocol

from daruma.state.calls import ToolTaskStatus
from daruma.tools.calls._results import Image
from daruma.tools.calls._tool import Tool
from daruma.tools.snapshots import (
    ChangedBy,
    Restored,
    RestoreRefused,
    Snapshot,
    Snapshots,
    SnapshotsAround,
    SnapshotUnavailable,
    put_back_to,
    with_snapshots,
)
from daruma.tools.threads import in_thread

# --- The journal of effects, as tools see it: what is about to be done, and what came of it
# (DU-06).
#
# An intent is durable before anything is done, so that a call that was cut short is known as one.
# An outcome is durable before the machine is told of it, so that a killed run need not do it again.

Settles = Literal["again", "restore", "ask", "tell"]
"""What becomes of a call that was cut short. See :func:`daruma.tools.calls._once.settles`."""


@dataclass(frozen=True)
class Effect:
    """A call that changes something: which one it is, and a digest of exactly what it does."""

    call: str
    digest: str
    settles: Settles
    workspace: str = ""


@dataclass(frozen=True)
class Outcome:
    """What came of a call, as the machine is told; ``reference`` is the id of a longer text.

    ``unchanged`` says that snapshots around it were the same: it changed nothing in the workspace;
    ``seconds`` is how long the call was at work, so that a killed run's time is not lost.
    ``images`` belong to the text.
    """

    status: ToolTaskStatus
    text: str
    reference: str = ""
    unchanged: bool = False
    seconds: float = 0.0
    images: Sequence[Image] = ()


@dataclass(frozen=True)
class JournalEntry:
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

    async def begin(self, effect: Effect) -> JournalEntry:
        """Put an intent on record, or find what is there of it."""

    async def again(self, entry: JournalEntry) -> JournalEntry:
        """Put on record that a call which was cut short is made once more."""

    async def end(self, entry: JournalEntry, outcome: Outcome) -> None:
        """Put an outcome on record."""

    async def forget(self, entry: JournalEntry) -> None:
        """Take an intent back: nothing was done."""

    async def cut_short(self, workspace: str) -> Sequence[JournalEntry]:
        """Return what earlier runs began in a workspace here, and did not end."""


class NoJournal:
    """The journal of a run that nobody can take up again."""

    async def begin(self, effect: Effect) -> JournalEntry:
        return JournalEntry(effect, key=effect.digest[:16])

    async def again(self, entry: JournalEntry) -> JournalEntry:
        return replace(entry, attempt=entry.attempt + 1, cut_short=False)

    async def end(self, entry: JournalEntry, outcome: Outcome) -> None:
        """Keep nothing."""

    async def forget(self, entry: JournalEntry) -> None:
        """Keep nothing."""

    async def cut_short(self, workspace: str) -> Sequence[JournalEntry]:  # noqa: ARG002 - a Journal
        return ()


# --- Keeping the workspace around a tool call, as its effect asks for.

EDITOR: Final = "str_replace_editor"


def snapshots_around(
    tool: Tool, args: Mapping[str, Any], snapshots: Snapshots | None, key: str
) -> AbstractAsyncContextManager[SnapshotsAround | None]:
    """Return what a call runs in: a whole look before and after a command, one file for an edit.

    A whole look yields what :func:`~daruma.tools.snapshots.with_snapshots` does.

    A tool that changes nothing in the workspace, by its own word, needs none. ``key`` is the
    call's in the journal: by it what was there before is found again.
    """
    if snapshots is None or tool.effect != "workspace" or only_looks(tool, args):
        return nullcontext()
    what = f"{tool.name} {key}"
    if tool.builtin and tool.name == EDITOR:
        return _edit(args, snapshots, what)
    return with_snapshots(snapshots, what)


def only_looks(tool: Tool, args: Mapping[str, Any]) -> bool:
    """Whether a call of a tool that can change files is one that does not."""
    return tool.builtin and tool.name == EDITOR and args.get("command") == "view"


def is_before(label: str, key: str) -> bool:
    """Whether the snapshot of a label was taken before the call of a key."""
    return label.startswith("before ") and label.endswith(f" {key}")


@asynccontextmanager
async def _edit(args: Mapping[str, Any], snapshots: Snapshots, what: str) -> AsyncIterator[None]:
    """Note what an edit leaves. The editor itself keeps what was there before."""
    path = str(args.get("path", ""))
    with suppress(SnapshotUnavailable):
        await in_thread(snapshots.open, f"before {what}")
    yield
    with suppress(SnapshotUnavailable):
        await in_thread(snapshots.note, [path], f"edit of {path}")


# --- Calls that change one workspace take turns, so that one that was cut short can be undone
# alone.
#
# Whoever comes first in a run undoes what an earlier run was killed in the middle of: before
# anything is built on it.


@dataclass
class Turn:
    """The turn in one workspace. ``undone`` has, by its key, what each call that was undone left.

    A key that is missing is that of a call which could not be undone.
    """

    lock: Lock = field(default_factory=Lock)
    undone: dict[str, Restored | None] | None = None


class Turns:
    """The turns of one run."""

    def __init__(self) -> None:
        self._turns: dict[str, Turn] = {}
        self._approved: dict[str, Lock] = {}

    def one_by_one(self, workspace: str | None) -> Lock:
        """Return what the approved calls of a task wait for, wherever they write (TL-02)."""
        return self._approved.setdefault(workspace or "", Lock())

    @asynccontextmanager
    async def turn(
        self, workspace: str, snapshots: Snapshots | None, journal: Journal
    ) -> AsyncIterator[Turn]:
        """Wait for one's turn in a workspace; an effect elsewhere needs none."""
        if not workspace:
            yield Turn(undone={})
            return
        turn = self._turns.setdefault(workspace, Turn())
        async with turn.lock:
            if turn.undone is None:
                turn.undone = await _undone(workspace, snapshots, journal)
            yield turn


async def _undone(
    workspace: str, snapshots: Snapshots | None, journal: Journal
) -> dict[str, Restored | None]:
    undone: dict[str, Restored | None] = {}
    for entry in await journal.cut_short(workspace):
        if snapshots is not None and entry.effect.settles == "restore":
            try:
                restored = await in_thread(put_back, snapshots, entry.key)
            except (SnapshotUnavailable, RestoreRefused):
                continue
            if restored is None or restored.exact:
                undone[entry.key] = restored
    return undone


def put_back(snapshots: Snapshots, key: str) -> Restored | None:
    """Put a workspace back to how it was before a call. Blocks.

    None if nothing of the call is there: it had not begun, or was put back by a run that was killed
    later. What others changed since the call had ended is kept. Where it was killed half-way nobody
    can tell what others did: what was there is in the snapshot ``Restored.before``. Raises
    :class:`~daruma.tools.snapshots.SnapshotUnavailable` where the call may have been made
    on another machine, or more was done since, which would be undone with it; ``RestoreRefused``
    where others changed what it had changed.
    """
    snapshots.recover()
    kept = snapshots.kept()
    if not kept:
        raise SnapshotUnavailable("this machine has no snapshots of the thread's work")
    begun = [n for n, each in enumerate(kept) if each.opens and is_before(each.label, key)]
    if not begun:
        return None
    before, since = kept[begun[-1]], kept[begun[-1] + 1 :]
    if _is_put_back(before, since):
        return None
    _refuse_more(snapshots, before, since)
    last: ChangedBy = "work" if kept[-1].opens else "others"
    return snapshots.restore(before.id, last=last)


def _is_put_back(before: Snapshot, since: Sequence[Snapshot]) -> bool:
    return any(each.label == put_back_to(before) and each.root == before.root for each in since)


def _refuse_more(snapshots: Snapshots, before: Snapshot, since: Sequence[Snapshot]) -> None:
    """Raise SnapshotUnavailable if anything but this one call is known to have changed files."""
    own = put_back_to(before)
    if any(each.opens or (each.by == "undo" and each.label != own) for each in since):
        raise SnapshotUnavailable("more was done on this thread since the call was cut short")
    if snapshots.used_by_others(before):
        raise SnapshotUnavailable("another thread was at work here since the call was cut short")
