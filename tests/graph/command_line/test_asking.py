"""The reviewer: what is shown is what is answered, and what a person wrote is not lost."""

from collections.abc import Iterator
from io import StringIO
from typing import Any

from langgraph.types import Interrupt
from rich.console import Console

from daruma.graph.command_line._output import Paper
from daruma.graph.command_line._replies import ask
from daruma.graph.command_line._thread_view import Stop
from daruma.state.interrupts import read_reply

PHASE = {
    "id": "p1",
    "title": "Mend it",
    "instructions": "In sum.py.",
    "depends_on": [],
    "status": "pending",
    "expert": "tester",
    "validation_command": "pytest -q",
    "rollback_command": "git \u202echeckout .",
}
PLAN = {
    "type": "spec_review_request",
    "id": "r",
    "spec_review_id": "r",
    "goal": "Mend the sum",
    "phases": [PHASE],
    "experts": ["tester", "writer"],
    "deadline": None,
}


def approval(name: str, **changes: Any) -> dict[str, Any]:
    command = changes.pop("command", "ls")
    return {
        "approval_id": name, "digest": f"digest of {name}", "tool": "run_command",
        "args": {"command": command}, "command": command, "cwd": "/ws", "reason": "why",
        "required": True, "deny_effect": "continue", "sandbox": "namespace", **changes,
    }  # fmt: skip


def approvals(*several: dict[str, Any]) -> dict[str, Any]:
    return {"type": "approval_request", "id": "a", "approvals": list(several), "deadline": None}


class Person:
    """Types lines, and leaves in the editor what ``writes`` says; sees what is shown."""

    def __init__(self, *types: str, writes: tuple[str, ...] = ()) -> None:
        self._types: Iterator[str] = iter(types)
        self._writes = iter(writes)
        self.opened: list[str] = []
        self._file = StringIO()
        self.paper = Paper(Console(file=self._file, width=200))

    @property
    def saw(self) -> str:
        return self._file.getvalue()

    def answers(self, value: dict[str, Any], *, known: bool = False) -> Any:
        """Return the reply, which the question accepts; None where it is left open."""
        stop = Stop("t", None, (Interrupt(value, id="i"),), checks=("ruff check",))
        given = ask(stop, self.paper, known=known, read=self._read, edit=self._edit)
        return given["i"] if given and read_reply(value, given["i"]) else None

    def _read(self, prompt: str) -> str:
        self._file.write(f"{prompt}\n")
        for line in self._types:
            return line
        raise EOFError

    def _edit(self, text: str, _ending: str) -> str:
        self.opened.append(text)
        return next(self._writes)


def test_a_plan_is_shown_with_all_that_it_runs() -> None:
    """Validation, rollback, checks and experts; characters that hide are spelled."""
    person = Person("c")

    reply = person.answers(PLAN)

    assert reply == {"decision": "confirm"}
    for told in ("Mend the sum", "1. Mend it", "by: tester", "experts: tester, writer"):
        assert told in person.saw
    for told in ("pytest -q", r"git \u202echeckout .", "the work is checked with: ruff check"):
        assert told in person.saw


def test_a_known_plan_is_shown_whole_when_asked_for() -> None:
    """It stands above, maybe a screen away."""
    person = Person("s", "c")

    person.answers(PLAN, known=True)

    assert person.saw.count("1. Mend it") == 1


def test_nothing_is_left_out_silently() -> None:
    """Of a very long command it is said how many lines are not shown, and how to see them."""
    command = "\n".join(f"echo {number}" for number in range(1000))
    asked = approvals(approval("c1", command=command))
    person = Person("l")
    whole = Person("s", "l")

    person.answers(asked)
    whole.answers(asked)

    assert "lines are left out here: [s]how whole shows all" in person.saw
    assert "echo 500" not in person.saw
    assert "echo 0\n" in person.saw
    assert "echo 999\n" in person.saw
    assert "echo 500\n" in whole.saw
