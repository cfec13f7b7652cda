"""From the calls of a model's answer to tool tasks, in the order of TL-12. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Literal

from langchain_core.messages import AIMessage

from daruma.state.calls import Problem, ToolTask
from daruma.state.conversation import Clarification
from daruma.state.messages import cut_off_reason
from daruma.state.record import change_record
from daruma.state.steps import LeftOut
from daruma.state.text import unstorable_part
from daruma.tools.calls._answers import Call, calls_of, limit_calls, with_own_ids, with_text_calls
from daruma.tools.calls._json_reader import Refused, Repaired
from daruma.tools.calls._repair import repair_args, repair_text
from daruma.tools.calls._tool import CanonicalCall, Tool, VisibleTools, canonical_call, resolve_name
from daruma.tools.calls.policy._policy import check_pin, decide, runs_read_only

# --- Going on with a call that the user was asked about: what it leaves out is known already. Pure.


def fill_in(
    name: str, args: Mapping[str, Any], offer: VisibleTools, continues: str = ""
) -> tuple[CanonicalCall, str]:
    """Bring a call into its canonical form, with what is known of one that the user answered.

    What the call gives wins. A call that says something else than was known is given only what it
    can not do without: it may be another one of the same tool. ``continues`` is the call it was
    found to go on with before; the id of that which it goes on with now is returned, too.
    """
    own = canonical_call(name, args, offer.tools, offer.now)
    candidates = [each for each in offer.resuming if _is_of(each, own, offer)]
    if not candidates:
        return own, continues

    def rank(known: Clarification) -> tuple[bool, int, bool]:
        agreeing = sum(known.partial_args.get(key, ...) == value for key, value in own.args.items())
        return known.call_id != continues, -agreeing, _differs(known, own)

    best = min(candidates, key=rank)
    tool = offer.find(best.target_action)
    needed = tool.parameters.get("required", ()) if tool else ()
    more = {key: value for key, value in best.partial_args.items() if key not in own.args}
    known = more if not _differs(best, own) else {key: more[key] for key in more if key in needed}
    whole = canonical_call(own.name, known | own.args, offer.tools, offer.now)
    changes = tuple(f"{whole.name}: {key} as it was known" for key in known)
    unread = tuple(dict.fromkeys((*own.unread, *whole.unread)))
    return whole._replace(changes=own.changes + changes, unread=unread), best.call_id


def _is_of(known: Clarification, call: CanonicalCall, offer: VisibleTools) -> bool:
    """Whether a call is of the action that is known of, also once it has all that is known."""
    if call.name == known.target_action:
        return True
    whole = canonical_call(call.name, known.partial_args | call.args, offer.tools, offer.now)
    return whole.name == known.target_action


def _differs(known: Clarification, call: CanonicalCall) -> bool:
    partial = known.partial_args
    return any(key in partial and partial[key] != value for key, value in call.args.items())


# --- What a call lacks that only the user can say (CO-01). Pure.


def find_missing(task: ToolTask, unread: Collection[str], offer: VisibleTools) -> ToolTask | None:
    """Return a call as one that lacks something, if that is all there is about it.

    It lacks what its tool says is to be asked for: what it has to have and has not, or is blank,
    and the dates in ``unread``. A call that does not fit for another reason is none of these.
    """
    tool = offer.find(task.name)
    if tool is None or tool.canonical is None or not offer.asks:
        return None
    required = tool.parameters.get("required", ())
    missing = {
        name: question + (f" ({task.args[name]!r:.80} leaves it open.)" if name in unread else "")
        for name, question in tool.canonical.ask_for.items()
        if name in unread or (name in required and _blank(task.args.get(name)))
    }
    rest = {name: value for name, value in task.args.items() if name not in missing}
    read = repair_args(rest, without_required(tool, missing)) if missing else None
    if not isinstance(read, Repaired):
        return None
    question = " ".join(dict.fromkeys(missing.values()))
    task = replace(task, args=read.args, missing=tuple(missing), problem="")
    return replace(task, status="lacking", reason=question)


def without_required(tool: Tool, names: Collection[str]) -> Tool:
    """Return a tool that can do without some of its arguments."""
    required = [name for name in tool.parameters.get("required", ()) if name not in names]
    return replace(tool, parameters={**tool.parameters, "required": required})


def _blank(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


# --- From the calls of a model's answer to tool tasks, in the order of TL-12. Pure.
#
# The ladder of repair, cheapest first: the rules here; what they can not mend and a model may
# (``repairable``) goes to the repair node; the rest has failed, with an honest reason.

_CUT_OFF = "the answer was cut off before its end: give the call again, with less in it"

NAME_PROBLEMS: tuple[Problem, ...] = ("tool_not_found", "tool_not_in_profile")


def read_answer(
    message: AIMessage, message_id: str, offer: VisibleTools
) -> tuple[AIMessage, tuple[ToolTask, ...], LeftOut | None]:
    """Return a model's answer as it enters the history, its tool tasks, and what was left out.

    Calls that it only wrote into its text are calls like any others (TL-18), each has an id of its
    own, and no more are kept than the settings allow (TL-16).
    """
    message = with_own_ids(with_text_calls(message, offer.names), message_id)
    message, left_out = limit_calls(message, offer.settings.max_calls_per_turn)
    return message, resolve_calls(message, offer), left_out


def resolve_calls(message: AIMessage, offer: VisibleTools) -> tuple[ToolTask, ...]:
    """Return one tool task for each call of a message, also for those that can not be read.

    What can not run has status ``failed`` with the reason, or ``repairable`` where a model may be
    asked; what a person must confirm is ``awaiting``; what lacks something that the user is asked
    for is ``lacking``; the rest is ``ready``. Nothing of an answer that was cut off runs: a
    stream's half arguments look whole once they are parsed.
    """
    tasks: list[ToolTask] = []
    for call in calls_of(message):
        if cut_off_reason(message):
            tasks.append(failed_task(_begin(call, str(message.id)), _CUT_OFF, "cut_off"))
        else:
            tasks.append(resolve_call(call, str(message.id), offer))
            offer = offer.after(tasks[-1])
    return tuple(tasks)


def resolve_call(
    call: Call, message_id: str, offer: VisibleTools, *, name: str | None = None
) -> ToolTask:
    """Return the tool task of one call; ``name`` is that of its tool if it had to be repaired."""
    task, settings = _begin(call, message_id), offer.settings
    aliases, normalize = settings.name_aliases, settings.normalize_names
    if name is not None:
        task = replace(task, name=name, name_resolution="repaired")
    else:
        found = resolve_name(call.name, offer.names, aliases=aliases, normalize=normalize)
        task = change_record(task, name=found.name, name_resolution=found.how)
    if call.doubt:
        return failed_task(task, call.doubt, "invalid_json")
    tool = offer.find(task.name)
    if tool is None:
        reason = f"there is no tool {call.name!r}; there are: {', '.join(offer.names) or 'none'}"
        hidden = task.name in offer.hidden
        task = _broken(task, "tool_not_in_profile" if hidden else "tool_not_found", reason, offer)
        if call.args is not None or task.status != "failed":
            return task
        reason = f"the arguments are not valid JSON: {call.raw!r:.300}"
        return failed_task(task, reason, "invalid_json")
    limit = settings.max_argument_bytes
    if call.args is not None and len(call.raw.encode(errors="replace")) <= limit:
        return evaluate(task, offer)
    may_lack = tool.canonical.ask_for if tool.canonical and offer.asks else {}
    as_given = without_required(offer.cautious(tool), may_lack)
    read = repair_text(call.raw, as_given, max_bytes=limit)
    if isinstance(read, Refused):
        return _broken(task, read.problem, read.reason, offer)
    mended = _mended(task, read, "rules") if read.rungs else replace(task, args=read.args)
    return evaluate(mended, offer)


def with_arguments(
    task: ToolTask, args: Mapping[str, Any], offer: VisibleTools, by: Literal["", "model"] = ""
) -> ToolTask:
    """Return a task with other arguments, from a model or a person, checked like any others."""
    if offer.find(task.name) is None:
        return failed_task(task, f"not run: the tool {task.name!r} is no longer there")
    return evaluate(replace(task, args=dict(args), repaired_by=by, rungs=()), offer)


def evaluate(task: ToolTask, offer: VisibleTools, *, mended_as: str = "") -> ToolTask:
    """Return a task with what becomes of it: by the policy, then by its arguments (TL-12).

    Its tool is one that is shown. Arguments that had to be mended, for the tool ``mended_as``, are
    looked at as if they had been given so.
    """
    if said := unstorable_part(task.args):
        return failed_task(replace(task, args={}), f"invalid_args: {said}", "invalid_args")
    asked = offer.tool(task.name).canonical
    questions = asked.ask_for if asked else {}
    given = {k: value for k, value in task.args.items() if k not in questions or not _blank(value)}
    (name, args, changes, unread), continues = fill_in(task.name, given, offer, task.continues)
    rungs = (*task.rungs, *changes)
    task = change_record(task, name=name, args=args, rungs=rungs, continues=continues)
    tool = offer.tool(name)
    rule = decide(tool, args, offer.settings, unconfined=offer.unconfined)
    rule = check_pin(tool, rule, offer.ran_as.get(name))
    if rule.decision == "deny":
        why = rule.reason or f"{name} is not allowed here"
        return failed_task(task, f"denied by policy: {why}")
    if without := find_missing(task, unread, offer):
        return without
    problem = tool.misfit(args) if offer.settings.validate_schema else None
    if unread:
        doubts = (f"{key}: {args[key]!r:.80} is no day or time beyond doubt" for key in unread)
        problem = f"{'; '.join(doubts)}: give it as 2026-11-25T09:00"
    if problem:
        read = repair_args(args, tool)
        if isinstance(read, Refused) or mended_as == name:
            return _broken(task, "invalid_args", f"invalid_args: {problem}", offer)
        return evaluate(_mended(task, read, task.repaired_by or "rules"), offer, mended_as=name)
    read_only = offer.reads_first and runs_read_only(rule, args, offer.settings)
    asked_about = rule.decision == "confirm" and not read_only
    return change_record(
        task,
        status="awaiting" if asked_about else "ready",
        read_only=read_only,
        reason=rule.reason,
        required=rule.required,
        deny_effect=rule.deny_effect or ("block" if rule.required else "continue"),
        problem="",
        definition=tool.definition,
        delegated=tool.toolset == "team",
    )


def failed_task(task: ToolTask, reason: str, problem: Problem = "") -> ToolTask:
    """Return a task that will not run, with the reason that its model is told."""
    return replace(task, status="failed", reason=reason, problem=problem)


def _begin(call: Call, message_id: str) -> ToolTask:
    name, args = call.name, call.args or {}
    return ToolTask(id=call.id, message_id=message_id, name=name, requested_name=name, args=args)


def _broken(task: ToolTask, problem: Problem, reason: str, offer: VisibleTools) -> ToolTask:
    """Return a task that can not run so; a model may be asked about most of them.

    Never about what was cut off, or was mended by a model: it could only guess.
    """
    failed, settings = failed_task(task, reason, problem), offer.settings
    if problem in NAME_PROBLEMS:
        named = task.name_resolution != "missing" and offer.tools
        may_ask = bool(named) and settings.name_repair_attempts > 0
    else:
        may_ask = problem != "cut_off" and settings.call_repair_attempts > 0
    again = may_ask and task.repaired_by != "model"
    return replace(failed, status="repairable") if again else failed


def _mended(task: ToolTask, read: Repaired, by: Literal["rules", "model"]) -> ToolTask:
    return replace(task, args=read.args, repaired_by=by, rungs=(*task.rungs, *read.rungs))
