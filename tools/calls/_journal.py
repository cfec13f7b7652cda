"""Doing what a call does once (DU-06): its effect, the journal, one at a time in a workspace."""

from asyncio import Lock
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from daruma.state.calls import ToolTask
from daruma.state.events import CallSettled, Event
from daruma.state.interrupts import (
    Answer,
    Question,
    ReplyRefused,
    ask_once,
    question_closed,
    read_reply,
)
from daruma.state.settings import Settings
from daruma.state.text import digest
from daruma.tools.calls._results import Effect, Journal, JournalEntry, Outcome, Settles
from daruma.tools.calls._tool import Tool
from daruma.tools.calls.policy._policy import COMMANDS, decide, is_known_safe
from daruma.tools.errors import GroundsChanged, OutcomeUnknown, ToolError
from daruma.tools.sandbox import Sandbox, SandboxUnavailable
from daruma.tools.snapshots import (
    ChangedBy,
    Restored,
    RestoreRefused,
    Snapshots,
    SnapshotsAround,
    SnapshotUnavailable,
    put_back_to,
    with_snapshots,
)
from daruma.tools.threads import NotStarted, in_thread

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
    if snapshots is None or tool.effect != "workspace" or tool.only_reads(args):
        return nullcontext()
    what = f"{tool.name} {key}"
    if tool.builtin and tool.name == EDITOR:
        return _edit(args, snapshots, what)
    return with_snapshots(snapshots, what)


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


class WorkspaceTurns:
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
                undone: dict[str, Restored | None] = {}
                for entry in await journal.cut_short(workspace):
                    if snapshots is not None and entry.effect.settles == "restore":
                        with suppress(SnapshotUnavailable, RestoreRefused):
                            restored = await in_thread(put_back, snapshots, entry.key)
                            if restored is None or restored.exact:
                                undone[entry.key] = restored
                turn.undone = undone
            yield turn


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
    labels = [each.label if each.opens else "" for each in kept]
    begun = [n for n, s in enumerate(labels) if s.startswith("before ") and s.endswith(f" {key}")]
    if not begun:
        return None
    before, since = kept[begun[-1]], kept[begun[-1] + 1 :]
    if any(each.label == put_back_to(before) and each.root == before.root for each in since):
        return None
    own = put_back_to(before)
    if any(each.opens or (each.by == "undo" and each.label != own) for each in since):
        raise SnapshotUnavailable("more was done on this thread since the call was cut short")
    if snapshots.used_by_others(before):
        raise SnapshotUnavailable("another thread was at work here since the call was cut short")
    last: ChangedBy = "work" if kept[-1].opens else "others"
    return snapshots.restore(before.id, last=last)


# --- What running a call changes, and what is done about one that was cut short (DU-06).


async def call_effect(
    call: ToolTask,
    tool: Tool,
    workspace: str | None,
    settings: Settings,
    open_sandbox: Callable[[], Awaitable[Sandbox]],
) -> Effect | None:
    """Return the effect of a call; None for one that changes nothing, and may be made twice."""
    if call.read_only or tool.only_reads(call.args):
        return None
    here = tool.effect == "workspace" and workspace is not None
    confined = here and await _confined(call, tool, settings, open_sandbox)
    kept = settings.rollback.snapshots
    return Effect(
        call=call.result_id,
        digest=digest([call.name, call.args]),
        settles=settles(tool, call, settings, restores=confined and kept),
        workspace=workspace if here and workspace else "",
    )


def settles(tool: Tool, call: ToolTask, settings: Settings, *, restores: bool) -> Settles:
    """Say what becomes of a call that was cut short, and may or may not have had its effect.

    What can be made twice is made again. What can only have changed the workspace, whose state
    from before is kept (``restores``), is undone and made again. About anything else a person is
    asked, or the model is told, as the policy says.
    """
    if tool.repeatable:
        return "again"
    if restores:
        return "restore"
    return decide(tool, call.args, settings.tools).in_doubt or settings.tools.in_doubt


async def _confined(
    call: ToolTask,
    tool: Tool,
    settings: Settings,
    open_sandbox: Callable[[], Awaitable[Sandbox]],
) -> bool:
    """Whether a call can have changed nothing outside of the workspace."""
    if not tool.builtin or tool.name not in COMMANDS:
        return True  # by its own word, or as it is written
    if tool.name == "run_tests" or is_known_safe(call.args):
        return True
    if settings.sandbox.network:
        return False
    try:
        return (await open_sandbox()).level != "none"
    except (SandboxUnavailable, ToolError):
        return False


# --- What is said of a call whose tool is no longer there: it may have been made while it was.


async def outcome_without_tool(call: ToolTask, journal: Journal) -> Outcome:
    """Return what came of a call as far as it is on record; else that there is no such tool."""
    effect = Effect(call.result_id, digest([call.name, call.args]), "tell")
    entry = await journal.begin(effect)
    outcome = Outcome("failed", f"Error: the tool {call.name!r} is no longer there")
    if entry.cut_short:
        how = f"{call.name} was cut short when the process ended, and is no longer there"
        outcome = Outcome("unknown", f"Error: {OutcomeUnknown(how)}")
    await journal.end(entry, entry.outcome or outcome)
    return entry.outcome or outcome


# --- Doing what a call does once, whatever the machine is killed in the middle of (DU-06).

HAPPENED: Final = "happened"
AGAIN: Final = "again"
UNKNOWN: Final = "unknown"

WAYS: Final = {
    HAPPENED: "happened: it took effect; the agent goes on, without its result",
    AGAIN: "again: it did not, or may be done twice; it is run again, as things are now",
    UNKNOWN: "unknown: the agent is told so, and looks for itself",
}


async def run_once(
    call: ToolTask,
    effect: Effect,
    turn: Turn,
    journal: Journal,
    work: Callable[[str], Awaitable[Outcome]],
    ask: Callable[[Question], str],
    emit: Callable[[Event], None],
) -> Outcome:
    """Make a call, or find what came of it: an outcome that is on record stands.

    ``turn`` is the caller's turn in the workspace: a call that an earlier run began and did not end
    is settled as its effect says, before anything else happens there. ``work`` makes the call; it
    is given the key by which its effect is known for ever. ``ask`` asks a person, and returns one
    of the question's options.
    """
    from langgraph.errors import GraphInterrupt  # readers of threads import no LangGraph (FA-13)

    entry = await journal.begin(effect)
    if entry.outcome is None and entry.cut_short:
        entry, settled = await _settled(call, entry, turn, journal, ask, emit)
        if settled:
            await journal.end(entry, settled)
            return settled
    if entry.outcome:
        emit(CallSettled(call_id=call.id, tool=call.name, how="reused"))
        return entry.outcome
    try:
        outcome = await work(entry.key)
    except (GraphInterrupt, NotStarted, GroundsChanged):  # a tool asks, or it never began
        await journal.forget(entry)
        raise
    await journal.end(entry, outcome)
    return outcome


async def _settled(
    call: ToolTask,
    entry: JournalEntry,
    turn: Turn,
    journal: Journal,
    ask: Callable[[Question], str],
    emit: Callable[[Event], None],
) -> tuple[JournalEntry, Outcome | None]:
    """Return the call as it is made once more, or what stands for its outcome."""
    undone = turn.undone or {}
    how: str = entry.effect.settles
    undo = None
    if how == "restore" and entry.key in undone:
        restored = undone[entry.key]
        undo = restored.before if restored else None
    elif how in ("restore", "ask"):
        # Once for each time that it was cut short: an old answer is not one to a new question.
        how = [ask(question_of(call, n)) for n in range(1, entry.attempt + 1)][-1]
    emit(CallSettled(call_id=call.id, tool=call.name, how=how, undo=undo))
    if how == HAPPENED:
        said = f"A person says that {call.name} took effect; what it said was lost."
        return entry, Outcome("done", said)
    if how in (UNKNOWN, "tell"):
        error = OutcomeUnknown(f"{call.name} was cut short when the process ended")
        return entry, Outcome("unknown", f"Error: {error}")
    return await journal.again(entry), None


def question_of(call: ToolTask, attempt: int) -> Question:
    """Build the question what became of a call."""
    shown = ", ".join(f"{name}={value!r:.200}" for name, value in call.args.items())
    return Question(
        type="question",
        kind="doubt",
        id=f"{call.result_id}:in_doubt:{attempt}",
        question=f"outcome_unknown: {call.name}({shown}) was cut short, before what came of it was "
        "on record. Did it take effect?",
        context="\n".join(WAYS.values()),
        deadline=None,
        options=list(WAYS),
    )


def ask_outcome(question: Question, at: float, emit: Callable[[Event], None]) -> str:
    """Ask a person what became of a call. An answer that does not fit means that nobody knows.

    It was given to the tool's own question, asked before: LangGraph tells answers by their order.
    """
    given = ask_once(question, at)
    try:
        reply: Answer = read_reply(question, given)
    except ReplyRefused:
        reply = Answer(answer=UNKNOWN)
    emit(question_closed(question, reply))
    return reply.answer
