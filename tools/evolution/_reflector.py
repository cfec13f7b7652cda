"""Setbacks of a task, read off its failures and its history. Pure."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final, NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from daruma.state import budget
from daruma.state.budget import ended_with, outcomes
from daruma.state.channels import State
from daruma.state.failure import DONE, Failure
from daruma.state.lessons import Experience, Setback, SetbackKind, Tried
from daruma.state.outcome import checked_of, work_failure
from daruma.state.plan import Phase
from daruma.state.progress import tools_in
from daruma.state.steps import Step
from daruma.state.task import Status
from daruma.state.text import LENGTH, digest, storable_text, without_ids
from daruma.tools.evolution._records import storable_line
from daruma.tools.text import without_keys

# --- The lines of a failing check, or of a tool's error, that say what is wrong. Pure.

_MOST_LINES: Final = 2000
_LONGEST_LINE: Final = 500
_LONGEST_SIGNATURE: Final = 250

_SECTION: Final = re.compile(r"^(?:\$ |The )(.+)\n\[([^\n]+)\]$", re.MULTILINE)
_SUMMARY: Final = re.compile(r"^(?:FAILED|ERROR) (\S+)(?: - (.+))?$")
_ASSERTED: Final = re.compile(r"^E\s+(\S.*)$")
_RAISED: Final = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception)\b.*$")
_TOLD: Final = re.compile(
    r"\b(?:error|fail(?:ed|ure)?|fatal|panicked|denied|not found)\b", re.IGNORECASE
)
_COUNTED: Final = re.compile(
    r"^[=\-_. ]*(?:Found )?\d+ (?:failed|passed|errors?|problems?)\b|^[\W_]*$"
)
_LINTED: Final = re.compile(r"^(?:\S+:\d+:\d+:? )?[A-Z]{1,4}\d{3,4}\b.*$")
_NUMBER: Final = re.compile(r"\d+")
_NUMBERED: Final = re.compile(r"(?<!\w)\w*\d\w*")
_NAME: Final = re.compile(r"(?:[^\W\d]|(?<=[^\W\d])\d{1,3}(?!\d))++")
_ROOT: Final = re.compile(r"(?<![\w.])(?:/[\w.@+~-]+)+/(?=[\w.@+~-])")


class Failing(NamedTuple):
    """``signature`` is equal for what fails alike; ``text`` is one line for a reader."""

    signature: str
    text: str


def checks_in(excerpt: str) -> Iterator[Failing]:
    """Yield the failing checks of what a verification said (as its ``excerpt`` has it)."""
    found = list(_SECTION.finditer(excerpt))
    ends = [*(each.start() for each in found[1:]), len(excerpt)]
    for each, end in zip(found, ends, strict=False):  # an excerpt may have no section
        yield read_failed_check(each[1], each[2], excerpt[each.end() : end])


def read_failed_check(command: str, outcome: str, output: str) -> Failing:
    """Return what a check that is red says: by its failing lines, else by its outcome."""
    name = storable_line(_ROOT.sub("", command[:_LONGEST_LINE]), 80)
    said = telling_line(output)
    text = f"{name} failed: {said}" if said else f"{name}: {outcome}"
    return Failing(make_signature("check", name, said or outcome), storable_line(text))


def telling_line(output: str) -> str:
    """Return the line that tells most of what went wrong; empty where there is none.

    A test runner's own summary first, then what was asserted, what was raised, a linter's rule,
    what speaks of an error, and the last line.
    """
    lines = [line.strip()[:_LONGEST_LINE] for line in output.strip().splitlines()[-_MOST_LINES:]]
    lines = [line for line in lines if not _COUNTED.match(line)]
    for look in _LOOKS:
        if found := next(filter(None, map(look, lines)), ""):
            if found.endswith(":"):  # a test's name alone: what it asserted follows
                found = f"{found} {next(filter(None, map(_asserted, lines)), '')}".rstrip(" :")
            return found
    return lines[-1] if lines else ""


def make_signature(*parts: str) -> str:
    """Return parts as a signature: without numbers, times, ids, and where a workspace lies.

    A short number that is part of a name stays, as in ``test_7`` and ``E501``.
    """
    # A key that has lost its numbers would be taken for words.
    line = " ".join(without_keys(_ROOT.sub("", ":".join(parts))[:_LONGEST_LINE]).split())
    bare = _NUMBERED.sub(
        lambda found: found[0] if _NAME.fullmatch(found[0]) else _NUMBER.sub("#", found[0]),
        without_ids(line),
    )
    return storable_line(bare, _LONGEST_SIGNATURE)


def _summarised(line: str) -> str:
    found = _SUMMARY.match(line)
    if not found:
        return ""
    name = found[1].rpartition("::")[2]
    return f"{name}: {found[2]}" if found[2] else f"{name}:"


def _asserted(line: str) -> str:
    found = _ASSERTED.match(line)
    return found[1] if found else ""


_LOOKS: Final[tuple[Callable[[str], str], ...]] = (
    _summarised,
    _asserted,
    *(lambda line, of=of: line if of.search(line) else "" for of in (_RAISED, _LINTED, _TOLD)),
)


# --- Setbacks that are failures of the machine: those a task or a phase ended with. Pure.

PASSING: Final = ("storage_unavailable", "sandbox_violation", "approval_denied", "script_mismatch")
"""Codes of what passes, or says nothing of the work; why a person denied is a setback of its own.
"""
NOT_RUN: Final = "Not run"
"""How the result of a call begins that was not run: it says nothing of the tool."""
_FULL: Final = ("No space left on device", "Disk quota exceeded", "DiskFull")


def actor_of(state: State, phase: Phase | None) -> str:
    """Return who works on a phase: in a team its expert, else main."""
    shared = state.task is not None and state.task.mode == "team_collab"
    return (phase.expert if phase and shared else None) or "main"


def list_endings(state: State, status: Status) -> Iterator[Setback]:
    """Yield what the phases of a task, or the task itself, failed by."""
    steps = [step for step in state.steps if step.task_id == state.task_id]
    for phase in state.plan.phases if state.plan else ():
        if phase.failure:
            own = [step for step in steps if step.phase_id == phase.id]
            yield from _of(phase.failure, actor_of(state, phase), own)
    if status in ("completed", "cancelled", "parked"):
        return
    found = work_failure(state, status) if state.plan is None else state.origin or state.failure
    if found:
        current = state.plan.phase(state.plan.current) if state.plan else None
        yield from _of(found, actor_of(state, current), steps)


def passing(failure: Failure) -> bool:
    """Whether a failure says nothing of how the work was done."""
    full = any(each in f"{failure.original_error} {failure.message}" for each in _FULL)
    return failure.unanswered or failure.code in PASSING or full or failure.node == "intake"


def kind_of(code: str) -> SetbackKind:
    """Return the kind of setback that a failure of a code is."""
    return "loop" if code == "loop_detected" else "failure"


def _of(failure: Failure, actor: str, steps: Sequence[Step]) -> Iterator[Setback]:
    """Yield one for each red check, or one for the failure."""
    checks = list(checks_in(failure.detail)) if failure.code == "verification_failed" else []
    for check in checks:
        yield Setback(
            kind="check", actor=actor, signature=check.signature, text=check.text, ended=True
        )
    if not checks:
        said = in_the_way(failure.code, steps)
        yield Setback(
            kind=kind_of(failure.code),
            actor="plan" if failure.node in ("plan", "spec_review") else actor,
            signature=make_signature(failure.signature, *said),
            text=storable_line(
                ": ".join((f"{failure.code} in {failure.node}", failure.message, *said))
            ),
            tool=failure.tool,
            ended=True,
            passing=passing(failure),
        )


def in_the_way(code: str, steps: Sequence[Step]) -> tuple[str, ...]:
    """Return the error that stood in the way when the steps ran out, or led no further."""
    if code not in ("max_steps_exceeded", "loop_detected"):
        return ()
    told = (text for step in reversed(steps) for text in step.blockers)
    errors = [text for text in told if not text.startswith(NOT_RUN)]
    return (telling_line(errors[0]),) if errors else ()


# --- Setbacks that the history tells of: red checks, tools' errors, what a person rejected. Pure.

_DENIED: Final = "A person denied this call: "
_NO_REASON: Final = "no reason given"
_LONGEST_ARGS: Final = 160


@dataclass
class _Reading:
    """What was read so far. ``red`` are the checks that failed last, not answered by a pass yet."""

    done: frozenset[str]
    phase: str = ""
    found: dict[str, Setback] = field(default_factory=dict)
    red: list[str] = field(default_factory=list)
    phases: dict[str, str] = field(default_factory=dict)


@dataclass
class _Errors:
    """One error of one tool: how often it came, and the call that worked after the last time."""

    said: str
    times: int = 0
    worked: str = ""


def list_failed_checks(state: State, status: Status) -> list[Setback]:
    """Return the checks that were red; advice is the reflection after which they were so no more.

    What a reflection said is kept only if it helped: if the check did not fail again, and the task,
    or its phase, was completed.
    """
    phases = state.plan.phases if state.plan else ()
    done = {phase.id for phase in phases if phase.status == "completed"}
    reading = _Reading(frozenset(done | ({""} if status == "completed" else set())))
    for message in of_task(state):
        _read(message, reading)
    return [
        each if reading.phases[key] in reading.done else replace(each, advice="")
        for key, each in reading.found.items()
    ]


def _read(message: AnyMessage, reading: _Reading) -> None:
    id_ = str(message.id)
    if begun := re.search(r"/plan-\d+:begin:(.+)", id_, re.DOTALL):
        reading.phase = begun[1]
    elif ":verification:" in id_:
        failing = list(checks_in(message.text))
        reading.red = [each.signature for each in failing]
        for each in failing:
            reading.phases[each.signature] = reading.phase
            reading.found[each.signature] = Setback(
                kind="check", actor="main", signature=each.signature, text=each.text
            )
    elif ":reflection:" in id_:
        said = message.text.removeprefix("Reflection: ").removesuffix("Try again.")
        for signature in reading.red:
            found = reading.found[signature]
            reading.found[signature] = replace(found, advice=storable_line(said))


def list_tool_errors(state: State) -> Iterator[Setback]:
    """Yield the errors that a tool came to again, with the call that worked after them."""
    for (name, signature), errors in _errors(state).items():
        if errors.times > 1:
            yield Setback(
                kind="tool",
                actor="main",
                signature=signature,
                text=storable_line(f"{name}: {errors.said}"),
                advice=errors.worked,
                tool=name,
            )


def _errors(state: State) -> dict[tuple[str, str], _Errors]:
    """Return the errors of the task's calls by tool and signature."""
    made, seen = calls_of(state), dict[tuple[str, str], _Errors]()
    for result in (each for each in of_task(state) if isinstance(each, ToolMessage)):
        name = str(result.name)
        if result.status == "success":
            args = json.dumps(made.get(str(result.id), {}), ensure_ascii=False, default=str)
            told = storable_line(f"{name} worked with {storable_line(args, _LONGEST_ARGS)}")
            for each in (each for key, each in seen.items() if key[0] == name):
                each.worked = each.worked or told
        elif not result.text.startswith((_DENIED, NOT_RUN)):
            said = telling_line(result.text)
            errors = seen.setdefault((name, make_signature("tool", name, said)), _Errors(said))
            errors.times, errors.worked = errors.times + 1, ""
    return seen


def list_rejections(state: State) -> Iterator[Setback]:
    """Yield the plans and the calls that a person refused and gave a reason for."""
    for message in of_task(state):
        text, id_ = message.text, str(message.id)
        if id_.endswith(":spec_review:feedback"):
            why = text.removeprefix("The plan was rejected: ").removesuffix(". Plan anew.")
            yield _objection("plan", "", why, f"a person rejected the plan: {why}")
        # The machine's word that a person denied a call is an error: what ran may say that, too.
        elif isinstance(message, ToolMessage) and message.status == "error":
            why, name = text.removeprefix(_DENIED), str(message.name)
            if why not in (text, _NO_REASON):
                yield _objection("main", name, why, f"a person denied {name}: {why}")


def list_refused_plans(state: State) -> Iterator[Setback]:
    """Yield why plans could not be carried out."""
    for message in of_task(state):
        if str(message.id).endswith(":refused") and ":plan:" in str(message.id):
            why = message.text.removeprefix("This plan can not be carried out: ")
            why = why.removesuffix(". Give a corrected plan.")
            text = storable_line(f"the plan could not be carried out: {why}")
            yield Setback(
                kind="failure", actor="plan", signature=make_signature("plan", why), text=text
            )


def list_loaded_skills(state: State) -> tuple[str, ...]:
    """Return the skills that the task loaded, each once."""
    made = calls_of(state)
    loaded = (
        made.get(str(message.id), {}).get("name")
        for message in of_task(state)
        if isinstance(message, ToolMessage)
        and message.name == "skills_load"
        and message.status == "success"
    )
    return tuple(dict.fromkeys(storable_line(name, 64) for name in loaded if isinstance(name, str)))


def of_task(state: State) -> list[AnyMessage]:
    """Return the messages that the task at hand left in the history."""
    ours = (f"{state.task_id}:", f"{state.task_id}/plan-")
    return [message for message in state.messages if str(message.id).startswith(ours)]


def calls_of(state: State) -> dict[str, Mapping[str, Any]]:
    """Return the arguments of the task's calls by the id of their results."""
    said = (message for message in of_task(state) if isinstance(message, AIMessage))
    return {f"{m.id}:{call['id']}": call["args"] for m in said for call in m.tool_calls}


def _objection(actor: str, tool: str, why: str, text: str) -> Setback:
    return Setback(
        kind="person",
        actor=actor,
        signature=make_signature("person", tool or "plan", why),
        text=storable_line(text),
        advice=storable_line(why),
        tool=tool,
    )


# --- Setbacks and recoveries that the record of steps tells of, those of team members too. Pure.

_UNUSABLE = "the model"
"""How what was wrong with an answer that came begins; else a model was not heard."""


def list_tried(state: State) -> Iterator[Tried]:
    """Yield the actions that were done against failures, each with whether it worked (RE-08)."""
    steps = [step for step in budget.of_task(state) if step.recovery]
    for step, told in zip(steps, outcomes(budget.of_task(state), ended_with(state)), strict=True):
        if told.carried in DONE and step.signature:
            yield Tried(
                actor=_actor(state, step),
                signature=_signature(step),
                strategy=told.strategy,
                by=told.by,
                worked=bool(told.worked),
                asked=told.carried == "approved",
                tool=told.tool or told.hides,
                instead=told.instead,
                reasoning=storable_line(told.reasoning),
            )


def list_recovered(state: State) -> Iterator[Setback]:
    """Yield the failures that recovery dealt with; what worked against them is the advice."""
    worked = {each.signature: _advice(each) for each in list_tried(state) if each.worked}
    steps = budget.of_task(state)
    for number, step in enumerate(steps):
        if step.recovery is None or step.signature.count(":") < 2:
            continue
        node, code, told = step.signature.split(":", 2)
        said = in_the_way(code, [s for s in steps[:number] if s.phase_id == step.phase_id])
        unheard = code in ("timeout", "llm_failure") and not told.startswith(_UNUSABLE)
        yield Setback(
            kind=kind_of(code),
            actor=_actor(state, step),
            signature=make_signature(step.signature, *said),
            text=storable_line(": ".join((f"{code} in {node}", told, *said))),
            advice=worked.get(_signature(step), ""),
            tool=step.recovery.tool or step.recovery.hides,
            passing=unheard or code in PASSING or node == "intake",
        )


def list_member_errors(state: State) -> Iterator[Setback]:
    """Yield the errors that a team member was shown again: its messages are not the task's."""
    seen: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for phase in state.plan.phases if state.plan else ():
        actor = actor_of(state, phase)
        thinks = [s for s in budget.of_task(state) if s.phase_id == phase.id and s.kind == "think"]
        for before, after in pairwise(thinks if actor != "main" else ()):
            for blocker in (each for each in after.blockers if not each.startswith(NOT_RUN)):
                tool = "+".join(tools_in(before.signature))
                said = telling_line(blocker)
                seen[actor, tool, make_signature("tool", tool, said)].append(said)
    for (actor, tool, signature), errors in seen.items():
        if len(errors) > 1:
            text = storable_line(f"{tool}: {errors[0]}")
            yield Setback(kind="tool", actor=actor, signature=signature, text=text, tool=tool)


def _actor(state: State, step: Step) -> str:
    if step.signature.startswith("plan:"):
        return "plan"
    return actor_of(state, state.plan.phase(step.phase_id) if state.plan else None)


def _signature(step: Step) -> str:
    """Return the failure's own signature, as who looks for a recovery has it; without keys."""
    return without_keys(storable_text(step.signature))


def _advice(tried: Tried) -> str:
    """Say what worked, in words."""
    ways = {
        "retry": "try the same again",
        "alternative-tool": f"use {tried.instead or 'another tool'}"
        + (f" in place of {tried.tool}" if tried.tool else ""),
        "parameter-adjustment": "go another way",
        "escalate": "ask a person",
    }
    said = ways.get(tried.strategy, "")
    return storable_line(f"{said}: {tried.reasoning}" if said and tried.reasoning else said)


LONGEST_GOAL: Final = 2000
"""Characters of a goal that are kept."""

MOST_SETBACKS: Final = 20
"""Setbacks of one task that are kept; those that it ended with before others."""
MOST_TRIED: Final = 50
"""Recoveries of one task that are kept."""
MOST_NUMBERS: Final = 5
"""Numbers of a goal that a signature has."""
MOST_SKILLS: Final = 10
"""Skills of one task that are kept."""


def experience_of(state: State, status: Status, at: float) -> Experience:
    """Return what is kept of a task that ended, or was broken off, at ``at`` (Unix seconds).

    It takes time in proportion to the task's messages and steps. Raises LookupError for a state
    that has no task.
    """
    task = state.task
    if task is None:
        raise LookupError("no task has begun: there is nothing to learn from")
    return Experience(
        task_id=task.id,
        owner=task.experience_owner,
        mode=task.mode,
        status=status,
        goal=without_keys(storable_text(task.goal))[:LONGEST_GOAL],
        at=at,
        checked=checked_of(state).outcome == "passed",
        skills=list_loaded_skills(state)[:MOST_SKILLS],
        setbacks=tuple(about(each, task.goal) for each in setbacks_of(state, status)),
        tried=tuple(list_tried(state))[:MOST_TRIED],
        lessons=state.lessons,
    )


def about(setback: Setback, goal: str) -> Setback:
    """Return a setback whose signature has the numbers that its task was about.

    Signatures have no numbers, as these are new each time; but what failed in the seventh module is
    not what failed in the eighth one.
    """
    of_goal = set(_NUMBER.findall(goal[:LONGEST_GOAL]))
    shared = sorted(of_goal.intersection(_NUMBER.findall(setback.text)))[:MOST_NUMBERS]
    if not shared:
        return setback
    return replace(setback, signature=f"{setback.signature} [{', '.join(shared)}]")


def setbacks_of(state: State, status: Status) -> tuple[Setback, ...]:
    """Return what went wrong in a task, each thing once, what it ended with first."""
    found = (
        *list_endings(state, status),
        *list_rejections(state),
        *list_failed_checks(state, status),
        *list_recovered(state),
        *list_tool_errors(state),
        *list_member_errors(state),
        *list_refused_plans(state),
    )
    kept: dict[tuple[str, str], Setback] = {}  # the first that knows a thing says it
    for each in found:
        before = kept.setdefault((each.actor, each.signature), each)
        ended, passing = before.ended or each.ended, before.passing and each.passing
        advice = before.advice or each.advice
        kept[each.actor, each.signature] = replace(
            before, ended=ended, passing=passing, advice=advice
        )
    return tuple(kept.values())[:MOST_SETBACKS]


# --- Which ended tasks are learned from (EV-01): the same ones, however often it is asked.

_RANGE: Final = float(16**LENGTH)


def is_sampled(experience: Experience, rate: float) -> bool:
    """Whether a task is learned from; of those that simply went well, a part: from 0 to 1.

    Each that did not complete is. So is each that was given lessons, or tried something against a
    failure (RE-08): whether these help could not be told from failures alone.
    """
    taught = experience.lessons is not None and experience.lessons.given
    telling = experience.status != "completed" or taught or bool(experience.tried)
    lot = int(digest(["sampled", experience.task_id]), 16) / _RANGE  # the same for a task, always
    return telling or lot < rate
