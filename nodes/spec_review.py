"""The human gate on the plan: nothing is done before a person has seen what will be."""

from langchain_core.messages import HumanMessage
from langgraph.types import interrupt

from daruma.state.channels import State, Update
from daruma.state.events import SpecReviewCompleted
from daruma.state.interrupts import Confirm, Edit, SpecReviewRequest, read_reply
from daruma.state.plan import Plan
from daruma.state.plan_reading import plan_from
from daruma.tools.context import Context


async def spec_review(state: State, context: Context) -> Update:
    """Ask for the plan to be confirmed, rejected with feedback, or edited (PL-02)."""
    question = review_request(state, context.settings.spec_review.timeout)
    reply = read_reply(question, interrupt(question))
    review_id = question["spec_review_id"]
    context.emit(SpecReviewCompleted(spec_review_id=review_id, decision=reply.decision))
    if isinstance(reply, Confirm):
        return {"plan": proposed(state)}
    if isinstance(reply, Edit):
        plan_id, goal = proposed(state).id, question["goal"]
        return {"plan": plan_from(reply.plan, plan_id=plan_id, goal=goal, strict=True)}
    note = f"The plan was rejected: {reply.feedback}. Plan anew."
    return {"plan": None, "messages": [HumanMessage(note, id=f"{review_id}:feedback")]}


def review_request(state: State, timeout: float) -> SpecReviewRequest:
    """Build the question; its deadline counts from when the plan was made."""
    plan = proposed(state)
    made = max((step.at + step.seconds for step in state.steps if step.kind == "plan"), default=0)
    return SpecReviewRequest(
        type="spec_review_request",
        id=f"{plan.id}:spec_review",
        spec_review_id=f"{plan.id}:spec_review",
        goal=plan.goal,
        phases=[phase.to_dict() for phase in plan.phases],
        deadline=made + timeout,
    )


def proposed(state: State) -> Plan:
    """Return the plan under review."""
    if state.plan is None:
        raise LookupError("there is no plan to review")
    return state.plan
