"""Setbacks that the history tells of: red checks, tools' errors, what a person rejected. Pure."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeGuard

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from daruma.state.channels import State
from daruma.state.experience import Setback
from daruma.state.status import Status
from daruma.tools.evolution.failing_lines import checks_in, signed, telling_line
from daruma.tools.evolution.kept_text import kept_line
from daruma.tools.evolution.of_failures import NOT_RUN

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


def checks_failed(state: State, status: Status) -> list[Setback]:
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
            reading.found[signature] = replace(found, advice=kept_line(said))


def tools_failed(state: State) -> Iterator[Setback]:
    """Yield the errors that a tool came to again, with the call that worked after them."""
    for (name, signature), errors in _errors(state).items():
        if errors.times > 1:
            yield Setback(
                kind="tool",
                actor="main",
                signature=signature,
                text=kept_line(f"{name}: {errors.said}"),
                advice=errors.worked,
                tool=name,
            )


def _errors(state: State) -> dict[tuple[str, str], _Errors]:
    """Return the errors of the task's calls by tool and signature."""
    made, seen = calls_of(state), dict[tuple[str, str], _Errors]()
    for result in (each for each in of_task(state) if isinstance(each, ToolMessage)):
        name = str(result.name)
        if result.status == "success":
            told = _told(name, made.get(str(result.id), {}))
            for each in (each for key, each in seen.items() if key[0] == name):
                each.worked = each.worked or told
        elif not result.text.startswith((_DENIED, NOT_RUN)):
            said = telling_line(result.text)
            errors = seen.setdefault((name, signed("tool", name, said)), _Errors(said))
            errors.times, errors.worked = errors.times + 1, ""
    return seen


def rejected_by_person(state: State) -> Iterator[Setback]:
    """Yield the plans and the calls that a person refused and gave a reason for."""
    for message in of_task(state):
        text, id_ = message.text, str(message.id)
        if id_.endswith(":spec_review:feedback"):
            why = text.removeprefix("The plan was rejected: ").removesuffix(". Plan anew.")
            yield _objection("plan", "", why, f"a person rejected the plan: {why}")
        elif _is_denied(message):
            why = text.removeprefix(_DENIED)
            if why != _NO_REASON:
                name = str(message.name)
                yield _objection("main", name, why, f"a person denied {name}: {why}")


def _is_denied(message: AnyMessage) -> TypeGuard[ToolMessage]:
    """Whether it is the machine's word that a person denied a call: what ran may say that, too."""
    if not isinstance(message, ToolMessage) or message.status != "error":
        return False
    return message.text.startswith(_DENIED)


def plans_refused(state: State) -> Iterator[Setback]:
    """Yield why plans could not be carried out."""
    for message in of_task(state):
        if str(message.id).endswith(":refused") and ":plan:" in str(message.id):
            why = message.text.removeprefix("This plan can not be carried out: ")
            why = why.removesuffix(". Give a corrected plan.")
            text = kept_line(f"the plan could not be carried out: {why}")
            yield Setback(kind="failure", actor="plan", signature=signed("plan", why), text=text)


def skills_loaded(state: State) -> tuple[str, ...]:
    """Return the skills that the task loaded, each once."""
    made = calls_of(state)
    loaded = (
        made.get(str(message.id), {}).get("name")
        for message in of_task(state)
        if isinstance(message, ToolMessage)
        and message.name == "skills_load"
        and message.status == "success"
    )
    return tuple(dict.fromkeys(kept_line(name, 64) for name in loaded if isinstance(name, str)))


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
        signature=signed("person", tool or "plan", why),
        text=kept_line(text),
        advice=kept_line(why),
        tool=tool,
    )


def _told(name: str, args: Mapping[str, Any]) -> str:
    short = json.dumps(args, ensure_ascii=False, default=str)
    return kept_line(f"{name} worked with {kept_line(short, _LONGEST_ARGS)}")
