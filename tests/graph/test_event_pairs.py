"""What is told as begun is told as ended, whatever happens on the way (PL-04)."""

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage
from langgraph.types import Command
from tests.parts import settings as settings_of
from tests.scripted_runs import CLOSERS, Run, call, calls, phases, say

NAMES = ("task_id", "phase_id", "call_id")
ROLLBACKS: dict[str, dict[str, str]] = {
    "none": {},
    "works": {"rollback_command": "true"},
    "fails": {"rollback_command": "false"},
    "snapshot": {"rollback": "snapshot"},
    "not needed": {"validation_command": "true", "rollback": "snapshot"},
    "needed": {"validation_command": "false", "rollback_command": "true"},
}
OK = calls(call("run_command", command="touch ok"))
WORKS: dict[str, list[dict[str, Any]]] = {
    "passes": [OK, say()],
    "fails": [say(), say()],
    "is silent": [say(""), say("")],
    "falls": [{"raise": "the provider is down"}] * 3,
}


@dataclass(frozen=True)
class Journey:
    """A task: its phases, how each of them goes, what people say, where the caller goes away."""

    mode: str
    rollbacks: list[str]
    works: list[str]
    chained: bool
    reviews: list[str]
    holds: list[str]
    leaves_after: int | None
    parallel: int = field(default=2)

    @property
    def script(self) -> dict[str, Any]:
        plan = [
            {
                "id": f"p{n}",
                "expert": "developer",
                "depends_on": [f"p{n - 1}"] if self.chained and n else [],
                **ROLLBACKS[rollback],
            }
            for n, rollback in enumerate(self.rollbacks)
        ]
        own = {f"main@p{n}": WORKS[work] for n, work in enumerate(self.works)}
        return {
            "plan": [phases(*plan)] * 9,
            "main": [turn for work in self.works for turn in WORKS[work]] + [say()] * 9,
            "reflect": [say("Hm.")] * 9,
            "recovery": [say("no idea")] * 9,
        } | own


JOURNEYS = st.integers(1, 3).flatmap(
    lambda n: st.builds(
        Journey,
        mode=st.sampled_from(["plan_exec", "team_collab"]),
        rollbacks=st.lists(st.sampled_from([*ROLLBACKS]), min_size=n, max_size=n),
        works=st.lists(st.sampled_from([*WORKS]), min_size=n, max_size=n),
        chained=st.booleans(),
        reviews=st.lists(st.sampled_from(["reject", "park"]), max_size=2, unique=True),
        holds=st.lists(st.sampled_from(["retry", "restore"]), max_size=1),
        leaves_after=st.none() | st.integers(1, 30),
    )
)


@contextmanager
def a_workspace() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="daruma-journey-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def travel(journey: Journey, workspace: Path) -> list[dict[str, Any]]:
    """Run the task to its end, and return all that was told.

    Who goes away misses what is told at that moment: then it is all that is told after that.
    """
    given_settings = settings_of(
        sandbox={"require": "none"},
        tools={"policy": {"run_command": "allow"}},
        verification={"commands": ["test -e ok"]},
        fallback_chain={"recovery": {"wait_seconds": 0}},
        llm={"requests": {"wait_seconds": 0}},
        team={"max_parallel": journey.parallel},
    )
    run = Run(journey.script, settings=given_settings)
    request = {
        "messages": [HumanMessage("Do it")],
        "mode": journey.mode,
        "workspace": str(workspace),
    }
    reviews, holds = [*journey.reviews], [*journey.holds]
    leave(run, request, journey.leaves_after)
    missed = len(run.events) if journey.leaves_after == len(run.events) else 0
    while run.snapshot.tasks:
        questions = run.snapshot.interrupts
        run.send(
            Command(resume={q.id: reply_to(q.value, reviews, holds) for q in questions})
            if questions
            else None
        )
    return run.events[missed:]


def leave(run: Run, request: Mapping[str, Any], after: int | None) -> None:
    """Start the task; the caller may go away after so many events, which ends the run."""
    parts = run.graph.stream(request, run.config, stream_mode="custom")
    for number, event in enumerate(parts, 1):
        run.events.append(event)
        if number == after:
            parts.close()
            return


def reply_to(question: Mapping[str, Any], reviews: list[str], holds: list[str]) -> Any:
    if question["type"] == "question" and "options" in question:
        way = holds.pop() if holds else "keep"
        return {"answer": way if way in question["options"] else "keep"}
    if question["type"] == "question":
        return {"answer": "Go on."}
    decision = reviews.pop() if reviews and not question.get("parked") else "confirm"
    return {"decision": decision, **({"feedback": "no"} if decision == "reject" else {})}


def open_at_the_end(events: Iterable[Mapping[str, Any]]) -> set[tuple[str, str]]:
    """Return what was begun last, and never ended; by type and name, since runs are cut short."""
    opened: set[tuple[str, str]] = set()
    for event in events:
        name = ":".join(str(event.get(key, "")) for key in NAMES) + event.get("member", "")
        for opener, closers in CLOSERS.items():
            if event["type"] == opener:
                opened.add((opener, name))
            elif event["type"] in closers:
                opened.discard((opener, name))
    return opened


@settings(max_examples=25, deadline=None)
@given(JOURNEYS)
def test_what_begins_ends(journey: Journey) -> None:
    """PL-04: confirm, reject, timeout, failure, rollback, held, cancelled and resumed."""
    with a_workspace() as workspace:
        events = travel(journey, workspace)

    assert open_at_the_end(events) == set()
    assert events[-1]["type"] == "task_completed"


def test_an_open_end_is_found() -> None:
    """The property can fail."""
    begun = {"type": "phase_started", "phase_id": "a"}
    other = {"type": "phase_completed", "phase_id": "b"}

    assert open_at_the_end([begun, other]) == {("phase_started", ":a:")}
    assert open_at_the_end([begun, other | {"phase_id": "a"}]) == set()
