"""The machine, as data: ``node -> (router, {outcome: next node})``. The whole of it is here.

How it works. A task is a walk through this table, from ``intake`` to the end behind ``finish``. One
step of the walk is one superstep of LangGraph: a node reads the state and returns an update, which
is written down before the next node begins; then the node's router, a pure function of the state,
names an outcome, and the table says which node that leads to. A node names no other node, asks no
clock but the run's, and keeps nothing for itself: what is remembered is the state
(``state/channels.py``), and budgets are counted from the steps that it holds. ``Each`` sends out
one task per item, and all of them join again in the same node. A question to a person is an
interrupt: the same node goes on with the reply, in whichever process. An exception goes to the
error handler, which moves the agent where ``ON_BUG`` says, the dotted edges of the picture. Every
cycle spends a budget, so every walk ends; what it ends with is one ``TaskResult`` (MO-07).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from langgraph.constants import END

from daruma.graph import routes
from daruma.state.calls import Dispatch, calls_to_run
from daruma.state.channels import State
from daruma.state.spending import assignments

ENTRY = "intake"
MEMBER_ENTRY = "main"
"""Where the machine of a team member begins: with a phase that was begun for it."""


@dataclass(frozen=True)
class Each:
    """A target that is entered once for every item, all at the same time."""

    node: str
    items: Callable[[State], list[object]]


def ready_calls(state: State) -> list[object]:
    """Return what the tool node is sent: one dispatch for each call that may run."""
    if state.task is None:
        return []
    from daruma.tools.workspace_tools import candidate_paths  # not read to look (FA-13)

    phase = state.plan.current if state.plan else None
    return [
        Dispatch(
            task=state.task, call=call, shown=candidate_paths(call, state.messages), phase_id=phase
        )
        for call in calls_to_run(state.calls)
    ]


Target = str | Each
Router = Callable[[Any], str]

EACH_TOOL = Each("tool", ready_calls)
EACH_LOOK = Each("look", lambda state: ready_calls(replace(state, plan=None)))
"""The planner's calls are of no phase."""
EACH_MEMBER = Each("member", assignments)

CALLED: dict[str, Target] = {
    "act": EACH_TOOL,
    "delegated": "delegate",
    "broken": "repair",
    "gated": "gate",
    "answered": "main",
}
"""Where the calls of an answer lead."""

RECOVERED: dict[str, Target] = {
    "retried": "main",
    "replanned": "plan",
    "rechecked": "verify",
    **CALLED,
    "exhausted": "settle",
    "hopeless": "emergency",
}
"""Where an action against a failure leads; never back to recovery itself."""

TABLE: dict[str, tuple[Router, dict[str, Target]]] = {
    "intake": (routes.after_intake, {"planned": "plan", "direct": "main", "refused": "emergency"}),
    "plan": (
        routes.after_plan,
        {
            "looks": EACH_LOOK,
            "looked": "plan",
            "proposed": "spec_review",
            "accepted": "begin",
            "unusable": "plan",
            "hopeless": "emergency",
            "failed": "recovery",
            "crowded": "compress",
            "spent": "pause",
        },
    ),
    "look": (routes.after_look, {"looked": "plan"}),
    "spec_review": (
        routes.after_spec_review,
        {"confirmed": "begin", "rejected": "plan", "parked": "spec_review"},
    ),
    "begin": (routes.after_begin, {"begun": "main", "shared": EACH_MEMBER, "refused": "settle"}),
    "member": (routes.after_member, {"reported": "merge"}),
    "merge": (
        routes.after_merge,
        {
            "next": "begin",
            "replan": "plan",
            "completed": "finish",
            "unstructured": "structure",
            "failed": "emergency",
            "answered": "main",
        },
    ),
    "main": (
        routes.after_main,
        {
            **CALLED,
            "asked": "finish",
            "unclear": "clarify",
            "candidate": "verify",
            "completed": "finish",
            "final": "settle",
            "failed": "recovery",
            "fatal": "settle",
            "crowded": "compress",
            "spent": "pause",
        },
    ),
    "compress": (
        routes.after_compress,
        {"answerable": "main", "plannable": "plan", "reflectable": "reflect", "fatal": "settle"},
    ),
    "repair": (routes.after_repair, CALLED),
    "gate": (
        routes.after_gate,
        {
            "act": EACH_TOOL,
            "delegated": "delegate",
            "gated": "gate",
            "answered": "main",
            "blocked": "settle",
        },
    ),
    "tool": (routes.after_tool, {"answered": "main"}),
    "delegate": (routes.after_delegate, {"shared": EACH_MEMBER, "answered": "main"}),
    "clarify": (routes.after_clarify, {"answered": "main"}),
    "verify": (
        routes.after_verify,
        {
            "passed": "settle",
            "rejected": "reflect",
            "returned": "main",
            "exhausted": "settle",
            "failed": "recovery",
            "spent": "pause",
        },
    ),
    "reflect": (routes.after_reflect, {"learned": "main", "crowded": "compress", "spent": "pause"}),
    "recovery": (routes.after_recovery, {"unsure": "consult", "spent": "pause", **RECOVERED}),
    "consult": (routes.after_consult, RECOVERED),
    "pause": (
        routes.after_pause,
        {
            "answerable": "main",
            "plannable": "plan",
            "reflectable": "reflect",
            "checkable": "verify",
            "recoverable": "recovery",
            "structurable": "structure",
            "stopped": "settle",
            "hopeless": "emergency",
        },
    ),
    "settle": (
        routes.after_settle,
        {
            "next": "begin",
            "replan": "plan",
            "steered": "main",
            "undone": "rollback",
            "completed": "finish",
            "unstructured": "structure",
            "failed": "emergency",
        },
    ),
    "structure": (
        routes.after_structure,
        {"structured": "finish", "again": "structure", "failed": "emergency", "spent": "pause"},
    ),
    "rollback": (routes.after_rollback, {"next": "begin", "replan": "plan", "failed": "emergency"}),
    "emergency": (routes.after_emergency, {"stated": "finish"}),
    "finish": (routes.after_finish, {"ended": END, "held": "hold", "steered": "main"}),
    "hold": (routes.after_hold, {"again": "rollback", "next": "begin", "failed": "emergency"}),
}

IN_A_PHASE = (
    "main",
    "compress",
    "repair",
    "gate",
    "delegate",
    "clarify",
    "verify",
    "reflect",
    "recovery",
    "consult",
    "pause",
)

ON_BUG: dict[str, str] = {
    **dict.fromkeys(TABLE, "emergency"),
    **dict.fromkeys(IN_A_PHASE, "settle"),
    "tool": "main",
    "look": "plan",
    "member": "merge",
    "emergency": "finish",
    "finish": END,
}
"""Where a bug in a node leads. In a phase it ends that phase, as any failure would.

A tool's leads where its siblings go, so that all calls join.
"""

NOT_A_MEMBERS = (
    *("intake", "plan", "look", "spec_review", "begin", "structure"),
    *("delegate", "member", "merge"),
)
"""What only the task itself goes through, not a member of its team, nor a helper."""


def of_a_member() -> dict[str, tuple[Router, dict[str, Target]]]:
    """Return the table of a team member: the same, without what comes before and after a phase."""
    return {
        name: (router, {out: to for out, to in edges.items() if node_of(to) not in NOT_A_MEMBERS})
        for name, (router, edges) in TABLE.items()
        if name not in NOT_A_MEMBERS
    }


def node_of(target: Target) -> str:
    """Return the node that a target leads to."""
    return target.node if isinstance(target, Each) else target


# --- The machine drawn from its table, with the edges that only error handlers take.


def mermaid() -> str:
    """Return the machine as a Mermaid flowchart.

    Solid edges are the table's, labelled with their outcomes; thick ones are entered once for each
    item. Dotted edges are the error handlers', drawn once where several nodes share one.
    """
    lines = ["flowchart TD", '    __start__(["start"]) --> ' + ENTRY]
    for name, (_, outcomes) in TABLE.items():
        by_target: dict[Target, list[str]] = {}
        for outcome, target in outcomes.items():
            by_target.setdefault(target, []).append(outcome)
        for target, labels in by_target.items():
            arrow = "==>" if isinstance(target, Each) else "-->"
            end = '__end__(["end"])' if target == END else node_of(target)
            lines.append(f"    {name} {arrow}|{', '.join(labels)}| {end}")
    groups: dict[str, list[str]] = {}
    for name, target in ON_BUG.items():
        groups.setdefault(target, []).append(name)
    most = max(groups, key=lambda target: len(groups[target]))
    for target, names in groups.items():
        end = "__end__" if target == END else target
        if len(names) == 1:
            lines.append(f"    {names[0]} -.->|bug| {end}")
        else:
            where = "any other node" if target == most else ", ".join(names)
            lines.append(f'    bug_{target}{{{{"a bug in {where}"}}}} -.-> {end}')
    return "\n".join(lines) + "\n"
