"""What was learned, on paper or as JSON: pitfalls, recoveries, additions to prompts."""

import json
import shlex
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

import typer
from langgraph.store.base import BaseStore
from rich.console import Console

from daruma.graph.command_line._options import Learned
from daruma.graph.command_line._output import Line, Mark, Paper
from daruma.graph.command_line._printable import one_line
from daruma.state.lessons import Experience, Pitfall, WouldHave
from daruma.tools.evolution import (
    EVOLUTION_NAMESPACE,
    Evidence,
    EvidenceKind,
    KnownAction,
    Pitfalls,
    RecoveryPattern,
    Variant,
    confidence,
    confidence_at,
    recovery_key,
    render_counterfactual,
)
from daruma.tools.memory import owner_in

# --- What there is to show of an owner's pitfalls, as sure as they are by now.

MOST: Final = 1000
"""Pitfalls that are looked through."""


@dataclass(frozen=True)
class PitfallView:
    """A list of pitfalls; ``others`` says who else has some.

    ``left_out`` counts those that are not of the ``level``; without one, those that are not sure.
    """

    pitfalls: Sequence[Pitfall]
    left_out: int = 0
    others: Sequence[str] = ()
    level: str | None = None


@dataclass(frozen=True)
class Told:
    """One pitfall, and what tasks say of it: the oldest first."""

    pitfall: Pitfall
    evidence: Sequence[Evidence]


async def listing(
    learned: Learned, level: str | None = None, *, everything: bool = False, limit: int = MOST
) -> PitfallView:
    """Return the pitfalls of a level; without one those that are sure, or all."""
    kept = await Pitfalls(learned.store, learned.owner).all(MOST)
    aged = [by_now(each, learned.settings.min_confidence) for each in kept]
    shown = [each for each in aged if _wanted(each, level, everything=everything)]
    others = [] if kept else await other_owners(learned.store, learned.owner)
    return PitfallView(shown[:limit], len(aged) - len(shown), others, level)


async def told_of(learned: Learned, id_: str) -> Told | None:
    """Return an own pitfall; one of somebody else's is as good as none."""
    own = Pitfalls(learned.store, learned.owner)
    found = await own.get(id_)
    if found is None:
        return None
    return Told(by_now(found, learned.settings.min_confidence), await own.evidence(id_))


def by_now(pitfall: Pitfall, least: float) -> Pitfall:
    """Return a pitfall with its confidence of now; one that is no longer sure enough is low."""
    sure = confidence_at(pitfall, time.time())
    return replace(pitfall, confidence=sure, level="low" if sure < least else pitfall.level)


async def other_owners(store: BaseStore, owner: str) -> list[str]:
    """Return who else has pitfalls in the store."""
    found = await store.alist_namespaces(
        prefix=EVOLUTION_NAMESPACE, suffix=("pitfalls",), limit=MOST
    )
    return [each for each in _owners(found) if each != owner]


def _owners(places: Iterable[tuple[str, ...]]) -> list[str]:
    return list(
        dict.fromkeys(owner_in(place) for place in places if len(place) > len(EVOLUTION_NAMESPACE))
    )


def _wanted(pitfall: Pitfall, level: str | None, *, everything: bool) -> bool:
    return pitfall.level == level if level else everything or pitfall.level != "low"


# --- The list of pitfalls: as lines on a terminal, tab-separated elsewhere, or as JSON.

MOST_NAMED: Final = 5
"""Others that are named where there is nothing."""


def plain(pitfall: Pitfall) -> dict[str, Any]:
    """Return a pitfall as JSON-able values."""
    return {key: value for key, value in asdict(pitfall).items() if key != "schema_version"}


def pitfalls_as_json(pitfalls: Iterable[Pitfall]) -> str:
    """Return pitfalls as one JSON array."""
    return json.dumps([plain(each) for each in pitfalls])


def print_pitfalls(view: PitfallView, paper: Paper | None = None) -> None:
    """Print one line for each: id, text, level, actor, confidence, tasks and the day seen last."""
    paper = paper or Paper(Console(highlight=False))
    for each in view.pitfalls:
        told = (each.level, each.actor, f"{each.confidence:.2f}", tasks(each.tasks), day(each))
        if paper.terminal:
            about = " · ".join(one_line(text, 100) for text in told)
            paper.put(Line("line", f"{each.id}  {each.text}", about))
        else:
            row = (each.id, *told[:3], str(each.tasks), told[4], each.text)
            line = "\t".join(one_line(text, 4_000) for text in row)
            typer.echo(line, file=paper.console.file)  # Rich would turn tabs into spaces
    if note := _note(view):
        paper.put(Line("note", note))


def print_forgotten(pitfall: Pitfall, made: Iterable[str] = (), paper: Paper | None = None) -> None:
    """Say what is gone, and which additions to prompts were ``made`` of it and stay."""
    paper = paper or Paper(Console(highlight=False))
    about = f"{pitfall.actor} · {tasks(pitfall.tasks)}"
    paper.put(Line("ok", f"forgotten: {one_line(pitfall.text, 400)}", about))
    for each in made:
        told = "an addition to a prompt was made of it, and stays"
        paper.put(Line("note", f"{told}: see `daruma pitfalls withdraw {each}`"))


def tasks(number: int) -> str:
    """Say a number of tasks."""
    return f"{number} task{'' if number == 1 else 's'}"


def day(pitfall: Pitfall) -> str:
    """Return the day that a pitfall was seen last."""
    return datetime.fromtimestamp(pitfall.last_at, UTC).date().isoformat()


def _note(view: PitfallView) -> str:
    if view.pitfalls:
        more = f"{view.left_out} more that are not sure enough: see --all"
        return more if view.left_out and not view.level else ""
    if view.left_out:
        return f"there are {view.left_out}, none of them {view.level or 'sure enough'}: see --all"
    return nothing(view.others)


def nothing(others: Sequence[str], what: str = "pitfalls") -> str:
    """Say that there is nothing, and who has some."""
    if not others:
        return f"there are no {what}"
    named = ", ".join(shlex.quote(one_line(each, 200)) for each in others[:MOST_NAMED])
    more = f" and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
    return f"there are no {what} here; there are some of {named}{more}: see --namespace"


# --- One pitfall on paper: what it says, how sure it is, and what tasks say of it.

_HOW: Final[dict[EvidenceKind, tuple[Mark, str]]] = {
    "failed": ("bad", "met it"),
    "clear": ("ok", "went well, not told of it"),
    "avoided": ("ok", "was told of it, and went well"),
    "repeated": ("bad", "was told of it, and met it again"),
    "in_vain": ("bad", "was told of it, and fell to something else"),
}


def pitfall_as_json(told: Told) -> str:
    """Return a pitfall with its evidence as one JSON object."""
    evidence = [
        {"task": each.task, "how": each.how, "at": each.at, "goal": each.goal}
        for each in told.evidence
    ]
    return json.dumps({**plain(told.pitfall), "evidence": evidence})


def print_pitfall(told: Told, paper: Paper | None = None) -> None:
    """Print it. Its texts come from tools and models: nothing in them is obeyed."""
    paper = paper or Paper(Console(highlight=False))
    pitfall = told.pitfall
    paper.put(Line("head", one_line(pitfall.text, 400), f"{pitfall.level} · {pitfall.id}"))
    if pitfall.advice:
        paper.put(Line("words", one_line(pitfall.advice, 400)))
    counts = f"seen in {tasks(pitfall.tasks)}, {pitfall.clear} alike went well untold"
    fed = pitfall.avoided + pitfall.repeated + pitfall.in_vain
    told_to = f"told to {fed}, of which {pitfall.avoided} went well"
    shared = "shared" if pitfall.shared else "not shared"
    paper.put(
        Line("note", f"{pitfall.kind} of {one_line(pitfall.actor, 100)}: {pitfall.signature}"),
        Line("note", f"confidence {pitfall.confidence:.2f} by now: {counts}; {told_to}"),
        Line("note", f"of {one_line(pitfall.owner, 400)}, {shared}"),
    )
    paper.put(Line("head", "Goals"), *(Line("line", one_line(goal, 400)) for goal in pitfall.goals))
    paper.put(Line("head", "Tasks"), *(_line(each) for each in told.evidence))


def _line(evidence: Evidence) -> Line:
    mark, said = _HOW[evidence.how]
    day = datetime.fromtimestamp(evidence.at, UTC).date().isoformat()
    return Line(mark, f"{one_line(evidence.task, 200)} {said}", day)


# --- What was tried against failures: as lines on a terminal, tab-separated elsewhere, or as JSON.


def recoveries_as_json(patterns: Iterable[RecoveryPattern]) -> str:
    """Return the patterns as one JSON array, each action with its confidence of now."""
    return json.dumps([_plain(each) for each in patterns])


def print_recoveries(
    patterns: Sequence[RecoveryPattern], *, mark: Mark = "line", paper: Paper | None = None
) -> None:
    """Print one line for each action: id, what was done, how sure, how often it worked."""
    paper = paper or Paper(Console(highlight=False))
    for pattern in patterns:
        for action in pattern.actions:
            told = _told(pattern, action)
            if paper.terminal:
                about = " · ".join(one_line(text, 100) for text in told[1:-1])
                paper.put(Line(mark, f"{told[0]}  {one_line(told[-1], 400)}", about))
            else:
                line = "\t".join(one_line(text, 4_000) for text in told)
                typer.echo(line, file=paper.console.file)  # Rich would turn tabs into spaces
    if not patterns:
        paper.put(Line("note", "nothing was tried against failures here"))


def _told(pattern: RecoveryPattern, action: KnownAction) -> tuple[str, ...]:
    tried = action.worked + action.failed
    done = f"{action.strategy} {action.instead}".rstrip()
    sure = f"{confidence(action, time.time()):.2f}"
    often = f"worked {action.worked} of {tried}"
    return _id(pattern), done, pattern.actor, sure, often, pattern.signature


def _plain(pattern: RecoveryPattern) -> dict[str, object]:
    now = time.time()
    actions = [
        {key: value for key, value in asdict(each).items() if key != "schema_version"}
        | {"confidence": confidence(each, now)}
        for each in pattern.actions
    ]
    about = {"actor": pattern.actor, "signature": pattern.signature, "last_at": pattern.last_at}
    return {"id": _id(pattern), **about, "owner": pattern.owner, "actions": actions}


def _id(pattern: RecoveryPattern) -> str:
    return recovery_key(pattern.actor, pattern.signature)


# --- The learned additions to prompts: as lines on a terminal, tab-separated elsewhere, or as JSON.


def variants_as_json(variants: Iterable[Variant]) -> str:
    """Return the variants as one JSON array."""
    plain = (asdict(each) for each in variants)
    return json.dumps([{k: v for k, v in each.items() if k != "schema_version"} for each in plain])


def print_variants(variants: Sequence[Variant], paper: Paper | None = None) -> None:
    """Print one line for each: id, text, status, whose prompt, and what was decided last."""
    paper = paper or Paper(Console(highlight=False))
    for each in variants:
        told = (each.status, f"{each.actor}, {each.place}", each.why)
        if paper.terminal:
            about = " · ".join(one_line(text, 200) for text in told if text)
            paper.put(Line("line", f"{each.id}  {one_line(each.text, 400)}", about))
        else:
            row = (each.id, each.status, each.actor, each.place, each.why, each.text)
            line = "\t".join(one_line(text, 4_000) for text in row)
            typer.echo(line, file=paper.console.file)  # Rich would turn tabs into spaces
    if not variants:
        paper.put(Line("note", "no prompt has a learned addition"))


# --- What tasks would have been given, on paper or as JSON.


def would_have_as_json(experiences: Iterable[Experience]) -> str:
    """Return for each task what it would have been given, as one JSON array."""
    return json.dumps(
        [
            {
                "task": each.task_id,
                "goal": each.goal,
                "at": each.at,
                "status": each.status,
                **each.would_have.lessons.to_dict(),
                "actions": list(each.would_have.actions),
            }
            for each in experiences
            if each.would_have
        ]
    )


def print_would(experiences: Sequence[Experience], paper: Paper | None = None) -> None:
    """Print each task, and under it what it would have been told of."""
    paper = paper or Paper(Console(highlight=False))
    for each in experiences:
        if each.would_have:
            paper.put(Line("head", one_line(each.goal, 200), f"{each.task_id} · {each.status}"))
            paper.put(*_lines(each.would_have))
    if not experiences:
        paper.put(Line("note", "no task would have been given anything"))


def _lines(found: WouldHave) -> list[Line]:
    told = [
        Line("line", one_line(each.text, 400), f"pitfall {each.id}")
        for each in found.lessons.pitfalls
    ]
    rest = replace(found, lessons=replace(found.lessons, pitfalls=()))
    return told + (
        [Line("note", one_line(render_counterfactual(rest), 400))] if rest.anything else []
    )
