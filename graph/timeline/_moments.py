"""What happened in a run, a moment each: from messages and from the record of steps."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import unified_diff
from itertools import islice
from typing import Any, Final, Literal, get_args

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from daruma.state.calls import ALLOWED_BY, EXECUTED
from daruma.state.failure import Recovered
from daruma.state.messages import TODO
from daruma.state.spending import format_amount, usages_of
from daruma.state.steering import SENT_AT
from daruma.state.steps import Grant, Step, StepKind
from daruma.state.task import Measure, Task
from daruma.state.text import REFERENCE, hiding_places, spell_character
from daruma.tools.text import without_keys

# --- Text of models, tools and people made safe to show: it may hold what a browser obeys.

_MAY_HIDE: Final = re.compile(r"[^\t\n -~]")
_READ: Final = 4
"""Times the limit that is looked at: keys are masked before the cut, which could halve one."""


def cut_text(text: str, limit: int) -> tuple[str, int]:
    """Return the beginning of a text without keys and hidden characters, and how much is left out.

    Counts characters. Control characters and marks that turn the direction of writing are spelled,
    as ``\\x1b`` and ``\\u202e``.
    """
    read = without_keys(text[: limit * _READ])[:limit].replace("\r\n", "\n")
    chars = list(read)
    for at, char in hiding_places(read) if _MAY_HIDE.search(read) else ():
        chars[at] = spell_character(char)
    return "".join(chars), max(len(text) - limit, 0)


def plain_line(text: str, limit: int = 200) -> str:
    """Return a text on one line of at most ``limit`` characters, and a mark if there are more."""
    shown, left = cut_text(" ".join(text[: limit * _READ].split()), limit)
    return shown + ("…" if left else "")


def plain_block(text: str, limit: int, whole: str = "") -> str:
    """Return the beginning of a text; ``whole`` says where the rest of it is."""
    shown, left = cut_text(text, limit)
    where = f"; the whole is in {whole}" if whole else ""
    return shown + (f"\n[… {left:,} more characters{where}]" if left else "")


# --- A tool call on one line, and an edit as the difference that it makes.

MOST_LINES: Final = 400
"""Lines of a text that are compared; comparing takes time with their square."""


def call_title(tool: str, args: Mapping[str, Any]) -> str:
    """Return ``view bill.py``, ``$ pytest -x`` or a tool's name with its short arguments."""
    if tool == "run_command" and "command" in args:
        return f"$ {args.get('command', '')}"
    if tool == "str_replace_editor" and args.keys() & {"command", "path"}:
        return f"{args.get('command', 'edit')} {args.get('path', '')}".strip()
    if tool == TODO and isinstance(args.get("items"), list):
        return f"todo: {todo_line(args['items'])}"
    values = [_text(value) for value in args.values()]
    return " ".join([tool, *(text for text in values if len(text) <= 80 and "\n" not in text)])


def todo_line(items: Sequence[Any]) -> str:
    """Return how far a list of steps is: ``1 of 3 done, now: Write the test``."""
    told = [each for each in items if isinstance(each, Mapping)]
    done = sum(each.get("status") == "done" for each in told)
    now = [str(each.get("text")) for each in told if each.get("status") == "in_progress"]
    return f"{done} of {len(told)} done" + (f", now: {', '.join(now)}" if now else "")


def arguments_text(args: Mapping[str, Any]) -> str:
    """Return arguments as lines, texts as they are; an editor's own texts stand in its diff."""
    shown = {name: value for name, value in args.items() if name not in _IN_DIFF}
    return "\n".join(f"{name}: {_text(value)}" for name, value in shown.items())


def edit_diff(args: Mapping[str, Any]) -> str:
    """Return what an edit takes away and puts there as a unified diff; empty for other calls.

    It is made of the call's own texts: line numbers count within them, not within the file.
    """
    old, new = args.get("old_str"), args.get("new_str", args.get("file_text"))
    if not isinstance(old, str) and not isinstance(new, str):
        return ""
    before, after = (text.splitlines() if isinstance(text, str) else [] for text in (old, new))
    path = str(args.get("path") or "file")
    if max(len(before), len(after)) > MOST_LINES:
        made = _replaced(path, before, after)
    else:
        made = [*unified_diff(before, after, f"a/{path}", f"b/{path}", lineterm="")]
    return "\n".join(made)


_IN_DIFF: Final = frozenset({"old_str", "new_str", "file_text"})


def _replaced(path: str, before: list[str], after: list[str]) -> list[str]:
    cut = [f"-{line}" for line in islice(before, MOST_LINES)]
    put = [f"+{line}" for line in islice(after, MOST_LINES)]
    left = len(before) + len(after) - len(cut) - len(put)
    more = [f" … {left} more lines"] if left else []
    sizes = f"@@ -1,{len(before)} +1,{len(after)} @@"
    return [f"--- a/{path}", f"+++ b/{path}", sizes, *cut, *put, *more]


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


# --- One thing that happened in a run.

Kind = Literal[
    "request",
    "plan",
    "review",
    "phase",
    "model",
    "tool",
    "approval",
    "question",
    "check",
    "reflection",
    "failure",
    "recovery",
    "rollback",
    "savepoint",
    "context",
    "note",
    "result",
]

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)


@dataclass(frozen=True, kw_only=True)
class Moment:
    """What happened, when, and where in the machine.

    ``at`` is Unix time in seconds; ``timed`` is False where the record has none, then it is that of
    what came before. ``seconds`` is how long it took; for a tool, where its own time is not on
    record, how long all calls of its answer took together; for a question how long the work
    stood still.
    ``title`` is one line, ``detail`` what was asked or said, ``output`` what came of it. ``ok`` is
    None where nothing could fail, or where it is not known yet. ``phase`` and ``task`` are ids,
    ``member`` is the phase whose team member it was. ``tokens`` were read and written by ``model``.
    ``note`` is what else a reader must know, on one line. ``diff`` is a unified diff.
    ``reasoning`` is what a model thought before its answer, where its provider shows it. ``lines``
    are what it names, a line each: files, the command that brings them back. It ``begins`` what the
    moments after it belong to, as a phase does.
    """

    kind: Kind
    title: str
    at: float = 0.0
    timed: bool = False
    seconds: float | None = None
    detail: str = ""
    output: str = ""
    ok: bool | None = None
    node: str = ""
    task: str = ""
    phase: str = ""
    member: str = ""
    model: str = ""
    tokens: int = 0
    usd: float | None = None
    note: str = ""
    diff: str = ""
    reasoning: str = ""
    lines: tuple[str, ...] = ()
    begins: bool = False


# --- What a history tells: requests, calls with their results, and what was said between them.

Results = Mapping[str, ToolMessage]


def results_in(messages: Sequence[AnyMessage]) -> Results:
    """Return the results of calls by the id of their message."""
    return {str(m.id): m for m in messages if isinstance(m, ToolMessage)}


def request_moment(message: AnyMessage, tasks: Mapping[str, Task]) -> Moment:
    """Return a request, with the task that was made of it where that is on record."""
    task = tasks.get(str(message.id))
    place = f" in {task.workspace}" if task and task.workspace else ""
    return Moment(
        kind="request",
        title=first_line(message.text),
        detail=message.text,
        at=task.started_at if task else 0.0,
        timed=bool(task and task.started_at),
        node="intake",
        task=task.id if task else "",
        note=f"{task.mode}{place}" if task else "",
    )


def steering_moment(message: AnyMessage) -> Moment:
    """Return what a person said to the task at work, when they did."""
    at = message.additional_kwargs.get(SENT_AT, 0.0)
    return Moment(
        kind="note",
        title=steering_title(message.text),
        detail=message.text,
        at=at,
        timed=at > 0,
        node="main",
    )


def steering_title(text: str) -> str:
    """Return what a person said to the task at work, on one line."""
    return f"a person says: {first_line(text)}"


def call_moments(
    message: AIMessage, results: Results
) -> Iterator[tuple[Moment, ToolMessage | None]]:
    """Yield the calls of an answer, each with its result where there is one."""
    sound = [(c["id"], c["name"], c["args"]) for c in message.tool_calls]
    wrong = [(c["id"], c["name"], {"arguments": c["args"]}) for c in message.invalid_tool_calls]
    for id_, name, args in (*sound, *wrong):
        result = results.get(f"{message.id}:{id_}")
        yield _call(name or "unnamed", args, result), result


def call_moment(name: str, args: Mapping[str, Any], output: str, *, ok: bool | None) -> Moment:
    """Return a call; a command did not go well that ended with another code than 0, nor did checks
    that are red (MO-10)."""
    said = output.partition("\n")[0]
    green = {"run_command": said == "exit code: 0", "run_tests": not _RED.search(said)}
    return Moment(
        kind="tool",
        title=call_title(name, args),
        detail=arguments_text(args),
        output=output,
        ok=ok and green.get(name, True),
        node="tool",
        diff=edit_diff(args),
    )


_RED: Final = re.compile(r": (failed|timed out)\b")
"""What the line says that ``run_tests`` begins with, where a check did not pass."""


def _call(name: str, args: Mapping[str, Any], result: ToolMessage | None) -> Moment:
    """Return a call as it was executed (TL-11, TL-14), whatever the model had asked for."""
    noted, asked = result.additional_kwargs if result else {}, call_title(name, args)
    name, args = (result and result.name) or name, noted.get(EXECUTED, args)
    notes = {
        "kept whole as output": noted.get(REFERENCE),
        "allowed by approval": noted.get(ALLOWED_BY),
        "asked for as": asked if EXECUTED in noted and asked != call_title(name, args) else "",
    }
    told = "; ".join(f"{what} {id_}" for what, id_ in notes.items() if id_)
    ok = None if result is None else result.status != "error"
    moment = call_moment(name, args, result.text if result else "", ok=ok)
    return replace(moment, note=told if result else "no result yet")


def asked_for(message: AIMessage) -> str:
    """Name the tools that an answer without words asked for; empty for none."""
    calls = (*message.tool_calls, *message.invalid_tool_calls)
    told = ", ".join(dict.fromkeys(call["name"] or "unnamed" for call in calls))
    return f"asked for {told}" if told else "answered"


def first_line(text: str) -> str:
    """Return the first line that is not blank."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


# --- What the record of steps tells: model calls, checks, reflections, recoveries, compactions.

_STEPS: Final[Mapping[StepKind, tuple[str, Kind, str, str]]] = {
    "plan": ("plan", "plan", "a plan was made", "no usable plan"),
    "look": ("plan", "plan", "looked around", "the model takes no tools to look with"),
    "think": ("main", "model", "answered", "no usable answer"),
    "repair": ("repair", "model", "asked to repair calls", "nothing repaired"),
    "verify": ("verify", "check", "verification passed", "verification failed"),
    "reflect": ("reflect", "reflection", "", "no reflection"),
    "recover": ("recovery", "recovery", "", ""),
    "consult": ("consult", "recovery", "it goes on as a person said", ""),
    "compress": ("compress", "context", "", ""),
    "summarise": ("compress", "context", "history summarised", ""),
    "intake": ("intake", "model", "asked whether the message goes on with what came before", ""),
    "tool": ("tool", "model", "", ""),
    "pause": ("pause", "note", "the work goes on", "the work stops"),
    "structure": (
        *("structure", "model", "answer in the structure that was asked for"),
        "not in the structure that was asked for",
    ),
    "judge": ("verify", "model", "asked the judge", "no verdict"),
}
"""By kind of step: its node, what it is told as, and its title where it was done, and failed."""


def message_ids(steps: Sequence[Step]) -> Iterator[str]:
    """Yield for each step the id of the message that it left in the history, if it left one."""
    of_thread, of_task = Counter[str](), Counter[tuple[str, str]]()
    for step in steps:
        if step.helper:  # its message is in a history of its own
            yield ""
            continue
        number, own = of_thread[step.kind], of_task[step.task_id, step.kind]
        numbered = {
            "think": f"answer:{number}",
            "plan": f"plan:{own + 1}",
            "look": f"look:{own + 1}",
            "verify": f"verification:{number}",
            "reflect": f"reflection:{number}",
            "recover": f"recovery:{own}",
            "consult": f"consult:{own}",
            "pause": f"{'pause' if step.grant else 'stop'}:{number}",
        }
        ending = numbered.get(step.kind)
        yield f"{step.task_id}:{ending}" if ending else ""
        of_thread[step.kind] += 1
        of_task[step.task_id, step.kind] += 1


def step_moment(step: Step, said: str = "") -> Moment:
    """Return a step; ``said`` is the text of its message."""
    usage, moment, used = step.usage, _titled(step, said), [*usages_of(step)]
    prices = [each.usd for each in used if each.usd is not None]
    asker = " for ".join(each for each in (usage.agent, usage.task) if each) if usage else ""
    audit = audit_notes(step.audit.to_dict()) if step.audit else ()
    notes = (asker, moment.note, *audit)
    return replace(
        moment,
        at=step.at,
        timed=step.at > 0,
        seconds=step.seconds,
        node=_STEPS[step.kind][0],
        task=step.task_id,
        phase=step.phase_id or "",
        model=usage.model if usage else "",
        tokens=sum(each.input_tokens + each.output_tokens for each in used),
        usd=sum(prices) if prices else None,
        note="; ".join(each for each in notes if each),
    )


def _titled(step: Step, said: str) -> Moment:
    if step.recovery:
        return _recovery(step.recovery)
    if step.context_cost:
        return compaction_moment(step.context_cost.to_dict())
    if step.grant:
        return replace(_grant(step.grant), detail=said)
    _, kind, done, failed = _STEPS[step.kind]
    title = first_line(said) or (done if step.ok else failed) or step.kind
    return Moment(kind=kind, title=title, detail=said, ok=step.ok)


def _recovery(done: Recovered) -> Moment:
    about = f"{done.code} of {done.tool}" if done.tool else done.code
    _, carried = recovered_in_words(done.carried)
    instead = f", {done.instead} instead" if done.instead else ""
    helped = {None: "", True: "it helped", False: "to no avail"}[done.worked]
    return Moment(
        kind="recovery",
        title=f"{about}: {done.strategy}, {carried}{instead}",
        detail=done.reasoning,
        ok=done.worked,
        note="; ".join(filter(None, (helped, chosen_by(done.by, done.confidence)))),
    )


def chosen_by(by: str, confidence: float) -> str:
    """Say how sure the choice of an action is, and who made it."""
    return f"confidence {confidence:.2f}, chosen by {by}"


_CARRIED: Final[Mapping[str, tuple[bool | None, str]]] = {
    "executed": (True, "carried out"),
    "approved": (True, "approved and carried out"),
    "instructed": (True, "going on as instructed"),
    "answered": (True, "going on with the answer"),
    "denied": (False, "denied"),
    "observed": (None, "only observed: nothing was done"),
    "failed": (False, "failed"),
}
"""What became of an action (``state/failure.py``; or a bug ended it), in words."""


def recovered_in_words(carried: str) -> tuple[bool | None, str]:
    """Return whether an action was carried out, and what became of it in words."""
    return _CARRIED.get(carried, (None, carried))


_MEASURES: Final = {
    "memory": "recalled memory dropped",
    "prune": "old outputs left out",
    "shrink": "old turns shortened",
    "summarise": "old messages summarised",
    "cut": "texts cut",
}
_BY: Final = {"auxiliary": "the auxiliary model", "main": "the main model", "rules": "rules"}


def compaction_moment(cost: Mapping[str, Any]) -> Moment:
    """Return how large a request was, how large it is, and what was done about it.

    ``cost`` is a ``ContextCost`` as JSON-able values, as an event has it.
    """
    about = "" if cost["exact"] else "about "
    now = f"now {cost['after']:,} of {cost['budget']:,}"
    saved = ", ".join(f"{_MEASURES.get(m, m)} ({n:,})" for m, n in cost["saved"].items())
    by = f"; {cost['messages']} messages summarised by {_BY[cost['by']]}" if cost["by"] else ""
    return Moment(
        kind="context",
        title=f"context: {about}{cost['before']:,} tokens, {now}",
        note=saved + by if saved else "nothing could be left out",
        ok=cost["after"] <= cost["budget"],
    )


def _grant(grant: Grant) -> Moment:
    more = ", ".join(
        format_amount(measure, amount)
        for measure in get_args(Measure)
        if (amount := grant.more.of(measure)) is not None
    )
    return budget_moment(grant.scope, more, steps=grant.steps, stopped=grant.stopped)


def budget_moment(scope: str, more: str, *, steps: bool, stopped: bool) -> Moment:
    """Return what became of a budget that was spent, of the task or of a phase."""
    spent = "steps were used up" if steps else "budget was spent"
    granted = "as many are granted once more" if steps else f"{more} more granted"
    settled = granted if steps or more else "stopped, then tried again under those of now"
    return Moment(
        kind="note",
        title=f"the {scope}'s {spent}: {'the work stops' if stopped else settled}",
        ok=None if stopped else True,
    )


def audit_notes(audit: Mapping[str, Any]) -> Iterator[str]:
    """Yield what was changed of an answer, and what it took to get it, in words.

    ``audit`` is an ``Audit`` as JSON-able values, as an event has it.
    """
    for each in audit["names"]:
        yield f"{each['requested_name']} is {each['name']} ({each['how']})"
    for each in audit["arguments"]:
        how = f" ({', '.join(each['rungs'])})" if each["rungs"] else ""
        yield f"arguments of {each['name']} repaired by {each['repaired_by']}{how}"
    if left := audit["left_out"]:
        names = f": {', '.join(left['names'])}" if left["names"] else ""
        yield f"{left['omitted']} of {left['total']} calls left out{names}"
    if asked := audit["round"]:
        came = f"{len(asked['repaired'])} of {len(asked['candidates'])}"
        yield f"the model was asked to repair {asked['kind']}: {came} repaired"
    if failover := audit["failover"]:
        failed = Counter(f"{each['model']}: {each['error']}" for each in failover["attempts"])
        tries = ", ".join(f"{why} ({n} times)" if n > 1 else why for why, n in failed.items())
        end = f"{failover['used']} answered" if failover["used"] else "no model answered"
        yield f"{end} after {tries}" if tries else end


# --- How long something took, and how long ago it was, in the same words on every face.

_LEAST: Final = 0.05
"""Seconds that are told at all; less would read as none."""


def render_duration(seconds: float, *, whole: bool = False) -> str:
    """Return a time in the two units that matter: ``0.4 s``, ``2 min 5 s``, ``3 h 2 min``.

    ``whole`` leaves out tenths of seconds, for a time that still runs.
    """
    if seconds < 60:
        return f"{int(seconds)} s" if whole else f"{min(seconds, 59.9):.1f} s"
    minutes, rest = divmod(int(seconds) if whole else round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def render_duration_if_any(seconds: float | None) -> str:
    """Return the same, or nothing for what took no time worth telling."""
    return render_duration(seconds) if seconds and seconds >= _LEAST else ""
