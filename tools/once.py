"""Doing what a call does once, whatever the machine is killed in the middle of (DU-06)."""

from collections.abc import Awaitable, Callable
from typing import Final

from langgraph.errors import GraphInterrupt

from daruma.state.events import CallSettled
from daruma.state.interrupts import Question
from daruma.state.tool_task import ToolTask
from daruma.tools.context import Context
from daruma.tools.errors import OutcomeUnknown
from daruma.tools.journal import Effect, Entry, Outcome
from daruma.tools.tool_threads import NotStarted
from daruma.tools.turns import Turn

Work = Callable[[str], Awaitable[Outcome]]
"""Makes the call; it is given the key by which its effect is known for ever."""

Asking = Callable[[Question], str]
"""Asks a person, and returns one of the question's options."""

HAPPENED: Final = "happened"
AGAIN: Final = "again"
UNKNOWN: Final = "unknown"

WAYS: Final = {
    HAPPENED: "happened: it took effect; the agent goes on, without its result",
    AGAIN: "again: it did not, or may be done twice; it is run again, as things are now",
    UNKNOWN: "unknown: the agent is told so, and looks for itself",
}

_HAPPENED: Final = "A person says that {name} took effect; what it said was lost."


async def once(
    call: ToolTask, effect: Effect | None, context: Context, work: Work, ask: Asking
) -> Outcome:
    """Make a call, or find what came of it: an outcome that is on record stands.

    One that an earlier run began and did not end is settled as its effect says, before anything
    else happens in the same workspace.
    """
    if effect is None:
        return await work("")
    snapshots = context.snapshots(effect.workspace or None)
    async with context.turns.turn(effect.workspace, snapshots, context.journal) as turn:
        entry = await context.journal.begin(effect)
        if entry.outcome is None and entry.cut_short:
            entry, settled = await _settled(call, entry, turn, context, ask)
            if settled:
                await context.journal.end(entry, settled)
                return settled
        if entry.outcome:
            context.emit(CallSettled(call_id=call.id, tool=call.name, how="reused"))
            return entry.outcome
        return await _made(entry, context, work)


async def _made(entry: Entry, context: Context, work: Work) -> Outcome:
    try:
        outcome = await work(entry.key)
    except (GraphInterrupt, NotStarted):  # a tool asks in its own words; or it never began
        await context.journal.forget(entry)
        raise
    await context.journal.end(entry, outcome)
    return outcome


async def _settled(
    call: ToolTask, entry: Entry, turn: Turn, context: Context, ask: Asking
) -> tuple[Entry, Outcome | None]:
    """Return the call as it is made once more, or what stands for its outcome."""
    undone = turn.undone or {}
    how: str = entry.effect.settles
    undo = None
    if how == "restore" and entry.key in undone:
        restored = undone[entry.key]
        undo = restored.before if restored else None
    elif how in ("restore", "ask"):
        how = _answered(call, entry, ask)
    context.emit(CallSettled(call_id=call.id, tool=call.name, how=how, undo=undo))
    if how == HAPPENED:
        return entry, Outcome("done", _HAPPENED.format(name=call.name))
    if how in (UNKNOWN, "tell"):
        said = OutcomeUnknown(f"{call.name} was cut short when the process ended")
        return entry, Outcome("unknown", f"Error: {said}")
    return await context.journal.again(entry), None


def _answered(call: ToolTask, entry: Entry, ask: Asking) -> str:
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
