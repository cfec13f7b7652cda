"""What the checks said about the work."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, Final, Literal

from daruma.state.record import record

Outcome = Literal["passed", "failed", "none"]
"""``none``: nothing was checked, so that nothing is known of the work."""


LOST: Final = "not collected any more"
"""What a note says of tests that were there at the task's beginning."""


@record
class Check:
    """One command that was run on the workspace. ``exit_code`` is None when it was killed.

    ``note`` explains an outcome that the exit code alone does not, such as no tests being there.
    ``conclusive`` is False where the command could tell nothing of the work: there are no tests, or
    its program is not there.
    ``sandbox`` is the level it ran at, ``not_covered`` what that leaves open; ``stopped_by`` is the
    limit it was killed for, if it was. ``still_red`` says that tests which were red before the task
    ran, and are red now.
    """

    command: str
    passed: bool
    exit_code: int | None
    note: str = ""
    conclusive: bool = True
    output: str = ""
    timed_out: bool = False
    seconds: float = 0.0
    sandbox: str = "none"
    not_covered: tuple[str, ...] = ()
    stopped_by: str = ""
    still_red: bool = False
    schema_version: int = 1

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
        return plain


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
        return (
            _told(check for check in self.checks if check.outcome == self.outcome) or self.summary
        )

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
        if not self.checks:
            return self.note or "nothing to check"
        return _told(self.checks)


def _told(checks: Iterable[Check]) -> str:
    return ", ".join(f"{check.command}: {_outcome(check)}" for check in checks)


def _outcome(check: Check) -> str:
    if check.timed_out:
        return "timed out"
    if check.outcome == "none":
        return f"none, {check.note}" if check.note else "none"
    said = "passed" if check.passed else f"failed (exit {check.exit_code})"
    return f"{said}, {check.note}" if check.note else said


def excerpt(verification: Verification, *, limit: int = 4000) -> str:
    """Return the failing checks' output, cut to its end: test runners say what matters last.

    ``limit`` is in characters for all checks together.
    """
    failed = [check for check in verification.checks if not check.passed]
    share = limit // max(1, len(failed))
    return "\n\n".join(
        f"$ {check.command}\n[{_outcome(check)}]\n{_tail(check.output, share)}" for check in failed
    )


def _tail(text: str, limit: int) -> str:
    text = text.strip()
    return (
        text if len(text) <= limit else f"[... {len(text) - limit} characters cut]\n{text[-limit:]}"
    )
