"""What a person can be asked, and what counts as an answer.

Every value has a ``type``, an ``id`` of its own and a ``deadline`` (Unix seconds, or null). A reply
is checked before the graph runs, so one that does not fit changes nothing.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NotRequired, TypeGuard

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from daruma.state.calls import Approval, read_pattern
from daruma.state.errors import DarumaError
from daruma.state.plan import Phase, Plan, PlanRefused, plan_from
from daruma.state.spending import amount_in

if TYPE_CHECKING:  # readers of threads import no LangGraph with it (FA-13)
    from langgraph.types import Interrupt

    from daruma.state import events


class ReplyRefused(DarumaError):
    """Raised when a reply does not fit its question, which stays open; says what would fit."""


class AnsweredAlready(ReplyRefused):
    """Raised for a second reply to a question: one counts, the first."""


def _holding(*texts: str, **kinds: Any) -> AfterValidator:
    kinds |= dict.fromkeys(texts, str)

    def check(value: Any) -> Any:
        if all(isinstance(value.get(key), kind) for key, kind in kinds.items()):
            return value
        raise ValueError

    return AfterValidator(check)


_CALL: Final = ("approval_id", "digest", "tool", "reason", "deny_effect", "sandbox", "shown")


class SpecReviewRequest(TypedDict):
    """The plan, before anything is done (PL-02); of a team, with its experts' names.

    One that nobody confirmed in time is ``parked``: it is asked about again, without a deadline.
    ``looked_at`` are the calls with which the planner looked around, a line each (PL-01a); ``why``
    says why it takes the place of another plan, whose completed phases it begins with (PL-01b).
    """

    type: Literal["spec_review_request"]
    id: str
    spec_review_id: str
    goal: str
    phases: list[Annotated[dict[str, Any], _holding("title")]]
    experts: NotRequired[list[str]]
    looked_at: NotRequired[list[str]]
    why: NotRequired[str]
    deadline: float | None
    parked: NotRequired[bool]


class ApprovalRequest(TypedDict):
    """All calls of one answer that need a person."""

    type: Literal["approval_request"]
    id: str
    approvals: list[Annotated[dict[str, Any], _holding(*_CALL, args=dict, required=bool)]]
    deadline: float | None


class RecoveryRequest(TypedDict):
    """What recovery would do about a failure, before it is done (RE-06): RE-04's fields."""

    type: Literal["recovery_request"]
    id: str
    failure: str
    action: Annotated[dict[str, Any], _holding("strategy", confidence=float | int)]
    deadline: float | None


class Question(TypedDict):
    """A question that only a person can answer; where there are ``options``, with one of them.

    With ``amounts`` an amount of one of these will do as well, such as ``tokens 50000``.
    """

    type: Literal["question"]
    kind: NotRequired[Literal["budget", "clarification", "doubt", "recovery", "rollback"]]
    id: str
    question: str
    context: str
    deadline: float | None
    options: NotRequired[list[str]]
    amounts: NotRequired[list[str]]


class _Reply(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Confirm(_Reply):
    decision: Literal["confirm"]
    spec_review_id: str | None = None


class Reject(_Reply):
    decision: Literal["reject"]
    feedback: str = Field(pattern=r"\S")
    spec_review_id: str | None = None


class Edit(_Reply):
    decision: Literal["edit"]
    plan: dict[str, Any]
    spec_review_id: str | None = None


class Park(_Reply):
    """Not now: what the end of the deadline replies (PL-03)."""

    decision: Literal["park"]


Scope = Literal["thread", "workspace"]
"""Where a yes holds for calls to come."""


class Decision(_Reply):
    """About one call. ``always`` gives the yes for calls to come that fit the ``pattern`` (TL-25).

    Without a pattern that is the call with exactly these arguments.
    """

    approval_id: str
    digest: str
    decision: Literal["approve", "deny", "edit"]
    reason: str = ""
    args: dict[str, Any] | None = None
    always: Scope | None = None
    pattern: str = ""


class Decisions(_Reply):
    decisions: list[Decision] = Field(min_length=1)


class Answer(_Reply):
    answer: str = Field(pattern=r"\S")


class Approve(_Reply):
    decision: Literal["approve"]


class Deny(_Reply):
    decision: Literal["deny"]
    reason: str = ""


class Instruct(_Reply):
    decision: Literal["instruct"]
    text: str = Field(pattern=r"\S")


ReviewReply = Annotated[Confirm | Reject | Edit | Park, Field(discriminator="decision")]
RecoveryReply = Annotated[Approve | Deny | Instruct, Field(discriminator="decision")]

_REPLIES: dict[str, tuple[TypeAdapter[Any], str]] = {
    "spec_review_request": (
        TypeAdapter(ReviewReply),
        '{"decision": "confirm"}, {"decision": "reject", "feedback"}, {"decision": "edit", "plan"}',
    ),
    "approval_request": (
        TypeAdapter(Decisions),
        (
            '{"decisions": [{"approval_id": "...", "digest": "...", "decision": "approve"}]}, '
            'or "deny" with a "reason", or "edit" with "args"'
        ),
    ),
    "recovery_request": (
        TypeAdapter(RecoveryReply),
        '{"decision": "approve"}, {"decision": "deny"}, {"decision": "instruct", "text": "..."}',
    ),
    "question": (TypeAdapter(Answer), '{"answer": "..."}'),
}


_Questions = SpecReviewRequest | ApprovalRequest | RecoveryRequest | Question
_QUESTIONS: Final[TypeAdapter[Any]] = TypeAdapter(
    Annotated[_Questions, Field(discriminator="type")]
)


def reply_form(value: object) -> str:
    """Return what a reply to an interrupt's value looks like; anything fits that of a tool."""
    form = _REPLIES[value["type"]][1] if is_question(value) else "any JSON"
    lasting = is_question(value) and any(each.get("always") for each in value.get("approvals", ()))
    return form + '; with "approve" may go "always"' * lasting


def reply_schema(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of the replies to a question of this module."""
    adapter, _ = _REPLIES[value["type"]]
    schema = adapter.json_schema()
    if options := value.get("options"):
        choice = {"enum": [*options]}
        amount = {"pattern": rf"^(?:{'|'.join(value.get('amounts', ()))})\s+\d"}
        either = {"anyOf": [choice, amount]} if value.get("amounts") else choice
        schema["properties"]["answer"] = {"type": "string", **either}
    return schema


def is_question(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether an interrupt's value has the whole form of a question of this module (FA-08)."""
    try:
        _QUESTIONS.validate_python(value, strict=True)
    except ValidationError:
        return False
    return True


def told_question(value: object) -> Mapping[str, Any]:
    """Return a question of this module as it is; what a tool asks, with its raw value as text."""
    if is_question(value):
        return value
    worded = isinstance(value, Mapping) and isinstance(value.get("question"), str)
    told = value if isinstance(value, Mapping) and worded else {"question": repr(value)}
    return {**told, "type": "tool_question"}


def notes_on_plan(value: Mapping[str, Any]) -> dict[str, str]:
    """Return what stands beside a plan under review, by a label; empty texts for nothing."""
    return {
        "planned anew because": value.get("why", ""),
        "looked at": "; ".join(value.get("looked_at", ())),
    }


# --- What a question is about, for lists and events of questions.

_KINDS: Final = {
    "spec_review_request": "plan",
    "approval_request": "approval",
    "recovery_request": "recovery",
}

KINDS: Final = ("approval", "budget", "clarification", "doubt", "plan", "recovery", "rollback")
"""What the questions of this module are about; an interrupt of a tool has the kind ``tool``."""


def kind_of(value: object) -> str:
    """Return what an interrupt's value is about: one of ``KINDS``, or ``tool``."""
    if not is_question(value):
        return "tool"
    return _KINDS.get(value["type"]) or str(value.get("kind", "recovery"))


def question_id(asked: "Interrupt") -> str:
    """Return the own id of a question; of a tool's, its interrupt's."""
    return str(asked.value["id"]) if is_question(asked.value) else asked.id


def summary_of(value: object) -> str:
    """Return what an interrupt's value asks, in one line."""
    if not is_question(value):
        return " ".join(str(value).split())
    if value["type"] == "spec_review_request":
        number = len(value["phases"])
        text = f"{value['goal']} ({number} phase{'s' * (number != 1)})"
    elif value["type"] == "approval_request":
        calls = value["approvals"]
        text = "; ".join(f"{c['tool']}: {c.get('command') or c['shown']}" for c in calls)
    else:
        text = value["failure" if value["type"] == "recovery_request" else "question"]
    return " ".join(text.split())


def request_event(asked: "Interrupt") -> "events.Event":
    """Build the event for a question of this module that opens (PL-04)."""
    from daruma.state import events  # not read to look at threads (FA-13)

    value: Any = asked.value
    kinds: dict[str, Any] = {
        "spec_review_request": events.SpecReviewRequested,
        "approval_request": events.ApprovalRequested,
    }
    opened: events.Event = kinds.get(value["type"], events.QuestionRequested)(
        id=value["id"], interrupt_id=asked.id, kind=kind_of(value), question={**value}
    )
    return opened


def read_reply(value: Mapping[str, Any], reply: object, *, shown: bool = True) -> Any:
    """Return a reply in its typed form.

    Raises :class:`ReplyRefused` when it does not fit the question ``value``. Where that is not what
    was ``shown``, but what would be now, the digests of a reply are not compared: they are the
    asking node's to look at.
    """
    adapter, form = _REPLIES[value["type"]]
    try:
        typed = adapter.validate_python(reply)
    except ValidationError:
        article = "an" if value["type"].startswith("a") else "a"
        raise ReplyRefused(f"a reply to {article} {value['type']} has the form {form}") from None
    if isinstance(typed, Decisions):
        _check_decisions(value, typed, shown=shown)
    elif isinstance(typed, Confirm | Reject | Edit):
        _check_review(value, typed)
    elif isinstance(typed, Park) and value.get("parked"):
        raise ReplyRefused("this plan is parked already: confirm, reject or edit it")
    elif isinstance(typed, Answer) and value.get("options"):
        return _chosen(value["options"], typed, value.get("amounts", ()))
    return typed


def _chosen(options: Sequence[str], reply: Answer, amounts: Sequence[str] = ()) -> Answer:
    """Return an answer that is one of the options, in its spelling, or an amount."""
    for option in options:
        if reply.answer.strip().casefold() == option.casefold():
            return Answer(answer=option)
    found = amount_in(reply.answer)
    if found and found[0] in amounts:
        return Answer(answer=reply.answer.strip())
    also = [f"{amount} NUMBER" for amount in amounts]
    raise ReplyRefused(f"the answer has to be one of: {', '.join([*options, *also])}")


def _check_review(value: Mapping[str, Any], reply: Confirm | Reject | Edit) -> None:
    if reply.spec_review_id not in (None, value["spec_review_id"]):
        raise ReplyRefused(
            f"the open review is {value['spec_review_id']!r}, not {reply.spec_review_id!r}"
        )
    if isinstance(reply, Edit):
        try:
            edited_plan(value, reply, value["id"])
        except PlanRefused as error:
            raise ReplyRefused(f"the edited plan can not be run: {error}") from None


def edited_plan(
    value: Mapping[str, Any], reply: Edit, plan_id: str, before: Plan | None = None
) -> Plan:
    """Return the plan that a person put in place of the one under review.

    What is completed of the plan ``before`` stays as it is, given back or not.
    Raises :class:`~daruma.state.plan.PlanRefused` for one that can not be carried out.
    """
    experts, given = value.get("experts", ()), reply.plan.get("phases")
    done = [each for each in value["phases"] if each.get("status") == "completed"]
    content = reply.plan
    if done and isinstance(given, list):
        names = {each["id"] for each in done}
        left = [p for p in given if not (isinstance(p, Mapping) and p.get("id") in names)]
        content = {**reply.plan, "phases": left}
        known = tuple(Phase(id=p["id"], title=p["title"], status="completed") for p in done)
        before = before or Plan(id=plan_id, goal=value["goal"], phases=known)
    return plan_from(
        content, plan_id=plan_id, goal=value["goal"], experts=experts, strict=True, before=before
    )


def _check_decisions(value: Mapping[str, Any], reply: Decisions, *, shown: bool) -> None:
    """Refuse decisions that do not name open approvals by their id and digest (TL-13)."""
    open_ones = {approval["approval_id"]: approval["digest"] for approval in value["approvals"]}
    if len({decision.approval_id for decision in reply.decisions}) < len(reply.decisions):
        raise ReplyRefused("an approval is decided twice in one reply: decide each of them once")
    for decision in reply.decisions:
        if decision.approval_id not in open_ones:
            raise ReplyRefused(
                f"no approval {decision.approval_id!r} is open; open: {', '.join(open_ones)}"
            )
        if shown and decision.digest != open_ones[decision.approval_id]:
            raise ReplyRefused(
                f"the digest given for {decision.approval_id!r} is not that of what would run"
            )
        if (decision.decision == "edit") != (decision.args is not None):
            raise ReplyRefused(f"{decision.approval_id!r}: args go with edit, and only with it")
        if said := _misfit_of_always(value, decision):
            raise ReplyRefused(f"{decision.approval_id!r}: {said}")


def _misfit_of_always(value: Mapping[str, Any], decision: Decision) -> str:
    """Say why a yes can not be given for calls to come; empty where it can, or is not."""
    if decision.always is None:
        return "a pattern goes with always" if decision.pattern else ""
    if decision.decision != "approve":
        return "always goes with approve"
    asked = {each["approval_id"]: each for each in value["approvals"]}[decision.approval_id]
    offered = asked.get("always", ())
    if decision.always not in offered:
        scopes = f"it can be for: {', '.join(offered)}" if offered else "not for this call"
        return f"a yes can not be given for the {decision.always}; {scopes}"
    try:
        read_pattern(asked["tool"], asked["args"], decision.pattern)
    except ValueError as error:
        return str(error)
    return ""


def approval_request(
    approvals: tuple[Approval, ...], told: str = "", scopes: Sequence[Scope] = ()
) -> ApprovalRequest:
    """Build the one question for all calls that need a person; ``told`` stands with each.

    A yes can be given for calls to come in the ``scopes``.
    """
    shown = [
        {
            "approval_id": approval.approval_id,
            "digest": approval.digest,
            "tool": approval.tool,
            "args": approval.args,
            "reason": approval.reason,
            "required": approval.required,
            "deny_effect": approval.deny_effect,
            "sandbox": approval.sandbox,
            "not_covered": list(approval.not_covered),
            "shown": approval.shown,
            "warnings": [*approval.warnings, *([told] if told else [])],
            **({"always": [*scopes]} if scopes and approval.lasting else {}),
            **({"command": approval.command} if approval.command else {}),
            **({"cwd": approval.cwd} if approval.cwd else {}),
        }
        for approval in approvals
    ]
    return ApprovalRequest(
        type="approval_request",
        id=":".join(approval.approval_id for approval in approvals),
        approvals=shown,
        deadline=None,
    )


# --- A question in the form that chat clients render: LangChain's request for a human in the loop.
#
# It stands beside our own form of the question, and says the same: what was shown is what runs.

Allowed = Literal["approve", "edit", "reject", "respond"]


class ActionRequest(TypedDict):
    """One thing that a person decides on; ``description`` is all that was to be said about it."""

    name: str
    args: dict[str, Any]
    description: str


class ReviewConfig(TypedDict):
    """What may be decided about the actions of one name."""

    action_name: str
    allowed_decisions: list[Allowed]


class Inbox(TypedDict):
    """The keys that the inbox of a chat client looks for."""

    action_requests: NotRequired[list[ActionRequest]]
    review_configs: NotRequired[list[ReviewConfig]]


PLAN: Final = "plan"
RECOVERY: Final = "recovery"
ANSWER: Final = "answer"


def inbox_of(question: Mapping[str, Any]) -> Inbox:
    """Return a question of ours as an inbox shows it; nothing for one that is not ours."""
    form = _FORMS.get(str(question.get("type")))
    if form is None:
        return Inbox()
    requests, allowed = form(question)
    names = dict.fromkeys(request["name"] for request in requests)
    configs = [ReviewConfig(action_name=name, allowed_decisions=[*allowed]) for name in names]
    return Inbox(action_requests=requests, review_configs=configs)


_Form = tuple[list[ActionRequest], tuple[Allowed, ...]]


def _plan(question: Mapping[str, Any]) -> _Form:
    titles = (f"{at}. {each['title']}" for at, each in enumerate(question["phases"], 1))
    said = f"Is this plan to be carried out?\n\n{question['goal']}\n\n" + "\n".join(titles)
    beside = [f"{label}: {text}" for label, text in notes_on_plan(question).items() if text]
    said = "\n\n".join((said, *beside))
    args = {"goal": question["goal"], "phases": question["phases"]}
    return [ActionRequest(name=PLAN, args=args, description=said)], ("approve", "edit", "reject")


def _approvals(question: Mapping[str, Any]) -> _Form:
    requests = [
        ActionRequest(name=each["tool"], args=each["args"], description=_described(each))
        for each in question["approvals"]
    ]
    return requests, ("approve", "edit", "reject")


def _described(approval: Mapping[str, Any]) -> str:
    """Tell all that the approval rests on, as it stands in the approval itself."""
    lines = [
        f"Is {approval['tool']} to run exactly this?",
        *(f"Look closely: {warning}" for warning in approval["warnings"]),
        approval["shown"],
        f"Why it is asked: {approval['reason']}" if approval["reason"] else "",
        f"Folder: {approval['cwd']}" if approval.get("cwd") else "",
        f"Sandbox: {approval['sandbox']}",
        f"Not covered: {', '.join(approval['not_covered'])}" if approval["not_covered"] else "",
        "It is required: the task ends without it." if approval["deny_effect"] == "block" else "",
    ]
    return "\n\n".join(line for line in lines if line)


def _recovery(question: Mapping[str, Any]) -> _Form:
    action = question["action"]
    said = f"A step failed: {question['failure']}\n\nIs this to be done about it?\n\n"
    told = json.dumps(action, ensure_ascii=False, indent=1, default=str)
    request = ActionRequest(name=RECOVERY, args=action, description=said + told)
    return [request], ("approve", "reject", "respond")


def _question(question: Mapping[str, Any]) -> _Form:
    options = question.get("options", ())
    said = [question["question"], question["context"]]
    said += [f"Answer with one of: {', '.join(options)}"] if options else []
    request = ActionRequest(
        name=ANSWER,
        args={"answer": options[0] if options else ""},
        description="\n\n".join(part for part in said if part),
    )
    return [request], ("edit", "respond")


_FORMS: Final[Mapping[str, Callable[[Mapping[str, Any]], _Form]]] = {
    "spec_review_request": _plan,
    "approval_request": _approvals,
    "recovery_request": _recovery,
    "question": _question,
}


# --- Asking a person: the one place where a node stops for an answer.


def ask_person(
    question: Mapping[str, Any], at: float, emit: "Callable[[events.Event], None]"
) -> Any:
    """Ask, and return the reply in its typed form once there is one; a node begins anew with it.

    ``emit`` is told that the question is closed (PL-04); who runs the node tells that it opens.
    The graph itself refuses a reply that does not fit before anything runs. In another graph nobody
    does: the question stays open, and says why as ``refused`` (FA-08).
    """
    asked = question
    while True:
        reply = ask_once(asked, at)
        try:
            typed = read_reply(question, reply, shown=False)
        except ReplyRefused as refused:
            asked = {**question, "refused": str(refused)}
            continue
        emit(question_closed(question, typed))
        return typed


def question_closed(question: Mapping[str, Any], reply: _Reply) -> "events.QuestionClosed":
    """Build the event for a question that got its reply, in its typed form."""
    from daruma.state import events

    each = reply.decisions if isinstance(reply, Decisions) else [reply]
    said = {str(getattr(one, "decision", "answer")).replace("park", "timeout") for one in each}
    decision = ", ".join(sorted(said))
    return events.QuestionClosed(id=str(question["id"]), kind=kind_of(question), decision=decision)


def ask_once(question: Mapping[str, Any], at: float) -> Any:
    """Ask, and return the reply as it came.

    The schema of a reply goes with the question, for clients that make a form of it, and so do the
    form of chat clients and when it was ``asked_at`` (Unix seconds): a reply that was sent before
    can not be meant for it.
    """
    from langgraph.types import interrupt

    told = {**question, "asked_at": at, **inbox_of(question)}
    return interrupt(told, response_schema=reply_schema(question))
