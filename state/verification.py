"""What the checks said about the work."""

from daruma.state.record import record


@record
class Check:
    """One command that was run on the workspace. ``exit_code`` is None when it was killed.

    ``note`` explains an outcome that the exit code alone does not, such as no tests being there.
    ``sandbox`` is the level it ran at, ``not_covered`` what that leaves open; ``stopped_by`` is the
    limit it was killed for, if it was.
    """

    command: str
    passed: bool
    exit_code: int | None
    note: str = ""
    output: str = ""
    timed_out: bool = False
    seconds: float = 0.0
    sandbox: str = "none"
    not_covered: tuple[str, ...] = ()
    stopped_by: str = ""
    schema_version: int = 1


@record
class Verification:
    """The checks of one verification. Nothing to run passes, and ``note`` says so (VE-02)."""

    checks: tuple[Check, ...] = ()
    note: str = ""
    schema_version: int = 1

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)

    @property
    def summary(self) -> str:
        """Name every check with its outcome, on one line."""
        if not self.checks:
            return self.note or "nothing to check"
        return ", ".join(f"{check.command}: {_outcome(check)}" for check in self.checks)


def _outcome(check: Check) -> str:
    if check.timed_out:
        return "timed out"
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
