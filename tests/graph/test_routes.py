"""One table of states and outcomes for each router."""

from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from tests.parts import (
    GREEN,
    RED,
    a_call,
    a_clarification,
    a_failure,
    a_phase,
    a_plan,
    a_recovery,
    a_state,
    a_task,
    taken,
)

from daruma.graph import routes
from daruma.graph.machine import TABLE
from daruma.state import budget
from daruma.state.calls import set_status
from daruma.state.failure import RecoveryAction
from daruma.state.result import Structured
from daruma.state.steps import Compaction, Crowded, Grant, Overrun, Paying
from daruma.state.task import Amounts
from daruma.state.usage import Usage

SPENT: dict[str, Any] = {
    "overrun": Overrun(node="main", scope="task", measure="tokens", spent=2, limit=1)
}


def paused(node: Paying = "main", *, stopped: bool = False) -> dict[str, Any]:
    grant = Grant(node=node, scope="task", more=Amounts(), stopped=stopped)
    return {"steps": taken("pause", grant=grant)}


FAILED: dict[str, Any] = {"failure": a_failure()}
CROWDED: dict[str, Any] = {"crowded": Crowded(node="main", budget=1, fixed=2)}
ANSWERED: dict[str, Any] = {"messages": [AIMessage("Done.")]}
SAID: dict[str, Any] = {
    "messages": [AIMessage("Done."), HumanMessage("More.", id=f"t/1:steering:{'a' * 32}")]
}
SPENT_TOKENS: dict[str, Any] = {
    "task": a_task(limits={"spend": Amounts(tokens=1)}),
    "steps": taken("think", usage=Usage(role="main", model="stub", input_tokens=10)),
}
VERIFYING: dict[str, Any] = {"task": a_task(verify=True)}
THINKS, VERIFICATIONS = taken("think") * 3, taken("verify", ok=False) * 2
RED_ONCE: dict[str, Any] = {"verification": RED, "steps": taken("verify", ok=False)}
AT_VERIFY: dict[str, Any] = {"origin": a_failure(node="verify")}
RETRIED: dict[str, Any] = {"steps": taken("recover", recovery=a_recovery("retry"))}
UNRECOVERED: dict[str, Any] = FAILED | {"task": a_task(limits={"recoveries": 0})}
ASKED: dict[str, Any] = {"structured": Structured(schema={})}
SHAPED: dict[str, Any] = {"structured": Structured(schema={}, value={})}
AT_PLAN: dict[str, Any] = {"origin": a_failure(node="plan")}
DELEGATED = replace(a_call("d"), delegated=True)


def limited(**limits: int) -> dict[str, Any]:
    return {"task": a_task(verify=True, limits=limits)}


def planned(*phases: Any, current: str = "a", **values: Any) -> dict[str, Any]:
    plan = a_plan(*phases, current=current)
    fallen = next((phase.id for phase in phases if phase.status == "failed"), None)
    return {"task": a_task("plan_exec"), "plan": replace(plan, first_failed=fallen)} | values


def ended(outcome: str, **changes: Any) -> Any:
    """Phase ``a`` with an outcome, and the failure that comes with one."""
    good = outcome == "completed"
    reason = {} if good else {"failure": a_failure()}
    given = {"status": "completed" if good else "failed", "outcome": outcome}
    return a_phase("a", **given | reason | changes)


RED_CHECKS, CONTRADICTED = a_failure("verification_failed"), a_failure("plan_contradicted")
GAVE_UP = taken("plan", ok=False, signature=budget.GAVE_UP)


def anew(*phases: Any, replan: int = 1, **task: Any) -> dict[str, Any]:
    """A plan whose rest may be planned anew so often."""
    return planned(*phases) | {"task": a_task("plan_exec", limits={"replan": replan}, **task)}


RECOVERED: list[tuple[dict[str, Any], str]] = [
    ({}, "retried"),
    (FAILED, "exhausted"),
    (AT_PLAN, "replanned"),
    (AT_PLAN | FAILED, "hopeless"),
    (AT_VERIFY, "retried"),
    (AT_VERIFY | RETRIED, "rechecked"),
    (AT_VERIFY | {"steps": taken("recover", recovery=a_recovery("escalate"))}, "retried"),
    (AT_VERIFY | {"steps": taken("consult", recovery=a_recovery(carried="answered"))}, "retried"),
    (RETRIED, "retried"),
    ({"calls": (a_call(),)}, "act"),
    ({"calls": (a_call("a", "awaiting"),)}, "gated"),
    ({"calls": (a_call("a", "repairable"),)}, "broken"),
    ({"calls": (a_call("a", "failed"),)}, "answered"),
]
CASES: list[tuple[str, dict[str, Any], str]] = [
    ("intake", FAILED, "refused"),
    ("intake", {"task": a_task("plan_exec")}, "planned"),
    ("intake", {"task": a_task("team_collab")}, "planned"),
    ("intake", {"task": a_task("react")}, "direct"),
    ("intake", {"task": a_task("direct_chat")}, "direct"),
    ("plan", {"failure": a_failure("plan_refused")}, "hopeless"),
    ("plan", {"failure": a_failure("plan_rejected")}, "hopeless"),
    ("plan", FAILED, "failed"),
    ("plan", {}, "unusable"),
    ("plan", planned(a_phase("a"), task=a_task(review=True)), "proposed"),
    ("plan", planned(a_phase("a"), task=a_task(review=False)), "accepted"),
    ("plan", {"calls": (a_call(), a_call("b", "failed"))}, "looks"),
    ("plan", {"calls": (a_call("a", "failed"),)}, "looked"),
    ("plan", planned(ended("failed"), calls=(a_call(),)), "looks"),
    ("plan", planned(ended("failed")), "unusable"),
    ("plan", planned(ended("failed"), steps=taken("plan", ok=False)), "unusable"),
    ("plan", planned(ended("failed"), steps=GAVE_UP), "hopeless"),
    ("look", {}, "looked"),
    ("spec_review", planned(ended("failed")), "rejected"),
    ("spec_review", planned(a_phase("a")), "confirmed"),
    ("spec_review", {}, "rejected"),
    ("spec_review", {"plan": replace(a_plan(a_phase("a")), parked=True)}, "parked"),
    ("begin", {}, "begun"),
    ("begin", FAILED, "refused"),
    ("begin", {"task": a_task("team_collab")}, "shared"),
    ("member", {}, "reported"),
    ("merge", planned(ended("completed"), a_phase("b", "a")), "next"),
    ("merge", planned(ended("completed")), "completed"),
    ("merge", planned(ended("completed")) | ASKED, "unstructured"),
    ("merge", planned(ended("failed")), "failed"),
    ("merge", anew(ended("failed", failure=RED_CHECKS)), "replan"),
    ("settle", anew(ended("failed", failure=RED_CHECKS)), "replan"),
    ("settle", anew(ended("failed", failure=RED_CHECKS), a_phase("b")), "next"),
    ("settle", anew(ended("failed", failure=CONTRADICTED), a_phase("b")), "replan"),
    ("settle", anew(ended("failed", failure=CONTRADICTED), a_phase("b"), replan=0), "next"),
    ("settle", anew(ended("failed", failure=RED_CHECKS), replan=0), "failed"),
    ("settle", anew(ended("failed", failure=RED_CHECKS), expert="tester"), "failed"),
    ("settle", anew(ended("failed", failure=a_failure("internal_error"))), "failed"),
    ("settle", anew(ended("failed", failure=replace(a_failure(), final=True))), "failed"),
    ("settle", anew(ended("failed", failure=replace(a_failure(), original_error="X"))), "failed"),
    ("settle", anew(ended("blocked", failure=a_failure("approval_denied"))), "failed"),
    ("rollback", anew(ended("failed", failure=RED_CHECKS)), "replan"),
    ("merge", {"calls": (set_status(DELEGATED, "done"),)}, "answered"),
    ("merge", planned(a_phase("a"), calls=(set_status(DELEGATED, "failed"),)), "answered"),
    ("delegate", {"calls": (DELEGATED, a_call("b", "awaiting"))}, "shared"),
    ("delegate", {"calls": (set_status(DELEGATED, "failed"), a_call("b", "awaiting"))}, "answered"),
    ("main", {"calls": (DELEGATED, a_call("b"))}, "act"),
    *(
        (node, {"calls": (DELEGATED, a_call("b", "awaiting"))}, "delegated")
        for node in ("main", "repair", "gate", "recovery", "consult")
    ),
    ("main", FAILED | {"calls": (a_call(),)}, "failed"),
    ("main", {"clarification": a_clarification()}, "asked"),
    ("main", planned(a_phase("a"), clarification=a_clarification()), "unclear"),
    ("main", FAILED | {"clarification": a_clarification(status="given_up")}, "fatal"),
    ("main", FAILED | {"clarification": a_clarification("t/0", status="given_up")}, "failed"),
    ("main", VERIFYING | {"clarification": a_clarification(status="resumed")}, "candidate"),
    ("main", {"clarification": a_clarification("t/0")}, "final"),
    ("clarify", {}, "answered"),
    ("main", VERIFYING, "candidate"),
    ("main", {}, "final"),
    ("main", ANSWERED, "completed"),
    ("main", ANSWERED | ASKED, "final"),
    ("main", ANSWERED | {"verification": RED}, "final"),
    ("main", planned(a_phase("a"), **ANSWERED), "final"),
    ("main", VERIFYING | {"steps": VERIFICATIONS}, "final"),
    ("main", {"calls": (a_call("a"), a_call("b", "awaiting"))}, "act"),
    ("main", {"calls": (a_call("a", "done"), a_call("b", "awaiting"))}, "gated"),
    (
        "main",
        {"calls": (a_call("b", "awaiting"),), "clarification": a_clarification()},
        "gated",
    ),
    ("main", {"calls": (a_call("a"), a_call("b", "failed"))}, "act"),
    ("main", {"calls": (a_call("a", "failed"),)}, "answered"),
    ("main", {"calls": (a_call("a", "repairable"), a_call("b", "awaiting"))}, "broken"),
    ("repair", {"calls": (a_call("a", "repairable"), a_call("b", "awaiting"))}, "broken"),
    ("repair", {"calls": (a_call("a"), a_call("b", "awaiting"))}, "act"),
    ("repair", {"calls": (a_call("a", "failed"), a_call("b", "awaiting"))}, "gated"),
    ("repair", {"calls": (a_call("a"), a_call("b", "failed"))}, "act"),
    ("repair", {"calls": (a_call("a", "failed"),)}, "answered"),
    ("gate", FAILED | {"calls": (a_call("a", "awaiting"),)}, "blocked"),
    ("gate", {"calls": (a_call("a"), a_call("b", "awaiting"))}, "act"),
    ("gate", {"calls": (a_call("a", "done"), a_call("b", "awaiting"))}, "gated"),
    ("gate", {"calls": (a_call("a"), a_call("b", "rejected"))}, "act"),
    ("gate", {"calls": (a_call("a", "rejected"),)}, "answered"),
    ("tool", {}, "answered"),
    ("verify", FAILED, "failed"),
    ("verify", VERIFYING | {"verification": GREEN}, "passed"),
    ("verify", VERIFYING | SAID | {"verification": GREEN}, "passed"),
    ("verify", VERIFYING | SAID, "returned"),
    ("verify", limited(reflect=1) | RED_ONCE, "returned"),
    ("verify", limited(reflect=0) | RED_ONCE, "returned"),
    ("verify", limited(reflect=0, reinjections=0) | RED_ONCE, "exhausted"),
    ("verify", VERIFYING | {"verification": RED, "steps": THINKS}, "exhausted"),
    ("verify", VERIFYING | {"verification": RED, "steps": VERIFICATIONS}, "exhausted"),
    (
        "verify",
        limited(reflect=0, verify=9) | {"verification": RED, "steps": VERIFICATIONS},
        "exhausted",
    ),
    (
        "verify",
        limited(reflect=1, verify=9)
        | {"verification": RED, "steps": [*taken("verify", ok=False), *taken("reflect")]},
        "returned",
    ),
    (
        "verify",
        limited(reflect=1, verify=9) | {"verification": RED, "steps": VERIFICATIONS},
        "rejected",
    ),
    ("verify", limited(reflect=1, reinjections=0) | RED_ONCE, "rejected"),
    ("reflect", {}, "learned"),
    ("main", CROWDED, "crowded"),
    ("plan", CROWDED, "crowded"),
    ("reflect", CROWDED, "crowded"),
    *(
        (node, FAILED | SPENT, "spent")
        for node in ("main", "plan", "reflect", "verify", "recovery")
    ),
    ("pause", paused("main"), "answerable"),
    ("pause", {"steps": taken("pause")}, "answerable"),
    ("pause", {"steps": taken("pause"), "failure": a_failure("stopped")}, "stopped"),
    ("pause", paused("plan"), "plannable"),
    ("pause", paused("reflect"), "reflectable"),
    ("pause", paused("verify"), "checkable"),
    ("pause", FAILED | paused("recovery"), "recoverable"),
    ("pause", ASKED | paused("structure"), "structurable"),
    (
        "pause",
        FAILED | planned(ended("completed"), **paused("structure", stopped=True)),
        "hopeless",
    ),
    ("pause", paused("main", stopped=True), "checkable"),
    ("pause", FAILED | paused("main", stopped=True), "stopped"),
    ("pause", FAILED | paused("plan", stopped=True), "hopeless"),
    ("compress", {"compaction": Compaction()}, "answerable"),
    ("compress", {"compaction": Compaction(asked_by="plan")}, "plannable"),
    ("compress", {"compaction": Compaction(asked_by="reflect")}, "reflectable"),
    ("compress", FAILED | {"compaction": Compaction()}, "fatal"),
    ("compress", planned(ended("failed"), steps=GAVE_UP), "plannable"),
    ("main", UNRECOVERED, "fatal"),
    ("plan", UNRECOVERED, "hopeless"),
    ("verify", UNRECOVERED, "exhausted"),
    ("recovery", FAILED | {"action": RecoveryAction(strategy="retry")}, "unsure"),
    *((node, values, outcome) for node in ("recovery", "consult") for values, outcome in RECOVERED),
    ("settle", ANSWERED, "completed"),
    ("settle", ANSWERED | ASKED, "unstructured"),
    ("settle", ANSWERED | SHAPED, "completed"),
    ("settle", planned(ended("completed")) | ASKED, "unstructured"),
    ("settle", ANSWERED | FAILED, "failed"),
    ("settle", {}, "failed"),
    ("settle", planned(ended("completed")), "completed"),
    ("settle", planned(ended("completed"), a_phase("b", "a")), "next"),
    ("settle", planned(ended("failed")), "failed"),
    ("settle", planned(ended("failed"), a_phase("b")), "next"),
    ("settle", planned(ended("failed", rollback_command="undo")), "undone"),
    ("settle", planned(ended("failed", rollback="snapshot")), "undone"),
    ("settle", planned(ended("failed", validation_command="true")), "undone"),
    ("settle", planned(ended("blocked", rollback="snapshot")), "failed"),
    (
        "settle",
        planned(ended("failed", rollback="snapshot", failure=a_failure(node="begin"))),
        "failed",
    ),
    ("settle", planned(ended("completed", rollback_command="undo")), "completed"),
    ("settle", planned(ended("blocked"), a_phase("b")), "failed"),
    ("settle", planned(ended("failed"), a_phase("b", status="completed"), current="b"), "failed"),
    ("settle", SAID, "steered"),
    ("settle", planned(a_phase("a", status="running")) | SAID, "steered"),
    ("settle", planned(ended("completed")) | SAID, "completed"),
    ("settle", SAID | FAILED, "failed"),
    ("settle", SAID | limited(think=0), "failed"),
    ("settle", SAID | SPENT_TOKENS, "failed"),
    ("settle", planned(ended("cancelled", rollback="snapshot"), a_phase("b")), "failed"),
    ("rollback", FAILED | planned(ended("failed"), a_phase("b")), "failed"),
    ("rollback", planned(ended("failed"), a_phase("b")), "next"),
    ("rollback", planned(ended("failed")), "failed"),
    ("emergency", {}, "stated"),
    ("finish", {}, "ended"),
    ("finish", FAILED, "ended"),
    ("finish", {"failure": a_failure("rollback_failed")}, "held"),
    ("finish", SAID, "steered"),
    ("finish", SAID | SHAPED, "steered"),
    ("finish", planned(ended("completed")) | SAID, "ended"),
    ("finish", {"messages": [*SAID["messages"], AIMessage("Done.")]}, "ended"),
    ("structure", ANSWERED | SHAPED, "structured"),
    ("structure", ANSWERED | ASKED, "again"),
    ("structure", ANSWERED | ASKED | FAILED, "failed"),
    ("structure", ANSWERED | ASKED | SPENT, "spent"),
    ("hold", planned(ended("failed"), failure=a_failure("rollback_failed")), "again"),
    ("hold", planned(ended("failed"), a_phase("b")), "next"),
    ("hold", planned(ended("failed")), "failed"),
]


@pytest.mark.parametrize(("node", "values", "outcome"), CASES)
def test_the_outcome_follows_from_the_state(
    node: str, values: dict[str, Any], outcome: str
) -> None:
    """Pure: the same state has the same outcome, and no other part of the world counts."""
    router = getattr(routes, f"after_{node}")

    assert router(a_state(**values)) == outcome


def test_the_cases_show_every_outcome() -> None:
    """Nothing in the table is without an example."""
    shown = {(node, outcome) for node, _, outcome in CASES}
    every = {(node, outcome) for node, (_, edges) in TABLE.items() for outcome in edges}

    assert every == shown
