"""The machine, as data: ``node -> (router, {outcome: next node})``. The whole of it is here.

Only error handlers move the agent another way, where ``ON_BUG`` says (see ``handlers.py``): the
dotted edges of the picture.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from langgraph.graph import END

from daruma.graph import routes
from daruma.state.channels import State
from daruma.state.tool_task import Dispatch, with_status

ENTRY = "intake"


@dataclass(frozen=True)
class Each:
    """A target that is entered once for every item, all at the same time."""

    node: str
    items: Callable[[State], list[object]]


def ready_calls(state: State) -> list[object]:
    """Return what the tool node is sent: one dispatch for each call that may run."""
    if state.task is None:
        return []
    return [Dispatch(task=state.task, call=c) for c in with_status(state.calls, "ready")]


Target = str | Each
Router = Callable[[Any], str]

EACH_TOOL = Each("tool", ready_calls)

RECOVERED: dict[str, Target] = {
    "retried": "main",
    "replanned": "plan",
    "rechecked": "verify",
    "act": EACH_TOOL,
    "broken": "repair",
    "gated": "gate",
    "answered": "main",
    "exhausted": "settle",
    "hopeless": "emergency",
}
"""Where an action against a failure leads; never back to recovery itself."""

TABLE: dict[str, tuple[Router, dict[str, Target]]] = {
    "intake": (
        routes.after_intake,
        {"planned": "plan", "direct": "main", "refused": "emergency"},
    ),
    "plan": (
        routes.after_plan,
        {
            "proposed": "spec_review",
            "accepted": "begin",
            "unusable": "plan",
            "hopeless": "emergency",
            "failed": "recovery",
        },
    ),
    "spec_review": (
        routes.after_spec_review,
        {"confirmed": "begin", "rejected": "plan", "parked": "spec_review"},
    ),
    "begin": (routes.after_begin, {"begun": "main", "refused": "settle"}),
    "main": (
        routes.after_main,
        {
            "act": EACH_TOOL,
            "broken": "repair",
            "gated": "gate",
            "answered": "main",
            "candidate": "verify",
            "final": "settle",
            "failed": "recovery",
            "fatal": "settle",
        },
    ),
    "repair": (
        routes.after_repair,
        {"act": EACH_TOOL, "broken": "repair", "gated": "gate", "answered": "main"},
    ),
    "gate": (
        routes.after_gate,
        {"act": EACH_TOOL, "gated": "gate", "answered": "main", "blocked": "settle"},
    ),
    "tool": (routes.after_tool, {"answered": "main"}),
    "verify": (
        routes.after_verify,
        {
            "passed": "settle",
            "rejected": "reflect",
            "returned": "main",
            "exhausted": "settle",
            "failed": "recovery",
        },
    ),
    "reflect": (routes.after_reflect, {"learned": "main"}),
    "recovery": (
        routes.after_recovery,
        {"unsure": "consult", **RECOVERED},
    ),
    "consult": (routes.after_consult, RECOVERED),
    "settle": (
        routes.after_settle,
        {"next": "begin", "undone": "rollback", "completed": "finish", "failed": "emergency"},
    ),
    "rollback": (
        routes.after_rollback,
        {"next": "begin", "failed": "emergency"},
    ),
    "emergency": (routes.after_emergency, {"stated": "finish"}),
    "finish": (routes.after_finish, {"ended": END, "held": "hold"}),
    "hold": (routes.after_hold, {"again": "rollback", "next": "begin", "failed": "emergency"}),
}

IN_A_PHASE = ("main", "repair", "gate", "verify", "reflect", "recovery", "consult")

ON_BUG: dict[str, str] = {
    **dict.fromkeys(TABLE, "emergency"),
    **dict.fromkeys(
        ("main", "repair", "gate", "verify", "reflect", "recovery", "consult"), "settle"
    ),
    "tool": "main",
    "emergency": "finish",
    "finish": END,
}
"""Where a bug in a node leads. In a phase it ends that phase, as any failure would.

A tool's leads where its siblings go, so that all calls join.
"""


def node_of(target: Target) -> str:
    """Return the node that a target leads to."""
    return target.node if isinstance(target, Each) else target
