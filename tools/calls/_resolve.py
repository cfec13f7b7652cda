"""From the calls of a model's answer to tool tasks, in the order of TL-12. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from langchain_core.messages import AIMessage

from daruma.state.calls import Problem, ToolTask
from daruma.state.conversation import Clarification
from daruma.state.record import changed
from daruma.state.settings import PolicyRule
from daruma.tools.calls._json_reader import Refused, Repaired
from daruma.tools.calls._mcp_pins import pinned
from daruma.tools.calls._names import resolve_name
from daruma.tools.calls._parse import Call, calls_of, unstorable_part
from daruma.tools.calls._results import cut_off_reason
from daruma.tools.calls._tool import CanonicalCall, Tool, canonical_call
from daruma.tools.calls._visible import VisibleTools
from daruma.tools.calls.policy._policy import decide
from daruma.tools.calls.repair._by_rules import repaired_args, repaired_text

# --- Going on with a call that the user was asked about: what it leaves out is known already. Pure.


class Filled(NamedTuple):
    """A call in its canonical form, and the id of the call that it goes on with, if it does."""

    call: CanonicalCall
    continues: str = ""


def filled(name: str, args: Mapping[str, Any], offer: VisibleTools, continues: str = "") -> Filled:
    """Bring a call into its canonical form, with what is known of one that the user answered.

    What the call gives wins. A call that says something else than was known is given only what it
    can not do without: it may be another one of the same tool. ``continues`` is the call it was
    found to go on with before.
    """
    own = canonical_call(name, args, offer.tools, offer.now)
    candidates = [each for each in offer.resuming if _is_of(each, own, offer)]
    if not candidates:
        return Filled(own, continues)
    best = min(
        candidates,
        key=lambda each: (each.call_id != continues, -_agreeing(each, own), _differs(each, own)),
    )
    required = _required(best.target_action, offer) if _differs(best, own) else None
    known = {
        key: value
        for key, value in best.partial_args.items()
        if key not in own.args and (required is None or key in required)
    }
    whole = canonical_call(own.name, known | own.args, offer.tools, offer.now)
    changes = tuple(f"{whole.name}: {key} as it was known" for key in known)
    unread = tuple(dict.fromkeys((*own.unread, *whole.unread)))
    return Filled(whole._replace(changes=own.changes + changes, unread=unread), best.call_id)


def _is_of(known: Clarification, call: CanonicalCall, offer: VisibleTools) -> bool:
    """Whether a call is of the action that is known of, also once it has all that is known."""
    if call.name == known.target_action:
        return True
    whole = canonical_call(call.name, known.partial_args | call.args, offer.tools, offer.now)
    return whole.name == known.target_action


def _differs(known: Clarification, call: CanonicalCall) -> bool:
    partial = known.partial_args
    return any(key in partial and partial[key] != value for key, value in call.args.items())


def _agreeing(known: Clarification, call: CanonicalCall) -> int:
    return sum(known.partial_args.get(key, ...) == value for key, value in call.args.items())


def _required(name: str, offer: VisibleTools) -> Sequence[str]:
    tool = offer.find(name)
    return tool.parameters.get("required", ()) if tool else ()


# --- What a call lacks that only the user can say (CO-01). Pure.


def lacking(task: ToolTask, unread: Collection[str], offer: VisibleTools) -> ToolTask | None:
    """Return a call as one that lacks something, if that is all there is about it.

    It lacks what its tool says is to be asked for: what it has to have and has not, or is blank,
    and the dates in ``unread``. A call that does not fit for another reason is none of these.
    """
    tool = offer.find(task.name)
    if tool is None or tool.canonical is None or not offer.asks:
        return None
    questions = tool.canonical.ask_for
    required = tool.parameters.get("required", ())
    missing = tuple(
        name
        for name in questions
        if name in unread or (name in required and _blank(task.args.get(name)))
    )
    if not missing:
        return None
    rest = {name: value for name, value in task.args.items() if name not in missing}
    read = repaired_args(rest, without_required(tool, missing))
    if isinstance(read, Refused):
        return None
    question = " ".join(dict.fromkeys(_question(name, task, tool, unread) for name in missing))
    return replace(
        task, status="lacking", args=read.args, missing=missing, reason=question, problem=""
    )


def without_required(tool: Tool, names: Collection[str]) -> Tool:
    """Return a tool that can do without some of its arguments."""
    required = [name for name in tool.parameters.get("required", ()) if name not in names]
    return replace(tool, parameters={**tool.parameters, "required": required})


def without_blank(args: Mapping[str, Any], tool: Tool | None) -> dict[str, Any]:
    """Return arguments without those that are blank and would be asked for."""
    asked = tool.canonical.ask_for if tool and tool.canonical else {}
    return {name: value for name, value in args.items() if name not in asked or not _blank(value)}


def _question(name: str, task: ToolTask, tool: Tool, unread: Collection[str]) -> str:
    asked = tool.canonical.ask_for[name] if tool.canonical else ""
    if name not in unread:
        return asked
    return f"{asked} ({task.args[name]!r:.80} leaves it open.)"


def _blank(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


# --- From the calls of a model's answer to tool tasks, in the order of TL-12. Pure.
#
# The ladder of repair, cheapest first: the rules here; what they can not mend and a model may
# (``repairable``) goes to the repair node; the rest has failed, with an honest reason.

_CUT_OFF = "the answer was cut off before its end: give the call again, with less in it"

NAME_PROBLEMS: tuple[Problem, ...] = ("tool_not_found", "tool_not_in_profile")


def resolve_calls(message: AIMessage, offer: VisibleTools) -> tuple[ToolTask, ...]:
    """Return one tool task for each call of a message, also for those that can not be read.

    What can not run has status ``failed_task`` with the reason, or ``repairable`` where a model may
    be asked; what a person must confirm is ``awaiting``; what lacks something that the user is
    asked for is ``lacking``; the rest is ``ready``. Nothing of an answer that was cut off runs: a
    stream's half arguments look whole once they are parsed.
    """
    message_id = str(message.id)
    if cut_off_reason(message):
        tasks = (_begun(call, message_id) for call in calls_of(message))
        return tuple(failed_task(task, _CUT_OFF, "cut_off") for task in tasks)
    found: list[ToolTask] = []
    for call in calls_of(message):
        found.append(resolve_call(call, message_id, offer))
        offer = offer.after(found[-1])
    return tuple(found)


def resolve_call(
    call: Call, message_id: str, offer: VisibleTools, *, name: str | None = None
) -> ToolTask:
    """Return the tool task of one call; ``name`` is that of its tool if it had to be repaired."""
    task = _named(_begun(call, message_id), name, offer)
    if call.doubt:
        return failed_task(task, call.doubt, "invalid_json")
    tool = offer.find(task.name)
    if tool is None:
        return _nameless(task, call, offer)
    limit = offer.settings.max_argument_bytes
    if call.args is not None and len(call.raw.encode(errors="replace")) <= limit:
        return decided(task, offer)
    may_lack = tool.canonical.ask_for if tool.canonical and offer.asks else {}
    as_given = without_required(offer.cautious(tool), may_lack)
    read = repaired_text(call.raw, as_given, max_bytes=limit)
    if isinstance(read, Refused):
        return _broken(task, read.problem, read.reason, offer)
    return decided(
        _mended(task, read, "rules") if read.rungs else replace(task, args=read.args), offer
    )


def with_arguments(
    task: ToolTask, args: Mapping[str, Any], offer: VisibleTools, by: Literal["", "model"] = ""
) -> ToolTask:
    """Return a task with other arguments, from a model or a person, checked like any others."""
    if offer.find(task.name) is None:
        return failed_task(task, f"not run: the tool {task.name!r} is no longer there")
    return decided(replace(task, args=dict(args), repaired_by=by, rungs=()), offer)


def decided(task: ToolTask, offer: VisibleTools, *, mended_as: str = "") -> ToolTask:
    """Return a task with what becomes of it: by the policy, then by its arguments.

    Its tool is one that is shown. Arguments that had to be mended, for the tool ``mended_as``, are
    looked at as if they had been given so.
    """
    if said := unstorable_part(task.args):
        return failed_task(replace(task, args={}), f"invalid_args: {said}", "invalid_args")
    (name, args, changes, unread), continues = filled(
        task.name, without_blank(task.args, offer.find(task.name)), offer, task.continues
    )
    rungs = (*task.rungs, *changes)
    task = changed(task, name=name, args=args, rungs=rungs, continues=continues)
    rule = _rule(task, offer)
    if rule.decision == "deny":
        return failed_task(
            task, f"denied by policy: {rule.reason or f'{name} is not allowed here'}"
        )
    if without := lacking(task, unread, offer):
        return without
    if problem := _unread(task, unread) or _misfit(task, offer):
        read = repaired_args(task.args, _tool(task, offer))
        if isinstance(read, Refused) or mended_as == name:
            return _broken(task, "invalid_args", f"invalid_args: {problem}", offer)
        mended = _mended(task, read, task.repaired_by or "rules")
        return decided(mended, offer, mended_as=name)
    return changed(
        task,
        status="awaiting" if rule.decision == "confirm" else "ready",
        reason=rule.reason,
        required=rule.required,
        deny_effect=rule.deny_effect or ("block" if rule.required else "continue"),
        problem="",
        definition=_tool(task, offer).definition,
    )


def failed_task(task: ToolTask, reason: str, problem: Problem = "") -> ToolTask:
    """Return a task that will not run, with the reason that its model is told."""
    return replace(task, status="failed", reason=reason, problem=problem)


def _begun(call: Call, message_id: str) -> ToolTask:
    return ToolTask(
        id=call.id,
        message_id=message_id,
        name=call.name,
        requested_name=call.name,
        args=call.args or {},
    )


def _named(task: ToolTask, repaired: str | None, offer: VisibleTools) -> ToolTask:
    if repaired is not None:
        return replace(task, name=repaired, name_resolution="repaired")
    settings = offer.settings
    found = resolve_name(
        task.requested_name,
        offer.names,
        aliases=settings.name_aliases,
        normalize=settings.normalize_names,
    )
    return changed(task, name=found.name, name_resolution=found.how)


def _nameless(task: ToolTask, call: Call, offer: VisibleTools) -> ToolTask:
    names = ", ".join(offer.names) or "none"
    reason = f"there is no tool {task.requested_name!r}; there are: {names}"
    problem: Problem = "tool_not_in_profile" if task.name in offer.hidden else "tool_not_found"
    task = _broken(task, problem, reason, offer)
    if call.args is None and task.status == "failed":
        return failed_task(
            task, f"the arguments are not valid JSON: {call.raw!r:.300}", "invalid_json"
        )
    return task


def _broken(task: ToolTask, problem: Problem, reason: str, offer: VisibleTools) -> ToolTask:
    broken = failed_task(task, reason, problem)
    return replace(broken, status="repairable") if _repairable(broken, offer) else broken


def _repairable(task: ToolTask, offer: VisibleTools) -> bool:
    """Whether a model may be asked; never about what was cut off: it could only guess."""
    if task.repaired_by == "model":
        return False
    if task.problem in NAME_PROBLEMS:
        named = task.name_resolution != "missing" and offer.tools
        return bool(named) and offer.settings.name_repair_attempts > 0
    return task.problem != "cut_off" and offer.settings.call_repair_attempts > 0


def _mended(task: ToolTask, read: Repaired, by: Literal["rules", "model"]) -> ToolTask:
    return replace(task, args=read.args, repaired_by=by, rungs=(*task.rungs, *read.rungs))


def _rule(task: ToolTask, offer: VisibleTools) -> PolicyRule:
    tool = _tool(task, offer)
    rule = decide(tool, task.args, offer.settings, unconfined=offer.unconfined)
    return pinned(tool, rule, offer.ran_as.get(tool.name))


def _misfit(task: ToolTask, offer: VisibleTools) -> str | None:
    return _tool(task, offer).misfit(task.args) if offer.settings.validate_schema else None


def _unread(task: ToolTask, names: Sequence[str]) -> str:
    said = (f"{name}: {task.args[name]!r:.80} is no day or time beyond doubt" for name in names)
    return f"{'; '.join(said)}: give it as 2026-11-25T09:00" if names else ""


def _tool(task: ToolTask, offer: VisibleTools) -> Any:
    found = offer.find(task.name)
    if found is None:
        raise LookupError(f"the tool {task.name!r} is not shown")
    return found
