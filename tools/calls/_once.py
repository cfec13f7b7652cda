"""Doing what a call does once, whatever the machine is killed in the middle of (DU-06)."""

from collections.abc import Awaitable, Callable
from typing import Final

from langgraph.errors import GraphInterrupt

from daruma.state.calls import ToolTask
from daruma.state.events import CallSettled, Event
from daruma.state.interrupts import Question
from daruma.state.settings import Settings
from daruma.state.text import digest
from daruma.tools.calls._journal import (
    Effect,
    Journal,
    JournalEntry,
    Outcome,
    Settles,
    Turn,
    only_looks,
)
from daruma.tools.calls._tool import Tool
from daruma.tools.calls.policy._policy import COMMANDS, decide, is_known_safe
from daruma.tools.errors import GroundsChanged, OutcomeUnknown, ToolError
from daruma.tools.sandbox import Sandbox, SandboxUnavailable
from daruma.tools.threads import NotStarted

# --- What running a call changes, and what is done about one that was cut short (DU-06).


async def call_effect(
    call: ToolTask,
    tool: Tool,
    workspace: str | None,
    settings: Settings,
    open_sandbox: Callable[[], Awaitable[Sandbox]],
) -> Effect | None:
    """Return the effect of a call; None for one that changes nothing, and may be made twice."""
    if tool.effect == "none" or only_looks(tool, call.args):
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
    outcome = entry.outcome or _said(call, entry)
    await journal.end(entry, outcome)
    return outcome


def _said(call: ToolTask, entry: JournalEntry) -> Outcome:
    if entry.cut_short:
        how = f"{call.name} was cut short when the process ended, and is no longer there"
        return Outcome("unknown", f"Error: {OutcomeUnknown(how)}")
    return Outcome("failed", f"Error: the tool {call.name!r} is no longer there")


# --- Doing what a call does once, whatever the machine is killed in the middle of (DU-06).

Work = Callable[[str], Awaitable[Outcome]]
"""Makes the call; it is given the key by which its effect is known for ever."""

Asking = Callable[[Question], str]
"""Asks a person, and returns one of the question's options."""

HAPPENED: Final = "happened"
AGAIN: Final = "again"
UNKNOWN_OUTCOME: Final = "unknown"

WAYS: Final = {
    HAPPENED: "happened: it took effect; the agent goes on, without its result",
    AGAIN: "again: it did not, or may be done twice; it is run again, as things are now",
    UNKNOWN_OUTCOME: "unknown: the agent is told so, and looks for itself",
}

_HAPPENED: Final = "A person says that {name} took effect; what it said was lost."


async def run_once(
    call: ToolTask,
    effect: Effect,
    turn: Turn,
    journal: Journal,
    work: Work,
    ask: Asking,
    emit: Callable[[Event], None],
) -> Outcome:
    """Make a call, or find what came of it: an outcome that is on record stands.

    ``turn`` is the caller's turn in the workspace: a call that an earlier run began and did not end
    is settled as its effect says, before anything else happens there.
    """
    entry = await journal.begin(effect)
    if entry.outcome is None and entry.cut_short:
        entry, settled = await _settled(call, entry, turn, journal, ask, emit)
        if settled:
            await journal.end(entry, settled)
            return settled
    if entry.outcome:
        emit(CallSettled(call_id=call.id, tool=call.name, how="reused"))
        return entry.outcome
    return await _made(entry, journal, work)


async def _made(entry: JournalEntry, journal: Journal, work: Work) -> Outcome:
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
    ask: Asking,
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
        how = _answered(call, entry, ask)
    emit(CallSettled(call_id=call.id, tool=call.name, how=how, undo=undo))
    if how == HAPPENED:
        return entry, Outcome("done", _HAPPENED.format(name=call.name))
    if how in (UNKNOWN_OUTCOME, "tell"):
        said = OutcomeUnknown(f"{call.name} was cut short when the process ended")
        return entry, Outcome("unknown", f"Error: {said}")
    return await journal.again(entry), None


def _answered(call: ToolTask, entry: JournalEntry, ask: Asking) -> str:
    """Ask once for each time that it was cut short: an old answer is not one to a new question."""
    return [ask(question_of(call, n)) for n in range(1, entry.attempt + 1)][-1]


def question_of(call: ToolTask, attempt: int) -> Question:
    """Build the question what became of a call."""
    shown = ", ".join(f"{name}={value!r:.200}" for name, value in call.args.items())
    return Question(
        type="question",
        id=f"{call.result_id}:in_doubt:{attempt}",
        question=f"outcome_unknown: {call.name}({shown}) was cut short, before what came of it was "
        "on record. Did it take effect?",
        context="\n".join(WAYS.values()),
        deadline=None,
        options=list(WAYS),
    )
