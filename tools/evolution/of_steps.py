"""Setbacks and recoveries that the record of steps tells of, those of team members too. Pure."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from daruma.state.asked import tools_in
from daruma.state.budget import of_task
from daruma.state.channels import State
from daruma.state.experience import Setback, Tried
from daruma.state.recoveries import ended_with, outcomes
from daruma.state.recovery import DONE
from daruma.state.step import Step
from daruma.tools.evolution.failing_lines import signed, telling_line
from daruma.tools.evolution.kept_text import kept_line
from daruma.tools.evolution.of_failures import NOT_RUN, PASSING, actor_of, in_the_way, kind_of
from daruma.tools.key_masking import without_keys
from daruma.tools.results import clean

_UNUSABLE = "the model"
"""How what was wrong with an answer that came begins; else a model was not heard."""


def tried_in(state: State) -> Iterator[Tried]:
    """Yield the actions that were done against failures, each with whether it worked (RE-08)."""
    steps = [step for step in of_task(state) if step.recovery]
    for step, told in zip(steps, outcomes(of_task(state), ended_with(state)), strict=True):
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
                reasoning=kept_line(told.reasoning),
            )


def recovered_from(state: State) -> Iterator[Setback]:
    """Yield the failures that recovery dealt with; what worked against them is the advice."""
    worked = {each.signature: _advice(each) for each in tried_in(state) if each.worked}
    steps = of_task(state)
    for number, step in enumerate(steps):
        if step.recovery is None or step.signature.count(":") < 2:
            continue
        node, code, told = step.signature.split(":", 2)
        said = in_the_way(code, [s for s in steps[:number] if s.phase_id == step.phase_id])
        unheard = code in ("timeout", "llm_failure") and not told.startswith(_UNUSABLE)
        yield Setback(
            kind=kind_of(code),
            actor=_actor(state, step),
            signature=signed(step.signature, *said),
            text=kept_line(": ".join((f"{code} in {node}", told, *said))),
            advice=worked.get(_signature(step), ""),
            tool=step.recovery.tool or step.recovery.hides,
            passing=unheard or code in PASSING or node == "intake",
        )


def errors_of_members(state: State) -> Iterator[Setback]:
    """Yield the errors that a team member was shown again: its messages are not the task's."""
    seen: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for phase in state.plan.phases if state.plan else ():
        actor = actor_of(state, phase)
        thinks = [s for s in of_task(state) if s.phase_id == phase.id and s.kind == "think"]
        for before, after in pairwise(thinks if actor != "main" else ()):
            for blocker in (each for each in after.blockers if not each.startswith(NOT_RUN)):
                tool = "+".join(tools_in(before.signature))
                said = telling_line(blocker)
                seen[actor, tool, signed("tool", tool, said)].append(said)
    for (actor, tool, signature), errors in seen.items():
        if len(errors) > 1:
            text = kept_line(f"{tool}: {errors[0]}")
            yield Setback(kind="tool", actor=actor, signature=signature, text=text, tool=tool)


def _actor(state: State, step: Step) -> str:
    if step.signature.startswith("plan:"):
        return "plan"
    return actor_of(state, state.plan.phase(step.phase_id) if state.plan else None)


def _signature(step: Step) -> str:
    """Return the failure's own signature, as who looks for a recovery has it; without keys."""
    return without_keys(clean(step.signature))


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
    return kept_line(f"{said}: {tried.reasoning}" if said and tried.reasoning else said)
