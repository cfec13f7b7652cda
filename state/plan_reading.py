"""Reading a plan out of what a model or a person gave."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from daruma.state.plan import (
    NoPlan,
    Phase,
    Plan,
    PlanRefused,
    kept_phases,
    replaced_plans,
    replacement_reason,
    with_free_ids,
)

_DECODER = json.JSONDecoder()

FORM = '{"phases": [{"id", "title", "instructions"}, ...]}'
"""The shape of a plan, as it is told to whoever gave something else."""

FIELDS = frozenset(
    {"id", "title", "instructions", "depends_on", "expert", "rubric"}
    | {"validation_command", "rollback_command", "rollback"}
)
"""What a phase is made of, as models and people write it."""

_WORD = re.compile(r"\w")
"""What a title needs: the "..." of the form that a model quotes says nothing."""

_MOST_TRIED = 100
"""Brackets that begin nothing readable; a text with more is no plan (SE-07)."""

_LONGEST = 20_000
"""Characters that are repaired: the library takes quadratic time for some texts."""

_SHOWN = frozenset(
    {"status", "outcome", "error", "verification", "conflicts", "settles", "answer"}
    | {"checks", "validation_run", "rollback_run"}
)
"""What a plan under review shows beside; an edit may give it back, and it changes nothing."""


def plan_from(
    content: Mapping[str, Any],
    *,
    plan_id: str,
    goal: str,
    experts: Sequence[str] = (),
    strict: bool = False,
    before: Plan | None = None,
) -> Plan:
    """Build a plan from ``{"goal"?, "phases": [{"id"?, "title", "instructions", ...}]}``.

    Models add keys of their own, which are left out; ``strict`` refuses them, for a person's typo.
    In a team each phase goes to one of its ``experts``: the first, where it names none.
    What is completed of the plan ``before`` stands before the phases, which are what is left.
    Raises :class:`PlanRefused` for a plan that can not be carried out, and its kind
    :class:`~daruma.state.plan.NoPlan` for what has another shape.
    """
    phases = content.get("phases")
    if not isinstance(phases, Sequence) or isinstance(phases, str):
        raise NoPlan(f"a plan has the form {FORM}")
    if not phases:
        raise NoPlan("the plan has no phases")
    if strict:
        _refuse_unknown(phases)
    own_goal = content.get("goal")
    earlier = (*replaced_plans(before), before) if before else ()
    first = 1 + len({phase.id for plan in earlier for phase in plan.phases})
    read = _given_out((_phase(n, phase) for n, phase in enumerate(phases, first)), experts)
    return Plan(
        id=plan_id,
        goal=own_goal if isinstance(own_goal, str) and own_goal.strip() else goal,
        phases=(*kept_phases(before), *with_free_ids(read, before)) if before else read,
        before=before and replace(before, current=None, why=replacement_reason(before)),
    )


def plan_in(
    text: str,
    *,
    plan_id: str,
    goal: str,
    experts: Sequence[str] = (),
    before: Plan | None = None,
) -> Plan:
    """Find the plan in a model's answer: a JSON object, bare, fenced or between words (MO-11).

    A list of phases stands for such an object, unless it is a part of another one.
    Raises what :func:`plan_from` does, and :class:`~daruma.state.plan.NoPlan` for an answer without
    a plan in it.
    """
    content = _object_in(text)
    if content is not None:
        return plan_from(content, plan_id=plan_id, goal=goal, experts=experts, before=before)
    if not text.strip():
        raise NoPlan("the answer was empty")
    raise NoPlan(f"there is no JSON object of the form {FORM} in the answer")


def _object_in(text: str) -> Mapping[str, Any] | None:
    """Find the object with ``phases``, or a list of phases: as it stands first, repaired last."""
    read = 0  # a list within what was read so far, such as {"options": [...]}, is no list of phases
    failed = 0
    for start in (found.start() for found in re.finditer(r"[{[]", text)):
        if text[start] == "[" and start < read:
            continue
        try:
            content, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            failed += 1
            if failed > _MOST_TRIED:
                return None
            continue
        if (plan := _as_plan(content)) is not None:
            return plan
        read = max(read, end)
    start, end = text.find("{"), text.rfind("}")
    unclosed = text.count("{") > text.count("}") or text.count("[") > text.count("]")
    if '"phases"' not in text or not 0 <= start < end < start + _LONGEST or unclosed:
        return None  # what was cut off is not repaired into a shorter plan
    import json_repair  # rarely needed

    try:
        return _as_plan(json_repair.loads(text[start : end + 1]))
    except (ValueError, RecursionError):  # nested too deep
        return None


def _as_plan(content: object) -> Mapping[str, Any] | None:
    if isinstance(content, Mapping):
        return content if "phases" in content else None
    phases = content if isinstance(content, list) else []
    titled = phases and all(isinstance(each, Mapping) and "title" in each for each in phases)
    return {"phases": phases} if titled else None


def _refuse_unknown(phases: Sequence[Any]) -> None:
    for phase in phases:
        for key in phase if isinstance(phase, Mapping) else ():
            if key not in FIELDS | _SHOWN:
                close = get_close_matches(str(key), FIELDS, n=1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                raise PlanRefused(f"a phase has no {key!r}{hint}")


def _phase(number: int, content: object) -> Phase:
    if isinstance(content, str):
        content = {"title": content}
    if not isinstance(content, Mapping):
        raise NoPlan(f"phase {number} is not an object")
    given = {key: value for key, value in content.items() if key in FIELDS and value is not None}
    # What a phase without a title says in unknown keys is not known.
    default = f"Phase {number}" if content and content.keys() <= FIELDS - {"title"} else ""
    title = given.get("title") or given.get("instructions") or default
    if not _WORD.search(str(title)):
        raise NoPlan(f"phase {number} does not say what to do")
    given |= {"id": str(given.get("id", f"p{number}"))}
    given |= {"title": str(title).strip().splitlines()[0][:120]}
    if "depends_on" in given:
        given["depends_on"] = _names(given["depends_on"])
    try:
        return Phase(**given)
    except ValidationError as error:
        where = ", ".join(str(problem["loc"][-1]) for problem in error.errors())
        raise NoPlan(f"phase {number} has a wrong value for: {where}") from None


def _given_out(phases: Iterable[Phase], experts: Sequence[str]) -> tuple[Phase, ...]:
    """Give each phase to the expert that it names, or to the first one if it names none."""
    if not experts:
        return tuple(phases)
    given = tuple(replace(phase, expert=phase.expert or experts[0]) for phase in phases)
    for phase in given:
        if phase.expert not in experts:
            raise PlanRefused(
                f"phase {phase.id!r} has an unknown expert {phase.expert!r}; there are: "
                f"{', '.join(experts)}"
            )
    return given


def _names(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(str(name) for name in value) if isinstance(value, Sequence) else (str(value),)
