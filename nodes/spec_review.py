"""The human gate on the plan: nothing is done before a person has seen what will be."""

from dataclasses import replace

from langchain_core.messages import HumanMessage
from langgraph.types import interrupt

from daruma.state.channels import State, Update
from daruma.state.emergency import words_of
from daruma.state.events import SpecReviewCompleted, TaskCompleted
from daruma.state.interrupts import Confirm, Edit, Park, SpecReviewRequest, read_reply
from daruma.state.plan import Plan
from daruma.state.plan_reading import plan_from
from daruma.state.result_of import result_of
from daruma.state.task_events import task_started
from daruma.tools.context import Context


async def spec_review(state: State, context: Context) -> Update:
    """Ask for the plan to be confirmed, rejected with feedback, edited, or parked (PL-02, PL-03).

    A parked plan has the result of its task, so far, and is asked about again without a deadline.
    """
    question = review_request(state, context.settings.spec_review.timeout)
    reply = read_reply(question, interrupt(question))
    review_id, plan = question["spec_review_id"], proposed(state)
    decision = "timeout" if isinstance(reply, Park) else reply.decision
    if plan.parked and state.task:
        context.emit(task_started(state.task))
    context.emit(SpecReviewCompleted(spec_review_id=review_id, decision=decision))
    if isinstance(reply, Park):
        return _parked(state, context)
    if isinstance(reply, Confirm):
        return {"plan": replace(plan, parked=False)}
    if isinstance(reply, Edit):
        goal = question["goal"]
        return {"plan": plan_from(reply.plan, plan_id=plan.id, goal=goal, strict=True)}
    note = f"The plan was rejected: {reply.feedback}. Plan anew."
    return {"plan": None, "messages": [HumanMessage(note, id=f"{review_id}:feedback")]}


def _parked(state: State, context: Context) -> Update:
    said = words_of(context.settings.fallback_chain).parked
    context.emit(TaskCompleted(task_id=state.task_id, status="parked", output=said))
    result = result_of(state, "parked", said, context.now())
    return {"plan": replace(proposed(state), parked=True), "result": result}


def review_request(state: State, timeout: float) -> SpecReviewRequest:
    """Build the question; its deadline counts from when the plan was made."""
    plan = proposed(state)
    made = max((step.at + step.seconds for step in state.steps if step.kind == "plan"), default=0)
    question = SpecReviewRequest(
        type="spec_review_request",
        id=f"{plan.id}:spec_review",
        spec_review_id=f"{plan.id}:spec_review",
        goal=plan.goal,
        phases=[phase.to_dict() for phase in plan.phases],
        deadline=None if plan.parked else made + timeout,
    )
    return SpecReviewRequest(**question, parked=True) if plan.parked else question


def proposed(state: State) -> Plan:
    """Return the plan under review."""
    if state.plan is None:
        raise LookupError("there is no plan to review")
    return state.plan
