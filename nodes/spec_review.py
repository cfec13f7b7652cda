"""The human gate on the plan: nothing is done before a person has seen what will be."""

from collections.abc import Sequence
from dataclasses import replace

from langchain_core.messages import HumanMessage

from daruma.state.channels import State, Update
from daruma.state.emergency import words_of
from daruma.state.events import SpecReviewCompleted, TaskCompleted, task_started
from daruma.state.interrupts import Confirm, Edit, Park, SpecReviewRequest, ask_person, edited_plan
from daruma.state.messages import looked_at
from daruma.state.outcome import result_of
from daruma.state.plan import Plan
from daruma.tools.context import Context
from daruma.tools.team import TemplateRefused, team_of


async def spec_review(state: State, context: Context) -> Update:
    """Ask for the plan to be confirmed, rejected with feedback, edited, or parked (PL-02, PL-03).

    A parked plan has the result of its task, so far, and is asked about again without a deadline.
    """
    experts = await _expert_names(state, context)
    question = review_request(state, context.settings.spec_review.timeout, experts)
    reply = ask_person(question, context.now(), context.emit)
    review_id, plan = question["spec_review_id"], plan_under_review(state)
    decision = "timeout" if isinstance(reply, Park) else reply.decision
    if plan.parked and state.task:
        context.emit(task_started(state.task))
    context.emit(SpecReviewCompleted(spec_review_id=review_id, decision=decision))
    if isinstance(reply, Park):
        said = words_of(context.settings.fallback_chain).parked
        context.emit(TaskCompleted(task_id=state.task_id, status="parked", output=said))
        result = result_of(state, "parked", said, context.now())
        return {"plan": replace(plan, parked=True), "result": result}
    if isinstance(reply, Confirm):
        return {"plan": replace(plan, parked=False)}
    if isinstance(reply, Edit):
        return {"plan": edited_plan(question, reply, plan.id, plan.before)}
    note = f"The plan was rejected: {reply.feedback}. Plan anew."
    return {"plan": plan.before, "messages": [HumanMessage(note, id=f"{review_id}:feedback")]}


async def _expert_names(state: State, context: Context) -> tuple[str, ...]:
    try:
        team = await team_of(state.task, context.settings)
    except TemplateRefused:  # its file was changed since: those whom the plan names are known
        named = (phase.expert for phase in plan_under_review(state).phases if phase.expert)
        return tuple(dict.fromkeys(named))
    return team.names if team else ()


def review_request(state: State, timeout: float, experts: Sequence[str] = ()) -> SpecReviewRequest:
    """Build the question; its deadline counts from when the plan was made."""
    plan = plan_under_review(state)
    made = max((step.at + step.seconds for step in state.steps if step.kind == "plan"), default=0)
    request = SpecReviewRequest(
        type="spec_review_request",
        id=f"{plan.id}:spec_review",
        spec_review_id=f"{plan.id}:spec_review",
        goal=plan.goal,
        phases=[phase.to_dict() for phase in plan.phases],
        deadline=None if plan.parked else made + timeout,
    )
    if plan.parked:
        request["parked"] = True
    if experts:
        request["experts"] = list(experts)
    if looks := looked_at(state.messages, state.task_id):
        request["looked_at"] = looks
    if plan.before:
        request["why"] = plan.before.why
    return request


def plan_under_review(state: State) -> Plan:
    """Return the plan under review."""
    if state.plan is None:
        raise LookupError("there is no plan to review")
    return state.plan
