"""Ask the model once; its answer becomes tool tasks, or the candidate for the final answer."""

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import takewhile

from daruma.state import budget
from daruma.state.budget import hidden_tools
from daruma.state.calls import is_open, with_status
from daruma.state.channels import State, Update, apply_update
from daruma.state.events import AnswerAudited
from daruma.state.failure import ModelFailed, failure_of
from daruma.state.messages import Messages, has_shortened_results
from daruma.state.mode import KEEP_WORKING
from daruma.state.progress import alarm, observe_results, signature_of
from daruma.state.record import copy_with
from daruma.state.settings import PromptPiece
from daruma.state.steps import ContextUsage
from daruma.state.verification import judged_by
from daruma.tools.calls import VisibleTools, audit_answer, read_answer, unusable_answer
from daruma.tools.context import (
    Answer,
    Context,
    RecordStep,
    begin_step,
    budget_exceeded,
    out_of_steps,
    receive,
    visible_tools,
)
from daruma.tools.continuity import (
    advance,
    ask_for_missing,
    clarification_note,
    clarification_update,
    note_question,
    offer_leaving_out,
)
from daruma.tools.hooks import refuse
from daruma.tools.model_requests import (
    learned_instruction,
    memory_messages,
    pieces,
    pitfall_messages,
    repository_instructions,
    said_before,
    system_message,
)
from daruma.tools.planning import REVISE_PLAN, contradiction_in
from daruma.tools.rollback import drift_note
from daruma.tools.skills import SKILLS_LIST
from daruma.tools.window import (
    Draft,
    after_provider_refusal,
    check_size,
    context_usage,
    sent_history,
    too_large_update,
)

CHAT = "Answer the user."

WORK = """\
You carry out a task with the tools you are given. Look before you change things, change as \
little as the task needs, and when it is done answer in a few words what you did, without a tool \
call."""

FILES = """\
All paths are relative to the workspace, and paths that a tool shows are to be used whole. Your \
work is verified by running the workspace's own checks; if they fail you are shown what they said.\
"""

FORM = """\
When the task is done, answer with one JSON object and nothing else. It has to fit this schema:
"""

SKILLS = """\
There are skills, written instructions for kinds of work: see what skills_list shows before you \
begin, and read one that fits with skills_load."""


async def main(state: State, context: Context) -> Update:
    """Make one model call, if the budget has room and nothing has to be asked first (TL-01).

    It waits for all calls of the last answer: for those that a person is asked about, too (TL-02).
    What people sent meanwhile is told with the request, after all results (FA-14).
    """
    if is_open(state.calls) or state.overrun:
        return {}
    if contradicted := contradiction_in(state, context.tools):
        return {"failure": contradicted, "calls": ()}
    before, state = state.clarification, advance(state)
    changed = clarification_update(state) if state.clarification != before else Update()
    if asked_now := ask_for_missing(state, context):
        return changed | asked_now
    thought = await _think(state, context)
    if "overrun" in thought:
        return changed | thought
    return changed | note_question(state, thought, context)


async def _think(state: State, context: Context) -> Update:
    if not budget.can_think(state):
        return out_of_steps(state, "main", context) or {"calls": ()}
    if spent := budget_exceeded(state, "main", context):
        return spent
    told = await receive(state, context)
    if told is None or "overrun" in told:
        return await _ask(state, context) if told is None else told
    answered = await _ask(apply_update(state, told), context)
    return {**told, **answered, "messages": [*told["messages"], *answered.get("messages", [])]}


async def _ask(state: State, context: Context) -> Update:
    offer = _offer(state, context)
    draft = _draft_request(state, context, offer)
    counted, crowded = check_size(draft, state, context)
    if crowded:
        return too_large_update(crowded)
    record = begin_step(state, "think", context)
    try:
        answer = await context.ask(
            "main",
            draft.messages(state),
            call=budget.on_thread(state, "think"),
            tools=offer.tools,
            emit=context.emit,
        )
    except ModelFailed as error:
        if crowded := after_provider_refusal(draft, state, context, error):
            return too_large_update(crowded)
        audit = audit_answer(failover=error.failover)
        step = record(ok=False, audit=audit, **observe_results(state)._asdict())
        return {"steps": step, "failure": failure_of(error, "main"), "calls": ()}
    answer = copy_with(answer, counted=counted) if counted else answer
    return _read_answer(state, context, answer, offer, record)


def measure(state: State, context: Context) -> ContextUsage | None:
    """Return what a request of the task is spent on as things stand (CX-08).

    None before a task, and for a team's: its members have requests of their own.
    """
    if state.task is None or state.task.mode == "team_collab":
        return None
    return context_usage(_draft_request(state, context, _offer(state, context)), state, context)


def _offer(state: State, context: Context) -> VisibleTools:
    planned = state.plan is not None and budget.replans_left(state) > 0
    offer = visible_tools(
        state.task,
        context,
        hidden_tools(state) | ({REVISE_PLAN} if not planned else frozenset()),
        reading=has_shortened_results(state.messages),
        messages=state.messages,
    )
    return offer_leaving_out(offer, state)


def _draft_request(state: State, context: Context, offer: VisibleTools) -> Draft:
    prompts = context.settings.prompts
    system = prompt(state, prompts, skills=offer.find(SKILLS_LIST) is not None)
    return Draft(
        "main",
        [system_message(system), *said_before(state, prompts)],
        sent_history(state),
        recalled=[*memory_messages(state), *pitfall_messages(state, "main")],
        tail=[*drift_note(state), *clarification_note(state)],
        tools=offer.tools,
    )


def prompt(
    state: State, prompts: Mapping[str, PromptPiece] | None = None, *, skills: bool = False
) -> str:
    """Build the system prompt. It stays the same for a whole task: providers can cache it.

    ``skills`` says whether the tools are shown that read them. Its end asks for an answer that
    needs no second request for its form (FA-10), but not in each phase.
    """
    task, added = state.task, pieces(state, prompts or {}, "system")
    wanted = state.structured if task and task.mode not in KEEP_WORKING else None
    form = FORM + json.dumps(wanted.schema, ensure_ascii=False) if wanted else ""
    if task is None or task.mode == "direct_chat":
        return "\n\n".join(part for part in (CHAT, *added, form) if part)
    learned = learned_instruction(state.lessons, task.expert or "main", "system")
    there = SKILLS if skills and task.skills else ""
    files = FILES if task.workspace else ""
    own, goal = repository_instructions(state), f"Task: {task.goal}"
    role, judged = task.role.strip(), judged_by(task.rubric)
    parts = (WORK, files, there, own, goal, role, judged, *added, learned, form)
    return "\n\n".join(part for part in parts if part)


def _read_answer(
    state: State, context: Context, answer: Answer, offer: VisibleTools, record: RecordStep
) -> Update:
    number = budget.on_thread(state, "think")
    message_id = f"{state.task_id}:answer:{number}"
    message, calls, left_out = read_answer(answer.message, message_id, offer)
    audit = audit_answer(message_id, calls, left_out=left_out, failover=answer.failover)
    if audit:
        context.emit(AnswerAudited(audit=audit.to_dict()))
    useless = None if calls else unusable_answer(message, "main", _count_useless_answers(state))
    (step,) = record(
        answer,
        ok=useless is None,
        signature=signature_of(message, calls),
        audit=audit,
        **observe_results(state)._asdict(),
    )
    if useless:
        return {"steps": [step], "failure": useless, "calls": ()}
    if looping := alarm(state, step):
        told = f"Not run: {looping.message}. It would lead no further: do something else."
        refused = refuse([replace(call, reason=told) for call in calls], context.emit)
        step = replace(step, ok=False)
        return {"messages": [message, *refused], "steps": [step], "failure": looping, "calls": ()}
    failed = refuse(with_status(calls, "failed"), context.emit)
    messages: Messages = [message, *failed]
    update: Update = {"messages": messages, "steps": [step], "calls": calls}
    if state.failure or state.origin or number == 0:  # what is empty costs a row to empty again
        update |= {"failure": None, "origin": None}
    return update


def _count_useless_answers(state: State) -> int:
    """Return how often the model was asked in a row for an answer, this time included."""
    thoughts = [s for s in budget.of_task(state) if s.kind == "think" and not s.helper]
    return 1 + sum(1 for _ in takewhile(lambda step: not step.ok, reversed(thoughts)))
