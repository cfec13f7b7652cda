"""What a model is given to plan with: tools that read, its list of steps, a no to the plan."""

from dataclasses import replace
from typing import Final

from pydantic import Field

from daruma.state.calls import ToolTask, with_status
from daruma.state.channels import State
from daruma.state.events import TodoChanged
from daruma.state.failure import Failure
from daruma.state.messages import TODO, TodoStatus, render_todo
from daruma.state.record import change_record
from daruma.tools.calls import Registry, Surroundings, Tool, ToolArgs, VisibleTools, shipped_tool

# --- What a planner may look with: by what a tool declares, whatever its name.


def reading_tools(offer: VisibleTools) -> VisibleTools:
    """Return those of the tools that change nothing, at least in some of their calls (PL-01a).

    A planner has neither steps to note nor helpers.
    """
    reading = [t for t in offer.tools if t.reads and t.toolset not in ("planning", "team")]
    return replace(offer, tools=tuple(reading))


def read_only_call(call: ToolTask, offer: VisibleTools) -> ToolTask:
    """Return a planner's call as it is if it reads and asks nobody, else as one that has failed."""
    tool = offer.find(call.name)
    if call.status == "ready" and tool and tool.only_reads(call.args):
        return call
    told = call.reason if call.status in ("failed", "repairable") else ""
    return change_record(call, status="failed", reason=told or NOT_READING)


NOT_READING: Final = "not run: while planning, only what reads and asks nobody can be called"


# --- The model's short list of its own steps.

MOST_STEPS: Final = 20
_LONGEST: Final = 200


class TodoItem(ToolArgs):
    """One step of the list."""

    text: str = Field(min_length=1, max_length=_LONGEST, description="The step, on one line.")
    status: TodoStatus = Field(default="pending", description="How far it is.")


class TodoArgs(ToolArgs):
    """Keep a short list of your own steps, which people watch.

    Give the whole list each time. It is worth it for work of three steps or more: mark a step as
    in_progress when you begin it, and as done as soon as it is.
    """

    items: list[TodoItem] = Field(max_length=MOST_STEPS, description="All steps, in order.")


async def _todo(args: TodoArgs, at: Surroundings) -> str:
    items = [(" ".join(each.text.split()), each.status) for each in args.items]
    told = tuple({"text": text, "status": str(status)} for text, status in items)
    at.emit(TodoChanged(items=told))
    return render_todo(items)


# --- Saying that the plan can not be carried out as it is.

REVISE_PLAN: Final = "revise_plan"


class RevisePlanArgs(ToolArgs):
    """Say that what you found contradicts the plan, so that the rest of it is planned anew.

    It ends this phase, which counts as failed. Call it by itself, and only where the phase can not
    be done as the plan says, or no longer makes sense; what you can mend yourself, mend.
    """

    why: str = Field(min_length=1, max_length=500, description="What contradicts it, in a line.")


async def _revise_plan(args: RevisePlanArgs, at: Surroundings) -> str:  # noqa: ARG001
    return "Noted: this phase ends here, and the rest is planned anew."


PLANNING_TOOLS: Final[tuple[Tool, ...]] = (
    shipped_tool(TODO, TodoArgs, "none", _todo, toolset="planning"),
    shipped_tool(REVISE_PLAN, RevisePlanArgs, "none", _revise_plan, toolset="planning"),
)


def contradiction_in(state: State, tools: Registry) -> Failure | None:
    """Return what a phase ends with that has said no to its plan by a call; else None (PL-01b)."""
    tool = tools.named(REVISE_PLAN)
    if state.plan is None or tool is None or not tool.builtin:
        return None
    revisions = (call for call in with_status(state.calls, "done") if call.name == REVISE_PLAN)
    said = next(revisions, None)
    if said is None:
        return None
    why = " ".join(str(said.args.get("why", "")).split())
    return Failure(code="plan_contradicted", node="main", message=why)
