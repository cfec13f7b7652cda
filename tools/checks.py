"""Which commands verify a workspace, judged by what lies in it, and running them."""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from daruma.state.verification import Check
from daruma.tools.commands.output import LiveOutput
from daruma.tools.sandbox.sandbox import Sandbox, hint, killed_for
from daruma.tools.threads import to_thread

_BY_MANIFEST: dict[str, tuple[str, ...]] = {
    "pyproject.toml": ("pytest -x -q", "ruff check"),
    "package.json": ("npm run test --if-present --silent",),
    "Cargo.toml": ("cargo test --quiet",),
    "go.mod": ("go test ./...",),
    "pom.xml": ("mvn --quiet test",),
    "build.gradle": ("gradle --quiet test",),
    "build.gradle.kts": ("gradle --quiet test",),
    "mix.exs": ("mix test",),
}
_PYTHON = _BY_MANIFEST["pyproject.toml"]
_NOT_SEARCHED = frozenset({"node_modules", "venv", "site-packages", "__pycache__"})
_NO_TESTS = 5
"""pytest's exit code for "no tests collected": there was nothing to fail."""
_NOT_FOUND = 127
"""The shell's exit code for a program that is not there."""


def commands_for(files: Iterable[str]) -> tuple[str, ...]:
    """Return the checks for a workspace with these files at its top, and any ``.py`` below it."""
    names = set(files)
    found = [command for name, own in _BY_MANIFEST.items() if name in names for command in own]
    if any(name.endswith(".py") for name in names):
        found.extend(_PYTHON)
    return tuple(dict.fromkeys(found))


async def recognised_commands(workspace: Path) -> tuple[str, ...]:
    """Look into a workspace and return the checks that fit it (VE-02)."""
    return commands_for(await to_thread(_telling_files, workspace))


def _telling_files(workspace: Path) -> list[str]:
    names = sorted(entry.name for entry in os.scandir(workspace) if entry.is_file())
    return [*names, *_first_python_file(workspace)]


def _first_python_file(workspace: Path) -> list[str]:
    for _, folders, files in os.walk(workspace):
        folders[:] = [f for f in folders if f not in _NOT_SEARCHED and not f.startswith(".")]
        if python := [name for name in files if name.endswith(".py")]:
            return python[:1]
    return []


async def run_checks(
    commands: Sequence[str],
    workspace: Path,
    timeout: float,
    sandbox: Sandbox,
    live: Callable[[str], LiveOutput | None] = lambda _: None,
) -> list[Check]:
    """Run the checks one after another, all of them: the model is told all that is wrong.

    ``live`` makes, for each command, what is told of its output while it runs.
    """
    return [await _run(each, workspace, timeout, sandbox, live(each)) for each in commands]


async def _run(
    command: str, workspace: Path, timeout: float, sandbox: Sandbox, live: LiveOutput | None
) -> Check:
    result = await sandbox.run(command, workspace=workspace, timeout=timeout, live=live)
    no_tests = result.exit_code == _NO_TESTS and command.startswith("pytest")
    return Check(
        command=command,
        passed=result.passed or no_tests,
        exit_code=result.exit_code,
        note=killed_for(result) or _note(result.exit_code, no_tests=no_tests),
        conclusive=not no_tests,
        output="\n".join(p for p in (result.stdout, result.stderr, hint(result)) if p.strip()),
        timed_out=result.timed_out,
        seconds=result.seconds,
        sandbox=result.sandbox,
        not_covered=result.not_covered,
        stopped_by=result.stopped_by,
    )


def _note(exit_code: int | None, *, no_tests: bool) -> str:
    if no_tests:
        return "there are no tests"
    return "the program is not there" if exit_code == _NOT_FOUND else ""
