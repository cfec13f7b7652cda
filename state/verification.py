"""What the checks said about the work, and a judge."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator

from daruma.state.record import record

Outcome = Literal["passed", "failed", "none"]
"""``none``: nothing was checked, so that nothing is known of the work."""

LOST: Final = "not collected any more"
"""What a note says of tests that were there at the task's beginning."""


# --- A rubric: what the work is to meet, where no command can tell (VE-11).

MOST_CRITERIA: Final = 20
LONGEST_CRITERION: Final = 500
"""Characters."""


def read_rubric(given: object) -> tuple[str, ...]:
    """Return the criteria of a rubric: of a text its lines, without what marks them as a list.

    Raises ValueError, in one line.
    """
    if given is None:
        return ()
    lines = given.splitlines() if isinstance(given, str) else given
    if not isinstance(lines, Sequence) or not all(isinstance(each, str) for each in lines):
        raise ValueError("a rubric is a text, or a list of texts: a criterion each")
    found = (" ".join(re.sub(r"^\s*(?:[-*•]|\d{1,3}[.)])\s", "", each).split()) for each in lines)
    rubric = tuple(dict.fromkeys(each for each in found if each))
    if len(rubric) > MOST_CRITERIA:
        raise ValueError(f"a rubric has {MOST_CRITERIA} criteria at most, not {len(rubric)}")
    if any(len(each) > LONGEST_CRITERION for each in rubric):
        raise ValueError(f"a criterion has {LONGEST_CRITERION} characters at most")
    return rubric


Rubric = Annotated[tuple[str, ...], BeforeValidator(read_rubric)]
"""Criteria, of which the judge says for each whether the work meets it."""


def judged_by(rubric: Sequence[str]) -> str:
    """Return what whoever does the work is told of a rubric; empty where there is none."""
    head = "The work is judged by somebody else, who sees what it has come to and nothing else:"
    return "\n".join((head, *(f"- {each}" for each in rubric))) if rubric else ""


# --- What the checks said, and the judge.


@record
class Verdict:
    """What the judge says of one ``criterion``; ``evidence`` is quoted from the work."""

    criterion: str
    met: bool
    evidence: str = ""
    why: str = ""
    schema_version: int = 1


JUDGE: Final = "judge"
"""What the judge's verdict is called beside commands."""


@record
class Check:
    """One command that was run on the workspace. ``exit_code`` is None when it was killed.

    ``note`` explains an outcome that the exit code alone does not, such as no tests being there.
    ``conclusive`` is False where the command could tell nothing of the work: there are no tests, or
    its program is not there.
    ``sandbox`` is the level it ran at, ``not_covered`` what that leaves open; ``stopped_by`` is the
    limit it was killed for, if it was. ``still_red`` says that tests which were red before the task
    ran, and are red now, or are gone as a kind. The judge is one of them (VE-11), with its
    ``verdicts`` and no exit code. A command of the plan has its ``stdout`` and ``stderr`` apart,
    too (RO-04).
    """

    command: str
    passed: bool
    exit_code: int | None
    note: str = ""
    conclusive: bool = True
    output: str = ""
    stdout: str | None = None
    stderr: str | None = None
    timed_out: bool = False
    seconds: float = 0.0
    sandbox: str = "none"
    not_covered: tuple[str, ...] = ()
    stopped_by: str = ""
    still_red: bool = False
    verdicts: tuple[Verdict, ...] = ()
    schema_version: int = 1

    @property
    def by_judge(self) -> bool:
        """Whether no command was run, but a judge asked."""
        return self.command == JUDGE and self.exit_code is None

    @property
    def outcome(self) -> Outcome:
        """What the command said of the work; a red one always says something."""
        if not self.passed:
            return "failed"
        return "passed" if self.conclusive else "none"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able values, with the outcome; the output as it is on record (VE-10)."""
        plain = asdict(self) | {"outcome": self.outcome}
        plain.pop("schema_version")
        if self.stdout is None:
            del plain["stdout"], plain["stderr"]
        verdicts = [*plain.pop("verdicts")]
        for each in verdicts:
            each.pop("schema_version")
        return plain | ({"verdicts": verdicts} if verdicts else {})


@record
class Verification:
    """The checks of one verification. ``note`` says why there are none.

    ``changed_tests`` are the test files, and what configures the tests, that were changed, added or
    removed since the task began (VE-08); ``seconds`` is what all of it took.
    """

    checks: tuple[Check, ...] = ()
    note: str = ""
    changed_tests: tuple[str, ...] = ()
    seconds: float = 0.0
    schema_version: int = 1

    @property
    def outcome(self) -> Outcome:
        """What all checks together say: nothing to run and nothing told is ``none`` (VE-02).

        So is one with tests that are red as before the task, whatever the others say (MO-10); a
        file that no run could collect, before or now, is no such test.
        """
        outcomes = {check.outcome for check in self.checks}
        if "failed" in outcomes:
            return "failed"
        still_red = any(check.still_red for check in self.checks)
        return "passed" if "passed" in outcomes and not still_red else "none"

    @property
    def passed(self) -> bool:
        """Whether no check is red; ``outcome`` tells what passed from what was not checked."""
        return self.outcome != "failed"

    @property
    def why(self) -> str:
        """Name on one line the checks that decided the outcome, or why nothing was checked."""
        decided = (check for check in self.checks if check.outcome == self.outcome)
        return _told(decided) or self.summary

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able values, the outcomes among them."""
        return {
            "outcome": self.outcome,
            "summary": self.summary,
            "seconds": self.seconds,
            "changed_tests": list(self.changed_tests),
            "checks": [check.to_dict() for check in self.checks],
        }

    @property
    def summary(self) -> str:
        """Name every check with its outcome, on one line."""
        return _told(self.checks) or self.note or "nothing to check"


def _told(checks: Iterable[Check]) -> str:
    return ", ".join(f"{check.command}: {_outcome(check)}" for check in checks)


def _outcome(check: Check) -> str:
    if check.timed_out:
        return "timed out"
    if check.outcome == "none":
        return f"none, {check.note}" if check.note else "none"
    exit_code = "" if check.by_judge else f" (exit {check.exit_code})"
    said = "passed" if check.passed else f"failed{exit_code}"
    return f"{said}, {check.note}" if check.note else said


def excerpt(verification: Verification, *, limit: int = 4000) -> str:
    """Return the failing checks' output, cut to its end: test runners say what matters last.

    ``limit`` is in characters for all checks together.
    """
    failed = [check for check in verification.checks if not check.passed]
    share = limit // max(1, len(failed))
    return "\n\n".join(
        f"{title_of(check)}\n[{_outcome(check)}]\n{_tail(check.output, share)}" for check in failed
    )


def title_of(check: Check) -> str:
    """Return how a check is headed: a command as in a shell."""
    return "The judge" if check.by_judge else f"$ {check.command}"


def _tail(text: str, limit: int) -> str:
    text = text.strip()
    cut = len(text) - limit
    return f"[... {cut} characters cut]\n{text[-limit:]}" if cut > 0 else text
