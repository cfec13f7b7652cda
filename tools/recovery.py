"""Recovery: the action against a failure, proposed, chosen, put to people, and carried out
(RE-04 to RE-08).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Final, get_args

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from daruma.state import budget
from daruma.state.budget import MAX_TOOL_RETRIES, retries, retries_of
from daruma.state.calls import with_status
from daruma.state.channels import State, Update
from daruma.state.events import AnswerAudited, RecoveryChosen, RecoveryCompleted
from daruma.state.failure import DONE, Assent, Carried, Failure, Recovered, RecoveryAction, Strategy
from daruma.state.interrupts import Answer, Approve, Deny, Instruct, Question, RecoveryRequest
from daruma.state.progress import progress_of
from daruma.state.settings import Recovery
from daruma.state.spending import says_stop
from daruma.state.text import storable_text, unstorable_part
from daruma.tools.calls import VisibleTools, audit_answer, read_object, resolve_calls, tool_result
from daruma.tools.context import Context, begin_step, visible_tools
from daruma.tools.evolution import MetFailure, finish_within, learned_action
from daruma.tools.text import without_keys
from daruma.tools.verification import with_changed_tests
from daruma.tools.window import text_ends

# --- What a model is told of a failure when it is asked for an action against it (RE-04). Pure.

EXCERPT: Final = 300
"""Characters of each fact and each call that are shown."""
LONGEST_GOAL: Final = 2000
"""Characters of the goal that are shown."""
LONGEST_PART: Final = 2500
"""Characters of each part: however many tools there are, all seven are some 5,000 tokens."""
FACTS: Final = 5
"""Results of tools that are shown as known facts, the newest."""


def render_briefing(
    state: State, failure: Failure, offer: VisibleTools, stand_ins: Collection[str] = ()
) -> str:
    """Return goal, progress, latest step, known facts, blockers and analysis, in that order.

    ``stand_ins`` are tools that could be used in place of the one that failed.
    """
    progress = progress_of(state)
    tools = [f"{tool.name}: {_short(tool.description)}" for tool in offer.tools]
    tools += [f"could stand in for {failure.tool}: {', '.join(stand_ins)}"] if stand_ins else []
    parts = {
        "Goal": state.task.goal[:LONGEST_GOAL] if state.task else "",
        "Progress": f"{progress.percent} %. {progress.reasoning} Next: {progress.next_milestone}",
        "Latest step": _latest(state.messages),
        "Known facts": _lines(_facts(state.messages)),
        "Blockers": _lines(dict.fromkeys((failure.message, *progress.blockers))),
        "Analysis": _lines(_analysis(state, failure)),
        "Tools": _lines(tools),
    }
    bounded = {title: text_ends(text, LONGEST_PART) for title, text in parts.items()}
    return "\n\n".join(f"{title}:\n{text or '(none)'}" for title, text in bounded.items())


def _lines(texts: Iterable[str]) -> str:
    return "\n".join(f"- {text}" for text in texts)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= EXCERPT else f"{text[:EXCERPT]} ..."


def _latest(messages: Sequence[AnyMessage]) -> str:
    answers = [m for m in messages if isinstance(m, AIMessage)]
    if not answers:
        return ""
    last = answers[-1]
    called = [_short(f"called {call['name']}({call['args']})") for call in last.tool_calls]
    results = {m.tool_call_id: m for m in messages if isinstance(m, ToolMessage)}
    came = [results[str(c["id"])] for c in last.tool_calls if str(c["id"]) in results]
    said = [_short(last.text)] if last.text.strip() else []
    return _lines([*said, *called, *(_short(f"{m.name} gave: {m.text}") for m in came)])


def _facts(messages: Sequence[AnyMessage]) -> list[str]:
    results = (m for m in messages if isinstance(m, ToolMessage) and m.status == "success")
    found = [m for m in results if m.text.strip()]
    return [_short(f"{m.name}: {m.text}") for m in found[-FACTS:]]


def _analysis(state: State, failure: Failure) -> list[str]:
    said = [f"code {failure.code}, in {failure.node}"]
    said += [f"caused by {failure.original_error}"] if failure.original_error else []
    said += [f"about the tool {failure.tool}"] if failure.tool else []
    tried = [s.recovery for s in budget.in_scope(state) if s.recovery]
    said += [f"tried before: {each.strategy} ({each.code})" for each in tried]
    spent = budget.in_phase(state, "think")
    limit = state.task.limits.think if state.task else 0
    said.append(f"model calls spent: {spent} of {limit}")
    instructed = [m for m in state.messages if isinstance(m, HumanMessage)]
    return said + ([f"last instruction: {_short(instructed[-1].text)}"] if instructed else [])


# --- What has worked before against a failure, where there is a record of that (RE-08).

LEARNED_SECONDS: Final = 2.0
"""Longer it is not waited for: a model is asked instead."""


async def learned_against(
    state: State, failure: Failure, context: Context, *, seconds: float = LEARNED_SECONDS
) -> RecoveryAction | None:
    """Return the action that worked before, if that is sure enough to be done unasked.

    None unless what was learned is fed back. It never raises, and waits no longer: a fault of the
    store is as good as knowing nothing.
    """
    store, given, task = context.store, context.settings.evolution, state.task
    if store is None or task is None or not given.enabled or given.observe_only:
        return None
    signature = without_keys(storable_text(failure.signature))  # as it is kept
    met = MetFailure(task.experience_owner, actor_of(state, failure), signature)
    with suppress(Exception):
        return await finish_within(
            learned_action(store, met, context.settings, context.now()), seconds
        )
    return None


def actor_of(state: State, failure: Failure) -> str:
    """Return whom a failure happened to: a member of the team, ``plan`` or ``main``."""
    if state.task and state.task.expert:
        return state.task.expert
    return "plan" if failure.node == "plan" else "main"


# --- Reading the action that a model proposes against a failure. Pure; it never raises (RE-05).

LONGEST: Final = 2000
"""Characters of each text of an action that are kept."""


def action_in(text: str) -> RecoveryAction | None:
    """Return the one action that an answer holds; None if it holds none, or several.

    What is said of its confidence counts only as a number from 0 to 1: anything else is no
    confidence at all, so that a person is asked.
    """
    said = read_object(text) or {}
    strategy = _strategy(said.get("strategy"))
    if strategy is None:
        return None
    action = said.get("action")
    details = action if isinstance(action, Mapping) else said
    parameters = details.get("parameters")
    if unstorable_part(parameters):
        return None
    return RecoveryAction(
        strategy=strategy,
        reasoning=_text(said.get("reasoning")),
        tool_name=_text(details.get("tool_name")) or None,
        parameters=dict(parameters) if isinstance(parameters, Mapping) else None,
        escalation_message=_text(details.get("escalation_message")),
        expected_outcome=_text(said.get("expected_outcome")),
        confidence=_confidence(said.get("confidence")),
    )


def _strategy(said: object) -> Strategy | None:
    name = said.strip().lower().replace("_", "-").replace(" ", "-") if isinstance(said, str) else ""
    return next((known for known in get_args(Strategy) if known == name), None)


def _text(said: object) -> str:
    return storable_text(said).strip()[:LONGEST] if isinstance(said, str) else ""


def _confidence(said: object) -> float:
    if isinstance(said, bool) or not isinstance(said, int | float):
        return 0.0
    return float(said) if 0 <= said <= 1 else 0.0


# --- Which action against a failure may be taken, and whether a person is asked first. Pure.

_AGAIN = ("retry", "parameter-adjustment")


def give_up_reason(state: State, failure: Failure) -> str:
    """Say why nothing more can be tried against a failure; empty if something can (RE-07)."""
    limit = state.task.limits.recoveries if state.task else 0
    if failure.final:
        return "trying again can not help"
    if budget.recoveries(state, failure) >= limit:
        return "it came again after it had been dealt with" if limit else "recovery is switched off"
    verified = failure.node != "verify" or budget.can_verify(state)
    worked = verified and budget.can_think(state)
    room = budget.can_plan(state) if failure.node == "plan" else worked
    return "" if room else "the budget is spent"


def action_by_rule(state: State, failure: Failure) -> RecoveryAction:
    """Return RE-05's action: adjust after a first failure, ask a person after a repeated one."""
    if why := give_up_reason(state, failure):
        return RecoveryAction(strategy="give-up", reasoning=why, confidence=1.0, by="rule")
    again = budget.recoveries(state, failure) > 0
    strategy: Strategy = "escalate" if again else "parameter-adjustment"
    return RecoveryAction(strategy=strategy, confidence=1.0, by="rule")


def allowed_action(
    action: RecoveryAction, state: State, failure: Failure, names: Collection[str]
) -> RecoveryAction:
    """Return an action, or what comes next to it where it can not be taken.

    ``names`` are the tools that are shown. A tool is tried again ``MAX_TOOL_RETRIES`` times, then
    another has to be chosen (RE-07); without any other, a person. A plan calls no tools.
    """
    if failure.node == "plan" and action.strategy in ("alternative-tool", "parameter-adjustment"):
        action = replace(action, strategy="parameter-adjustment", tool_name=None, parameters=None)
    if action.strategy == "alternative-tool" and not hides(action, failure, names):
        action = replace(action, strategy="parameter-adjustment", tool_name=None, parameters=None)
    again = action.strategy in _AGAIN and tool_of(action, failure)
    if again and retries_of(state, again) >= MAX_TOOL_RETRIES:
        other = replace(action, strategy="alternative-tool", tool_name=None, parameters=None)
        action = other if hides(other, failure, names) else replace(other, strategy="escalate")
    if action.strategy == "alternative-tool" and action.tool_name not in names:
        action = replace(action, tool_name=None)
    return action


def tool_of(action: RecoveryAction, failure: Failure) -> str:
    """Return the tool that an action has tried again; empty if none."""
    if action.strategy not in _AGAIN:
        return ""
    return action.tool_name or failure.tool


def hides(action: RecoveryAction, failure: Failure, names: Collection[str]) -> str:
    """Return the tool that an action hides: the one that failed, if there is any other."""
    if action.strategy != "alternative-tool" or action.tool_name == failure.tool:
        return ""
    return failure.tool if failure.tool in names and len(names) > 1 else ""


def with_assent(action: RecoveryAction, settings: Recovery) -> RecoveryAction:
    """Return an action with what a person is asked before it: by how sure it is (RE-06).

    To escalate is to ask, whatever the confidence.
    """
    if action.strategy == "escalate":
        return replace(action, assent="question")
    if action.confidence >= settings.execute_above:
        return replace(action, assent="")
    asked: Assent = "approval" if action.confidence >= settings.ask_above else "question"
    return replace(action, assent=asked)


# --- What is put on record of a recovery, and told of it.

LONGEST_REASONING: Final = 300
"""Characters of an action's reasoning that stay on record."""


def recovery_record(
    action: RecoveryAction, failure: Failure, carried: Carried, names: Collection[str]
) -> Recovered:
    """Return the record of an action; ``names`` are the tools that are shown."""
    done = carried in DONE
    return Recovered(
        code=failure.code,
        strategy=action.strategy,
        by=action.by,
        carried=carried,
        confidence=action.confidence,
        tool=tool_of(action, failure) if done else "",
        hides=hides(action, failure, names) if done else "",
        instead=(action.tool_name or "") if done and action.strategy == "alternative-tool" else "",
        reasoning=action.reasoning[:LONGEST_REASONING],
    )


@contextmanager
def close_on_bug(context: Context) -> Iterator[None]:
    """Close what recovery has opened when a bug ends it: nobody else will (PL-04)."""
    try:
        yield
    except Exception:
        context.emit(RecoveryCompleted(strategy="give-up", carried="failed"))
        raise


# --- Carrying out an action against a failure: what the state becomes. Nothing here can fail.

LONGEST_WAIT = 60.0
"""Seconds that a retry waits at most, however often it was tried."""


@dataclass(frozen=True)
class RecoveryCase:
    """A failure that is being dealt with; ``message_id`` is that of what is said about it."""

    state: State
    failure: Failure
    message_id: str


async def carried_out(case: RecoveryCase, action: RecoveryAction, context: Context) -> Update:
    """Do what an action says, but for giving up, which leaves the failure where it is."""
    if action.strategy == "give-up":
        return left_open(case)
    if action.strategy == "retry":
        await context.sleep(wait(case.state, context.settings.fallback_chain.recovery.wait_seconds))
        if case.failure.unanswered or case.failure.node == "verify":
            # No model is told: none was heard, or none is asked again.
            return close_failure(case, "")
    given = action.tool_name and action.parameters is not None
    if action.strategy == "parameter-adjustment" and given:
        return _called(case, action, context)
    return close_failure(case, advice(case.failure, action))


def close_failure(case: RecoveryCase, said: str) -> Update:
    """Close the failure and go on, with what the model is told about it."""
    origin = case.state.origin or case.failure
    told = [HumanMessage(said, id=case.message_id)] if said else []
    return {"failure": None, "origin": origin, "action": None, "calls": (), "messages": [*told]}


def left_open(case: RecoveryCase, said: str = "") -> Update:
    """Leave the failure open, under the code of the first one (EM-04), with what was said of it."""
    update: Update = {"origin": case.state.origin or case.failure, "action": None}
    return update | {"messages": [HumanMessage(said, id=case.message_id)]} if said else update


def wait(state: State, seconds: float) -> float:
    """Return how long a retry waits: twice as long each time, at most ``LONGEST_WAIT``."""
    doubled: float = seconds * 2 ** min(retries(state), 10)
    return min(doubled, LONGEST_WAIT)


def advice(failure: Failure, action: RecoveryAction) -> str:
    """Say to the model what failed and how to go on."""
    how = {
        "retry": "Try again.",
        "alternative-tool": f"The tool {failure.tool} is not there for the next step: "
        + (f"use {action.tool_name}." if action.tool_name else "use another one."),
    }.get(action.strategy, "Go on another way.")
    return " ".join(
        filter(None, (f"The last step failed: {failure.message}.", how, action.reasoning))
    )


def _called(case: RecoveryCase, action: RecoveryAction, context: Context) -> Update:
    """Make the corrected call: it goes through the same gate as any call of the model."""
    # Providers refuse long ids; results are told apart by the message's id as well.
    call = {"name": action.tool_name, "args": action.parameters, "id": "call_0"}
    message = AIMessage(action.reasoning, tool_calls=[call], id=case.message_id)
    calls = resolve_calls(
        message, visible_tools(case.state.task, context, messages=case.state.messages)
    )
    audit = audit_answer(case.message_id, calls)
    if audit:
        context.emit(AnswerAudited(audit=audit.to_dict()))
    failed = [tool_result(each, each.reason, ok=False) for each in with_status(calls, "failed")]
    return close_failure(case, "") | {"messages": [message, *failed], "calls": calls}


# --- What a person is asked about a failure, and what becomes of the reply.

WHAT = "A step failed. What should be done?"


def question_of(state: State) -> RecoveryRequest | Question:
    """Build the question: for approval of the action, or for an answer of the person's own."""
    failure, action = _at_hand(state)
    if action.assent == "approval":
        return RecoveryRequest(
            type="recovery_request",
            id=_id(state),
            failure=with_changed_tests(failure.message, state),
            action=action.to_dict(),
            deadline=None,
        )
    return Question(
        type="question",
        kind="recovery",
        id=_id(state),
        question=action.escalation_message or WHAT,
        context=with_changed_tests(failure.message, state),
        deadline=None,
    )


async def apply_reply(state: State, reply: object, context: Context) -> Update:
    """Do what a reply says, in the typed form of :mod:`daruma.state.interrupts`."""
    failure, action = _at_hand(state)
    record = begin_step(state, "consult", context)
    case = RecoveryCase(state, failure, _id(state))
    carried, update = await _decided(case, action, reply, context)
    note = recovery_record(action, failure, carried, visible_tools(state.task, context).names)
    context.emit(RecoveryCompleted(strategy=action.strategy, carried=carried))
    return update | {"steps": record(signature=failure.signature, recovery=note)}


def _at_hand(state: State) -> tuple[Failure, RecoveryAction]:
    if state.failure is None or state.action is None:
        raise LookupError("there is no recovery to ask about")
    return state.failure, state.action


def _id(state: State) -> str:
    return f"{state.task_id}:consult:{budget.in_task(state, 'consult')}"


async def _decided(
    case: RecoveryCase, action: RecoveryAction, reply: object, context: Context
) -> tuple[Carried, Update]:
    if isinstance(reply, Approve):
        return "approved", await carried_out(case, action, context)
    if isinstance(reply, Answer | Instruct):
        said = reply.answer if isinstance(reply, Answer) else reply.text
        if says_stop(said):  # as any other question takes it: it is no advice to go on with
            return "denied", left_open(case, "A person stopped the work.")
        told: Carried = "answered" if isinstance(reply, Answer) else "instructed"
        return told, close_failure(case, said)
    reason = reply.reason if isinstance(reply, Deny) else ""
    return "denied", left_open(case, f"A person denied this: {reason}" if reason else "")


# --- Seeing an action through: it is told, and done, looked at only, or left to a person.


def give_up(case: RecoveryCase, action: RecoveryAction, context: Context) -> Update:
    """Give up, which nobody has to agree to: there is nothing left to try."""
    _tell(action, context)
    context.emit(RecoveryCompleted(strategy=action.strategy))
    return left_open(case)


async def carry_out_action(
    case: RecoveryCase, action: RecoveryAction, context: Context
) -> tuple[Update, Recovered | None]:
    """Do an action, or only look on, or leave it to a person: then nothing is on record yet."""
    settings = context.settings.fallback_chain.recovery
    names = visible_tools(case.state.task, context).names
    action = with_assent(action, settings)
    _tell(action, context)
    if action.assent and not settings.observe_only:
        return {"action": action, "origin": case.state.origin or case.failure}, None
    update = left_open(case)
    if not settings.observe_only:
        update = await carried_out(case, action, context)
    carried: Carried = "observed" if settings.observe_only else "executed"
    context.emit(RecoveryCompleted(strategy=action.strategy, carried=carried))
    return update, recovery_record(action, case.failure, carried, names)


def _tell(action: RecoveryAction, context: Context) -> None:
    context.emit(
        RecoveryChosen(
            strategy=action.strategy,
            reasoning=action.reasoning,
            confidence=action.confidence,
            by=action.by,
            tool_name=action.tool_name,
            parameters=action.parameters,
        )
    )
