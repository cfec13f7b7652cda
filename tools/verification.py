"""Running the checks that say whether the work is done, and judging what they say."""

import os
import secrets
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from langchain_core.messages import ToolMessage

from daruma.state.channels import State
from daruma.state.events import VerificationCompleted, VerificationStarted
from daruma.state.outcome import join_paths
from daruma.state.verification import LOST, Check, Verification, excerpt
from daruma.tools import reports
from daruma.tools.calls import Surroundings, Tool, ToolArgs, commands_refusal, shipped_tool
from daruma.tools.calls.policy import place_outside
from daruma.tools.checks import (
    PYTEST,
    RUFF,
    asks_for_lint,
    asks_to_drop,
    asks_to_fix,
    asks_to_hide,
    asks_to_move,
    asks_to_pass,
    asks_to_remove,
    commands_for,
    declared_plugins,
    is_to_be_fixed,
    programs_of,
    pytest_line,
    ran_nothing,
    recognised_commands,
    runs_pytest,
    runs_tests,
    telling_files,
    with_report,
    without_stopping,
)
from daruma.tools.commands import (
    OUTPUT_LIMIT,
    BoundedOutput,
    CommandResult,
    LiveOutput,
    command_environment,
    command_run,
    find_in,
    kill_reason,
    live_output,
    recorded_output,
)
from daruma.tools.context import Context
from daruma.tools.errors import CommandRefused
from daruma.tools.files import is_lasting
from daruma.tools.reports import Case, Key, Report, find_hidden_exit
from daruma.tools.sandbox import Sandbox, sandbox_hint
from daruma.tools.snapshots import Change, Snapshots, SnapshotUnavailable, with_snapshots
from daruma.tools.threads import in_thread, to_thread

# --- How the workspace was at the task's beginning, laid out where checks can be run on it.


@dataclass
class Beginning:
    """The snapshot of the task's beginning; ``changes`` are what differs now.

    ``at`` is when that was, Unix time; ``missing`` says why there is none; ``spoiled`` tells what
    was ignored and differs; ``looked_at`` is what this run found there before. Its files are
    written when asked for, removed when ``stack`` is closed.
    """

    snapshots: Snapshots | None = None
    snapshot: str = ""
    changes: tuple[Change, ...] = ()
    missing: str = ""
    at: float = 0.0
    stack: ExitStack = field(default_factory=ExitStack)
    spoiled: Callable[[], tuple[str, ...]] = tuple
    looked_at: dict[tuple[object, ...], Report] = field(default_factory=dict)
    _folder: Path | None = None

    def folder(self, beside: Path) -> Path:
        """Return the folder with its files. Blocks; raises SnapshotUnavailable and OSError."""
        if self._folder is None and self.snapshots:
            top = Path(tempfile.mkdtemp(prefix="daruma-beginning-")).resolve()
            self.stack.callback(shutil.rmtree, top, ignore_errors=True)
            folder = _surrounded(self.snapshots.workspace, top)
            self.snapshots.stand_in(self.snapshot, folder, beside)
            self._folder = folder
        if self._folder is None:
            raise SnapshotUnavailable(self.missing)
        return self._folder

    def commands(self, now: Mapping[str, str]) -> tuple[str, ...]:
        """Return its checks but linters; ``now`` is what tells of today's (VE-08). Blocks."""
        files = dict(now)
        for path in (each.path for each in self.changes if each.what != "added"):
            top, below, _ = path.partition("/")
            files[f"{top}/"] = ""
            if self.snapshots and (path.endswith(".py") or not below):
                files[path] = self.snapshots.text(self.snapshot, path) or ""
        return tuple(each for each in commands_for(files) if each != RUFF)

    def changed_tests(self, known: Iterable[str]) -> tuple[str, ...]:
        """Return the test files that differ, and what says how tests are run (VE-08). Blocks."""
        files = frozenset(known)
        told = (
            each.path
            for each in self.changes
            if reports.is_test_file(each.path, files)
            or (reports.says_how(each.path) and self._says_else(each))
        )
        return (*told, *self._unseen())

    def _unseen(self) -> Iterator[str]:
        """Yield what is newer than the task and in no snapshot: it is told, not judged."""
        if (snapshots := self.snapshots) is None or not self.at:
            return
        known = {each.path for each in self.changes}
        for path in reports.RUNS_TESTS:
            with suppress(OSError):
                newer = (snapshots.workspace / path).lstat().st_ctime > self.at
                if newer and path not in known and snapshots.text(self.snapshot, path) is None:
                    yield path

    def _says_else(self, change: Change) -> bool:
        if self.snapshots is None or change.what != "changed":
            return True
        now = reports.read_text(self.snapshots.workspace / change.path)
        before = self.snapshots.text(self.snapshot, change.path) or ""
        return reports.about_tests(change.path, before) != reports.about_tests(change.path, now)


def _surrounded(workspace: Path, top: Path) -> Path:
    """Return where a workspace may be laid out below ``top``.

    Where files above it configure tests, it lies as deep as below the highest of them, and around
    it are links to what lies around it: by those a sandbox opens no more than by their targets.
    """
    above = [
        folder
        for folder in workspace.parents[:-1]
        if any((folder / name).is_file() for name in reports.RUNS_TESTS if "/" not in name)
    ]
    if not above:
        return top / workspace.name
    place = top / above[-1].name
    for name in workspace.relative_to(source := above[-1]).parts:
        place.mkdir()
        with suppress(OSError):
            for each in source.iterdir():
                if each.name != name:
                    (place / each.name).symlink_to(each)
        place, source = place / name, source / name
    return place


NO_SNAPSHOT: Final = "there is no snapshot of the task's beginning"


async def beginning_of(state: State, context: Context, stack: ExitStack) -> Beginning:
    task = state.task
    snapshots = context.snapshots(task.workspace if task else None)
    if task is None or snapshots is None:
        return Beginning(missing="rollback.snapshots is off")
    own = (each for each in state.savepoints if each.task_id == task.id)
    start = next((each for each in own if each.workspace == task.workspace), None)
    if start is None or start.snapshot is None:
        return Beginning(missing="none was taken")
    try:
        changes = await in_thread(snapshots.changes, start.snapshot)
    except SnapshotUnavailable as error:
        return Beginning(missing=str(error))
    told = tuple(each for each in changes if is_lasting(each.path))
    spoiled = partial(snapshots.spoiled, start.snapshot, time.time())
    live = task.started_at, stack, spoiled, context.looked_at
    return Beginning(snapshots, start.snapshot, told, "", *live)


# --- Running the checks, and judging what they say.

_NO_TESTS: Final = 5
"""pytest's exit code for "no tests collected": there was nothing to fail."""
_NOT_FOUND: Final = 127
"""The shell's exit code for a program that is not there."""
_REPORT_LIMIT: Final = 16 * 1024 * 1024
"""Bytes of pytest's output and of its report that are read."""

NOT_COMPARED: Final = "tests were not compared with the task's beginning"
ENDED_EARLY: Final = "pytest ended before its summary"
_GONE: Final = "the task's beginning had such tests, and the workspace has none now"
_NOT_TOLD: Final = "can not be compared with the task's beginning"
_NO_COMPARISON: Final = (CommandRefused, SnapshotUnavailable, OSError)
Live = Callable[[str], LiveOutput | None]
_Look = Callable[[str], Awaitable[tuple[CommandResult, Report | None]]]


@dataclass
class Checking:
    """Runs the checks of one workspace. ``words`` are what the goal and the plan say.

    ``live`` makes, for each command, what is told of its output while it runs. ``gone`` are checks
    of the ``beginning`` alone; that is None where nothing is compared. ``files`` hold tests.
    """

    root: Path
    timeout: float
    sandbox: Sandbox
    live: Live = lambda _: None
    words: str = ""
    declared: frozenset[str] = frozenset()
    gone: Collection[str] = ()
    beginning: Beginning | None = None
    files: set[str] = field(default_factory=set)
    _alone: tuple[bool, tuple[str, ...]] | None = None

    async def check(self, command: str) -> Check:
        """Run one check (VE-06).

        A declared line that leaves the workspace is red, and not run. A recognised one whose
        program is missing says nothing (VE-02).
        """
        if command in self.declared:
            if place := await to_thread(place_outside, command, self.root):
                return _refused(command, f"refused: it leaves the workspace ({place})")
        elif missing := await to_thread(self._missing, command):
            return _refused(command, f"{missing} is not there", conclusive=False)
        elif command in self.gone and command != PYTEST:
            asked = asks_to_drop(self.words, command)
            return replace(_refused(command, _GONE, conclusive=False), still_red=not asked)
        if runs_pytest(command):
            return await self._pytest(command)
        result = await self._run(command)
        if result.passed or command in self.declared or result.exit_code is None:
            return _opaque(result)
        return await self._compared(command, result)

    def _missing(self, command: str) -> str:
        path = self._environment()["PATH"]
        for program in programs_of(command):
            place = str(self.root / program) if "/" in program else program
            if find_in(path, place) is None:
                return program
        return ""

    def _environment(self) -> dict[str, str]:
        return command_environment(os.environ, self.root, Path(sys.executable).parent)

    async def _run(
        self,
        line: str,
        *,
        shown: str = "",
        before: bool = False,
        mark: str = "",
        limit: int = OUTPUT_LIMIT,
    ) -> CommandResult:
        """Run a line in the workspace, or on how it was ``before`` the task."""
        stand_in = await self._at_beginning() if before else None
        live = self.live(shown or line)
        if live and mark:
            live.until = mark.encode()
        return await self.sandbox.run(
            line,
            workspace=self.root,
            timeout=self.timeout,
            limit=limit,
            live=live,
            stand_in=stand_in,
        )

    async def _pytest(self, command: str) -> Check:
        result, report = await self._reported(command)
        self.files.update(each.file for each in (report or {}).values())
        if result.exit_code in {0, _NO_TESTS}:
            return await self._green(command, result, report)
        if result.exit_code is None or command in self.declared:
            return _check(command, result)
        return await self._compared(command, result)

    async def _reported(
        self, command: str, *, before: bool = False
    ) -> tuple[CommandResult, Report | None]:
        """Run a line of pytest; return how it went without the report, and the report."""
        if self._alone is None:
            self._alone = await to_thread(declared_plugins, self.root, self._environment()["PATH"])
        alone, plugins = self._alone
        mark = f"daruma-report-{secrets.token_hex(8)}"
        remove = self.sandbox.level == "none"
        line = with_report(command, mark, alone=alone, plugins=plugins, remove=remove)
        result = await self._run(line, shown=command, before=before, mark=mark, limit=_REPORT_LIMIT)
        stderr, _, text = result.stderr.rpartition(f"\n{mark}\n")
        report = reports.read_report(text) if text.strip() else None
        report = report and await self._from_workspace(report, before=before)
        return replace(result, stdout=_cut(result.stdout), stderr=_cut(stderr)), report

    async def _from_workspace(self, report: Report, *, before: bool) -> Report:
        folder = await self._at_beginning() if before else self.root
        return await to_thread(reports.named_from, folder, report)

    async def _at_beginning(self) -> Path:
        if self.beginning is None:
            raise SnapshotUnavailable(NO_SNAPSHOT)
        return await in_thread(self.beginning.folder, self.sandbox.beside(self.root))

    async def _green(self, command: str, result: CommandResult, report: Report | None) -> Check:
        """Judge a run that ended well: that is not enough (VE-08)."""
        if report is None:
            return _check(command, result, note=ENDED_EARLY)
        if red := reports.of(report, "failed"):
            return _check(command, result, note=f"its exit code hides failures: {_ids(red)}")
        gone, note = await self._gone(command, report)
        if gone:
            return _check(command, result, note=gone)
        if reports.of(report, "passed"):
            return _check(command, result, passed=True, note=note)
        note = "all tests were skipped" if report else "there are no tests"
        return _check(command, result, passed=True, note=note, conclusive=False)

    async def _gone(self, command: str, report: Report) -> tuple[str, str]:
        """Say which tests of the task's beginning are lost or hidden, and why nobody can tell."""
        start = self.beginning
        if start is None or not (start.missing or start.changes):
            return "", ""
        if start.missing:
            return "", f"{NOT_COMPARED}: {NO_SNAPSHOT}: {start.missing}"
        try:
            lost, note = await self._lost(command, report)
            skipped = reports.of(report, "skipped")
            hidden = await self._hidden(command, report, skipped) if skipped else ()
        except CommandRefused as error:  # nothing that the task has done is the reason
            return "", f"{NOT_COMPARED}: {error}"
        except (SnapshotUnavailable, OSError) as error:
            return f"tests {_NOT_TOLD}: {error}", ""
        told = ((LOST, lost), ("newly skipped", hidden))
        return "; ".join(f"{what}: {_ids(each)}" for what, each in told if each), note

    async def _lost(self, command: str, report: Report) -> tuple[tuple[Case, ...], str]:
        alone, plugins = self._alone or (False, ())
        line = pytest_line(without_stopping(command), alone=alone, plugins=plugins)
        line = f"{line} --collect-only --verbosity=-1"
        exit_code, before = await self._once(line, partial(self._collected, command))
        self.files.update(each.file for each in before.values())
        lost = reports.lost_tests(report, before)
        if asks_to_move(self.words):
            lost = reports.without_moved(lost, report, before)
        stopped = not before and exit_code not in {0, _NO_TESTS}
        note = f"{NOT_COMPARED}: pytest finds none there (exit {exit_code})"
        left = {each.file for each in report.values()}
        meant = tuple(
            c for c in lost if asks_to_remove(self.words, c, with_file=c.file not in left)
        )
        kept = tuple(each for each in lost if each not in meant)
        asked = f"{LOST}, as the goal asks: {_ids(meant)}" if meant else ""
        return kept, note if stopped else asked

    async def _collected(self, command: str, line: str) -> tuple[CommandResult, Report]:
        listed = await self._run(line, shown=command, before=True, limit=_REPORT_LIMIT)
        tests = reports.collected_tests(listed.stdout)
        return listed, await self._from_workspace(tests, before=True)

    async def _once(self, line: str, look: _Look) -> tuple[int | None, Report]:
        """Look at the task's beginning; where tests were found, not again in this task (VE-09)."""
        start = self.beginning or Beginning()
        key = (self.root, start.snapshot, start.at, line)
        if (known := start.looked_at.get(key)) is not None:
            return 0, known
        result, report = await look(line)
        if report and result.exit_code is not None:
            start.looked_at[key] = report
        return result.exit_code, report or {}

    async def _hidden(
        self, command: str, report: Report, skipped: tuple[Case, ...]
    ) -> tuple[Case, ...]:
        look = partial(self._reported, before=True)
        _, before = await self._once(await self._line(command, skipped), look)
        hidden = reports.hidden_tests(report, before)
        return tuple(each for each in hidden if not asks_to_hide(self.words, each))

    async def _line(self, command: str, cases: tuple[Case, ...]) -> str:
        """Return the line that runs the files of some tests on how they were before the task.

        All are run where pytest would take another folder for its root with only some.
        """
        line = without_stopping(command)
        if command != PYTEST:
            return line
        folder = await self._at_beginning()
        files = sorted({each.file for each in cases})
        within = {place for each in files for place in [*Path(each).parents][:-1]}
        roots = (folder / place / name for place in within for name in _CONFIGURES)
        missing = any(not (folder / each).is_file() for each in files)
        other_root = missing or any(each.is_file() for each in roots)
        return line if other_root else f"{line} {shlex.join(files)}"

    async def _red(self, command: str, first: CommandResult) -> Check:
        """Tell what the task broke from what was red before it (VE-07).

        With what is still red, the check says nothing of the work (MO-10).
        """
        result, report = await self._reported(without_stopping(command))
        seconds = first.seconds + result.seconds
        if result.passed:
            note = "red at first, and green when it was run again"
            return _check(command, first, note=note, seconds=seconds)
        report = report or {}
        failed = reports.of(report, "failed")
        self.files.update(each.file for each in report.values())
        try:
            line = await self._line(command, failed)
            before = (await self._reported(line, before=True))[1] if failed else None
            if before is None:
                whole, _ = await self._reported(command, before=True)
                return self._as_before(command, first, whole)
            old = reports.red_before(failed, report, before)
            mended = await self._mended(command, report) if len(old) == len(failed) else None
        except _NO_COMPARISON as error:
            note = f"{_NOT_TOLD}: {error}"
            return _check(command, result, note=note, seconds=seconds)
        asked = tuple(
            each
            for each in old
            if asks_to_pass(self.words, each)
            or (mended is not None and is_to_be_fixed(self.words, each, mended))
        )
        told = {
            "broken by the task": tuple(each for each in failed if each not in old),
            "red as before the task, which asks for it": asked,
            "was red before the task": tuple(each for each in old if each not in asked),
        }
        judged = not asked and len(old) == len(failed)
        gone, note = await self._gone(command, report) if judged else ("", "")
        notes = [f"{what}: {_ids(each)}" for what, each in told.items() if each]
        return _check(
            command,
            result,
            passed=judged and not gone,
            note="; ".join(filter(None, [*notes, gone, note])),
            conclusive=False,
            seconds=seconds,
            still_red=any(each.key[0] for each in old),
        )

    async def _mended(self, command: str, report: Report) -> frozenset[Key] | None:
        """Return the functions of which a task that is to mend something has turned tests green.

        Others than these may be red for another reason. None where nothing is to be mended.
        """
        if not asks_to_fix(self.words):
            return None
        _, before = await self._reported(without_stopping(command), before=True)
        green = reports.of(report, "passed")
        return frozenset(each.function for each in reports.red_before(green, report, before or {}))

    async def _compared(self, command: str, result: CommandResult) -> Check:
        """Judge a red run by the same on the task's beginning (VE-07)."""
        if self.beginning is None:
            return _check(command, result)
        if why := self.beginning.missing:
            return _check(command, result, note=f"{NO_SNAPSHOT}: {why}")
        check = await self._red(command, result) if runs_pytest(command) else None
        try:
            if command == RUFF:
                return await self._ruff(result)
            check = check or self._as_before(command, result, await self._run(command, before=True))
            spoiled = await in_thread(self.beginning.spoiled) if check.passed else ()
            note = f"{_NOT_TOLD}: what is ignored has changed: {join_paths(spoiled)}"
            return replace(check, passed=False, note=note) if spoiled else check
        except _NO_COMPARISON as error:
            return _check(command, result, note=f"{_NOT_TOLD}: {error}")

    def _as_before(self, command: str, result: CommandResult, before: CommandResult) -> Check:
        """Judge a red run as a whole: of what was red in it nothing is known."""
        if before.passed or before.exit_code in {None, _NO_TESTS}:
            return _check(command, result, note="broken by the task")
        note = f"was red before the task (exit {before.exit_code})"
        asked = asks_to_pass(self.words)
        return _check(command, result, passed=not asked, note=note, conclusive=False)

    async def _ruff(self, result: CommandResult) -> Check:
        """Tell new findings from those that were there before the task."""
        line = f"{RUFF} --output-format=concise"
        now = await self._run(line, shown=RUFF, limit=_REPORT_LIMIT)
        before = await self._run(line, shown=RUFF, before=True, limit=_REPORT_LIMIT)
        found = reports.findings(now.stdout)
        new = found - reports.findings(before.stdout)
        if new or not found:
            return _check(RUFF, result, note=f"new findings: {new.total()}" if new else "")
        old = f"findings that were there before the task: {found.total()}"
        asked = asks_for_lint(self.words)
        return _check(RUFF, result, passed=not asked, note=old, conclusive=False)


_CONFIGURES: Final = (
    *("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml"),
    *("pyproject.toml", "tox.ini", "setup.cfg"),
)
"""What makes a folder the root of pytest."""


def _ids(cases: Iterable[Case]) -> str:
    return join_paths(tuple(each.id for each in cases))


def _cut(text: str) -> str:
    kept = BoundedOutput(OUTPUT_LIMIT)
    kept.add(text.encode(errors="replace"))
    return kept.text()


def _check(
    command: str,
    result: CommandResult,
    *,
    passed: bool = False,
    note: str = "",
    conclusive: bool = True,
    seconds: float = 0.0,
    still_red: bool = False,
) -> Check:
    return Check(
        command=command,
        passed=passed,
        exit_code=result.exit_code,
        note="; ".join(filter(None, (kill_reason(result) or note, *result.notes))),
        conclusive=conclusive,
        output=recorded_output(result.stdout, result.stderr, sandbox_hint(result)),
        timed_out=result.timed_out,
        seconds=seconds or result.seconds,
        sandbox=result.sandbox,
        not_covered=result.not_covered,
        stopped_by=result.stopped_by,
        still_red=still_red,
    )


def _refused(command: str, note: str, *, conclusive: bool = True) -> Check:
    passed = not conclusive
    return Check(command=command, passed=passed, exit_code=None, note=note, conclusive=conclusive)


def _opaque(result: CommandResult) -> Check:
    """Judge a line of which nothing is known but its exit code."""
    pytest_found_none = result.exit_code == _NO_TESTS and result.command.startswith("pytest")
    said = result.stdout + result.stderr
    no_tests = pytest_found_none or (result.passed and ran_nothing(result.command, said))
    hidden = find_hidden_exit(result.command) if result.passed else ""
    note = f"it can not fail: `{hidden}`" if hidden else ""
    if result.exit_code == _NOT_FOUND:
        note = "the program is not there"
    return _check(
        result.command,
        result,
        passed=result.passed or no_tests,
        note="there are no tests" if no_tests else note,
        conclusive=not (no_tests or hidden),
    )


async def run_checks(
    commands: Sequence[str],
    workspace: Path,
    timeout: float,
    sandbox: Sandbox,
    live: Live = lambda _: None,
) -> list[Check]:
    """Run recognised checks one after another, all of them, and compare them with nothing."""
    checking = Checking(workspace, timeout, sandbox, live)
    return [await checking.check(each) for each in commands]


async def run_all_checks(state: State, context: Context) -> Verification:
    """Run what is recognised in the workspace, and what settings and the current phase declare.

    Raises ToolError, OSError, SandboxUnavailable and SnapshotUnavailable.
    """
    task, stack, began = state.task, ExitStack(), time.monotonic()
    if task is None or task.workspace is None:
        return _unchecked(context, "nothing to verify: the task has no workspace")
    own_messages = (m for m in state.messages if str(m.id).startswith(f"{task.id}:"))
    looked = not task.only_if_changed or any(isinstance(m, ToolMessage) for m in own_messages)
    beginning = await beginning_of(state, context, stack) if looked else Beginning()
    changed = (*beginning.changes, *await in_thread(beginning.spoiled))
    if task.only_if_changed and not (beginning.missing or changed):  # MO-04
        return _unchecked(context, "nothing to verify: the task changed no file of its workspace")
    at = await context.surroundings(task.workspace)
    root = at.needs_workspace().root
    own, files = declared_commands(state, context), await to_thread(telling_files, root)
    known = (*commands_for(files), *own)
    commands = tuple(dict.fromkeys((*known, *await in_thread(beginning.commands, files))))
    if refused := await commands_refusal("verification", commands, state, at):
        return _unchecked(context, refused)
    if not commands:
        return _unchecked(context, "nothing to verify: no checks are known for this workspace")
    context.emit(VerificationStarted(commands=commands))
    sandbox = await context.open_sandbox()
    async with with_snapshots(context.snapshots(task.workspace), "verification"):
        try:
            live = partial(live_output, context.emit, "verification")
            words, timeout = _words(state, own), context.settings.verification.timeout
            sets = frozenset(own), frozenset(commands).difference(known)
            checking = Checking(root, timeout, sandbox, live, words, *sets, beginning)
            checks = _weighed([await checking.check(each) for each in commands], own)
            tests = await in_thread(beginning.changed_tests, checking.files)
        finally:
            await in_thread(stack.close)  # it removes files
    for check in checks:
        context.emit(command_run("verification", check))
    return Verification(checks=tuple(checks), changed_tests=tests, seconds=time.monotonic() - began)


def _unchecked(context: Context, why: str) -> Verification:
    context.emit(VerificationStarted(commands=()))
    return Verification(note=why)


def _weighed(checks: list[Check], declared: Collection[str]) -> list[Check]:
    """Let tests that a declared line has run go before what was only recognised (MO-10)."""
    ran = (each for each in checks if each.command in declared and runs_tests(each.command))
    if not any(each.outcome == "passed" for each in ran):
        return checks
    return [each if each.command in declared else replace(each, still_red=False) for each in checks]


def verification_completed(found: Verification) -> VerificationCompleted:
    """Build the event of a verification that has ended (VE-08)."""
    return VerificationCompleted(
        passed=None if found.outcome == "none" else found.passed,
        summary=found.summary,
        outcome=found.outcome,
        changed_tests=found.changed_tests,
    )


def changed_tests_note(state: State) -> str:
    """Name the test files that the task has changed, for whoever decides on it (VE-08)."""
    found = (
        step.verification
        for step in reversed(state.steps)
        if step.task_id == state.task_id and step.verification
    )
    last = next(found, state.verification)
    return f"changed tests: {join_paths(last.changed_tests)}" if last and last.changed_tests else ""


def with_changed_tests(text: str, state: State) -> str:
    """Return what is told with a question, and the test files that the task has changed."""
    return "\n".join(filter(None, (text, changed_tests_note(state))))


def declared_commands(state: State, context: Context) -> tuple[str, ...]:
    """Return the commands that the settings and the current phase declare."""
    phase = state.plan.phase(state.plan.current) if state.plan else None
    own = (phase.validation_command,) if phase and phase.validation_command else ()
    return (*context.settings.verification.commands, *own)


def _words(state: State, commands: tuple[str, ...]) -> str:
    """Return what the goal, the plan and the declared commands say, a line each."""
    phases = state.plan.phases if state.plan else ()
    plan = (text for phase in phases for text in (phase.title, phase.instructions))
    return "\n".join((state.task.goal if state.task else "", *plan, *commands))


# --- The tool that runs the checks for the model to look at.


class RunTestsArgs(ToolArgs):
    """Run the workspace's own checks (its tests and linters) and show what fails.

    This is for looking; the final verification runs in any case and is not replaced by it.
    """


async def _run_tests(_: RunTestsArgs, at: Surroundings) -> str:
    root = at.needs_workspace().root
    commands = await recognised_commands(root)
    live = partial(live_output, at.emit, "tool", call_id=at.call_id)
    sandbox = await at.sandbox() if commands else None
    checks = await run_checks(commands, root, at.timeout, sandbox, live) if sandbox else []
    for check in checks:
        at.emit(command_run("tool", check))
    verification = Verification(checks=tuple(checks))
    return f"{verification.summary}\n\n{excerpt(verification)}".strip()


CHECK_TOOLS: Final[tuple[Tool, ...]] = (
    shipped_tool("run_tests", RunTestsArgs, "workspace", _run_tests),
)
