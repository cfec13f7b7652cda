"""The tools that work in the workspace: the editor of text files, shell commands, the search."""

import json
import re
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import Final, Literal, TypeVar

from langchain_core.messages import AnyMessage, ToolMessage
from pydantic import BaseModel, ConfigDict, Field

import daruma
from daruma.state.calls import ToolTask
from daruma.state.events import Event, unheard
from daruma.tools.calls import Surroundings, Tool, shipped_tool
from daruma.tools.commands import CommandResult, command_run, kill_reason, live_output, run_in_group
from daruma.tools.errors import (
    CommandRefused,
    EditRefused,
    FileChanged,
    FileMissing,
    NotReadOnly,
    SandboxViolation,
    SearchRefused,
    ToolError,
)
from daruma.tools.files import (
    CACHES,
    Answer,
    DirectoryEntry,
    EditedText,
    EditHistory,
    FilesBeneath,
    Request,
    TextFile,
    Workspace,
    digest,
    insert_after,
    lines_of,
    list_entries,
    printable_path,
    replace_once,
    unix_newlines,
)
from daruma.tools.sandbox import Sandbox, read_only_refusal, sandbox_hint
from daruma.tools.threads import in_thread

# --- What the model gives the editor, described for the model.

Command = Literal["view", "create", "str_replace", "insert_at_line", "undo"]


class EditorArgs(BaseModel):
    """View, create and edit text files in the workspace.

    `view` shows a file with line numbers, or a directory two levels deep. `create` makes a new
    file and never overwrites one. `str_replace` replaces the only occurrence of old_str.
    `insert_at_line` puts lines after a line. `undo` takes back the last edit of the file. Line
    ends and encoding of a file stay as they are. A file that someone else changed since you viewed
    it must be viewed again before it can be edited.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: Command = Field(description="What to do.")
    path: str = Field(
        description="File or directory, relative to the workspace's root, whole: 'src/app/main.py'."
    )
    file_text: str | None = Field(
        default=None, description="For create: the whole content of the new file."
    )
    old_str: str | None = Field(
        default=None,
        description=(
            "For str_replace: the text to replace, copied exactly, white space included, without "
            "line numbers. It must occur exactly once: include lines around it to make it so."
        ),
    )
    new_str: str | None = Field(
        default=None,
        description="For str_replace: what to put in its place; empty to delete it.",
    )
    insert_line: int | None = Field(
        default=None,
        description="For insert_at_line: the line to insert after; 0 inserts before the first.",
    )
    insert_text: str | None = Field(
        default=None, description="For insert_at_line: the line or lines to insert."
    )
    view_range: list[int] | None = Field(
        default=None,
        min_length=2,
        max_length=2,
        description="For view of a file: first and last line, from 1; -1 as last is the end.",
    )


# --- How files and directories are shown to the model: numbered, bounded, and honest about cuts.

MOST_CHARACTERS: Final = 50_000
LONGEST_LINE: Final = 2_000
MOST_ENTRIES: Final = 500
AROUND: Final = 3
LONGEST_SNIPPET: Final = 40
MARKS: Final = {"directory": "/", "link": "@", "special": " (special)", "file": ""}


def number_lines(text: str, view_range: Sequence[int] | None) -> str:
    """The lines of a text as `cat -n` shows them, from the first to the last of the range.

    A range ends at the last line with -1 or any larger number. EditRefused if it holds no line.
    """
    lines = lines_of(unix_newlines(text))
    first, last = view_range or (1, -1)
    last = len(lines) if last == -1 else min(last, len(lines))
    if view_range and not 1 <= first <= last:
        known = f"the file has lines 1 to {len(lines)}; -1 is the last"
        raise EditRefused(f"view_range {list(view_range)}: {known}")
    shown, used = [], 0
    for number in range(first, last + 1):
        line = _numbered_line(number, lines[number - 1])
        used += len(line) + 1
        if used > MOST_CHARACTERS:
            shown.append(f"[cut: {len(lines)} lines in all; go on with view_range [{number}, -1]]")
            break
        shown.append(line)
    return "\n".join(shown) or "(an empty file)"


def snippet(edited: EditedText) -> str:
    """The numbered lines that an edit touched, with some around them."""
    lines = lines_of(unix_newlines(edited.text))
    first = max(1, edited.first - AROUND)
    last = min(len(lines), edited.last + AROUND)
    cut = min(last, first + LONGEST_SNIPPET - 1)
    shown = [_numbered_line(number, lines[number - 1]) for number in range(first, cut + 1)]
    rest = [f"[{last - cut} more lines of the edit]"] if cut < last else []
    return "\n".join([*shown, *rest]) or "(an empty file)"


def tree(files: FilesBeneath, path: str) -> str:
    """A directory and the directories in it; caches and `.git` are not looked into."""
    shown: list[DirectoryEntry] = []
    for entry in list_entries(files, path):
        shown.append(entry)
        if entry.kind == "directory" and entry.path.rpartition("/")[2] not in CACHES:
            shown += list_entries(files, entry.path)
        if len(shown) > MOST_ENTRIES:
            break
    lines = [entry.path + MARKS[entry.kind] for entry in shown[:MOST_ENTRIES]]
    cut = ["[cut: there are more entries; view one of the directories]"]
    return "\n".join(lines + cut * (len(shown) > MOST_ENTRIES)) or "(an empty directory)"


def _numbered_line(number: int, line: str) -> str:
    if len(line) > LONGEST_LINE:
        line = f"{line[:LONGEST_LINE]} [cut: {len(line) - LONGEST_LINE} more characters]"
    return f"{number:6}\t{line}"


# --- The tool that views and edits text files of the workspace.

T = TypeVar("T")


async def str_replace_editor(args: EditorArgs, workspace: Workspace, history: EditHistory) -> str:
    """Carry out one command and tell the model the outcome (ED-01). Raises ToolError."""
    return await in_thread(COMMANDS[args.command], args, workspace.files, history)


def _view(args: EditorArgs, files: FilesBeneath, history: EditHistory) -> str:
    if files.is_directory(args.path):
        return tree(files, args.path)
    with history.of(files.root, files.locate(args.path)) as past:
        data = files.read(args.path)
        file = TextFile.of(data, args.path)
        shown_lines = number_lines(file.text, args.view_range)
        past.saw(data)
    kept = f"\n[written in {file.encoding}, which edits keep]" if file.is_legacy else ""
    return shown_lines + kept


def _create(args: EditorArgs, files: FilesBeneath, history: EditHistory) -> str:
    data = TextFile("").with_text(_given(args.file_text, "file_text", args))
    files.create(args.path, data)
    with history.of(files.root, files.locate(args.path)) as past, past.edit(None, data):
        return f"Created {printable_path(args.path)}, {len(data)} bytes."


def _str_replace(args: EditorArgs, files: FilesBeneath, history: EditHistory) -> str:
    old, new = _given(args.old_str, "old_str", args), _given(args.new_str, "new_str", args)
    return _edit(args.path, files, history, lambda text: replace_once(text, old, new))


def _insert(args: EditorArgs, files: FilesBeneath, history: EditHistory) -> str:
    line = _given(args.insert_line, "insert_line", args)
    addition = _given(args.insert_text, "insert_text", args)
    return _edit(args.path, files, history, lambda text: insert_after(text, line, addition))


def _edit(
    path: str, files: FilesBeneath, history: EditHistory, change: Callable[[str], EditedText]
) -> str:
    with history.of(files.root, files.locate(path)) as past:
        before = files.read(path)
        past.refuse_if_changed(before)
        file = TextFile.of(before, path)
        edited = change(file.text)
        after = file.with_text(edited.text)
        with past.edit(before, after):
            files.replace(path, after)
    return f"Edited {printable_path(path)}:\n{snippet(edited)}"


def _undo(args: EditorArgs, files: FilesBeneath, history: EditHistory) -> str:
    path, shown = args.path, printable_path(args.path)
    with history.of(files.root, files.locate(path)) as past:
        edit, now = past.last(), digest(files.read(path))
        if now == edit.before:
            past.drop_last()
            raise EditRefused(f"{shown}: its last edit is undone already; it was not changed")
        if now != edit.after:
            raise FileChanged(f"{shown}: no longer what the last edit left: it was not undone")
        if edit.before is None:
            files.delete(path)
        else:
            files.replace(path, past.content_before(edit))
        left = past.drop_last()
    did = "deleted again, as it was new" if edit.before is None else "as before its last edit"
    return f"{shown} is {did}; {left} earlier edits can be undone."


def _given(value: T | None, name: str, args: EditorArgs) -> T:
    if value is None:
        raise EditRefused(f"{args.command} needs {name}")
    return value


COMMANDS: Final[dict[Command, Callable[[EditorArgs, FilesBeneath, EditHistory], str]]] = {
    "view": _view,
    "create": _create,
    "str_replace": _str_replace,
    "insert_at_line": _insert,
    "undo": _undo,
}


async def _run_editor(args: EditorArgs, at: Surroundings) -> str:
    return await str_replace_editor(args, at.needs_workspace(), at.needs_history())


EDITOR_TOOLS: Final[tuple[Tool, ...]] = (
    shipped_tool(
        "str_replace_editor", EditorArgs, "workspace", _run_editor, reads_with={"command": "view"}
    ),
)


# --- Whole paths, shown before, of which a call gives only the tail (CX-06). Pure.

MOST_PATHS: Final = 10
"""Paths that are carried with a call; which of them are there is looked up if it fails."""

MOST_TEXT: Final = 1_000_000
"""Characters of results that are looked through, the newest first: some milliseconds."""

MOST_SHOWN: Final = 2_000
"""Times that paths are shown in results which are looked at, the newest first: a millisecond or
two. The one path that all the work is about is shown in most of a long thread's results."""

LONGEST_PATH: Final = 300
"""Characters of a path."""

_TOKEN: Final = re.compile(r"[^\s'\"`()\[\]{}<>|,;=:]*\Z")


def candidate_paths(call: ToolTask, messages: Sequence[AnyMessage]) -> tuple[str, ...]:
    """Return the paths in earlier results that the editor may be meant to be called with (CX-06).

    They end with the path that is given, by whole components: after a leading ``./`` or
    ``workspace/`` is taken off, and with backslashes for slashes. The one shown last is the first.
    """
    given = call.args.get("path")
    if call.name != EDITOR_TOOLS[0].name or not isinstance(given, str) or len(given) > LONGEST_PATH:
        return ()
    plain = "/".join(part for part in given.replace("\\", "/").split("/") if part not in ("", "."))
    if not plain or ".." in plain.split("/"):
        return ()
    tails = list(dict.fromkeys((plain, plain.removeprefix("workspace/"))))
    found: dict[str, None] = {}
    for path in islice(_shown_paths(tails, messages), MOST_SHOWN):
        found[path] = None
        if len(found) > MOST_PATHS:
            break
    return tuple(path for path in found if path != given)[:MOST_PATHS]


def _shown_paths(tails: Sequence[str], messages: Sequence[AnyMessage]) -> Iterator[str]:
    for text in _result_texts(messages):
        for tail in tails:
            if tail in text:
                yield from _ending(tail, text)


def _result_texts(messages: Sequence[AnyMessage]) -> Iterator[str]:
    left = MOST_TEXT
    for message in reversed(messages):
        if isinstance(message, ToolMessage) and message.status == "success":
            whole = message.content if isinstance(message.content, str) else str(message.text)
            text = whole[-left:]
            left -= len(text)
            yield text
        if left <= 0:
            return


def _ending(tail: str, text: str) -> Iterable[str]:
    """Yield the paths in a text that end with a tail: as a word, and from the line's beginning.

    The latter is how paths with spaces are shown; a diff has ``a/`` or ``b/`` before them.
    """
    for match in re.finditer(rf"{re.escape(tail)}(?![\w-])(?!\.\w)", text):
        line = text[max(text.rfind("\n", 0, match.start()) + 1, match.start() - LONGEST_PATH) :]
        before = line[: len(line) - len(text) + match.start()].lstrip()
        word = _TOKEN.search(before)
        for head in (word[0] if word else "", before):
            if not head or head.endswith("/"):
                yield head + tail
                yield head.removeprefix("a/").removeprefix("b/") + tail


# --- Saying which path was meant, where a call gave only the tail of one shown before (CX-06).

MOST_NAMED: Final = 5


async def advise_paths(error: ToolError, paths: Sequence[str], workspace: str | None) -> str:
    """Return what is said of an error; for a missing file, which of ``paths`` are there."""
    meant = isinstance(error, FileMissing) and workspace and paths
    there = await in_thread(_there, paths, workspace) if meant and workspace else []
    if not there:
        return str(error)
    whole = "it was shown as" if len(there) == 1 else "shown before were"
    named = ", ".join(printable_path(path) for path in there[:MOST_NAMED])
    one = "it" if len(there) == 1 else "one of them"
    return f"{str(error).partition(': list ')[0]}; {whole} {named}: use {one} whole"


def _there(paths: Sequence[str], workspace: str) -> list[str]:
    found: dict[str, None] = {}
    for path in paths:
        with suppress(ToolError, OSError):
            found[FilesBeneath(Path(workspace)).locate(path)] = None
    return list(found)


# --- The tool that runs a shell command in the workspace and tells the model how it went.

LONGEST: Final = 600.0
"""Seconds."""


class RunCommandArgs(BaseModel):
    """Run a shell command in the workspace: tests, linters, builds, git.

    It gets no input and must end by itself: everything it started is killed when it ends or when
    its time is over. Long output is shown with its middle left out.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: str = Field(min_length=1, description="Text for /bin/sh, for example 'pytest -x -q'.")
    timeout: float | None = Field(
        default=None, gt=0, le=LONGEST, description="Seconds after which it is ended."
    )
    cwd: str | None = Field(
        default=None, description="Directory to run in, relative to the workspace's root."
    )
    write: bool = Field(
        default=False,
        description="Leave it out at first. True where a command that ran read-only has to write.",
    )


READ_ONLY: Final = (
    "ran read-only, without network, secrets and files of others; if that hid anything, call it "
    "again with write: true"
)


async def run_command(
    args: RunCommandArgs,
    workspace: Workspace,
    timeout_default: float,
    sandbox: Sandbox,
    emit: Callable[[Event], None] = unheard,
    call_id: str = "",
) -> str:
    """Run the command, for at most `timeout_default` seconds if it names no time. Raises ToolError.

    A command that fails is an outcome to tell, not an error; one that the sandbox ended is an error
    with the code sandbox_violation (SA-02). Raises NotReadOnly for one whose result can not
    stand, as the sandbox is read-only.
    """
    cwd = await workspace.directory(args.cwd or ".")
    seconds = args.timeout if args.timeout is not None else timeout_default
    root, text = workspace.root, args.command
    live = live_output(emit, "tool", text, call_id)
    try:
        result = await sandbox.run(text, workspace=root, cwd=cwd, timeout=seconds, live=live)
    except CommandRefused as error:
        if sandbox.read_only:
            raise NotReadOnly(str(error)) from error
        raise
    if sandbox.read_only:
        result = replace(result, notes=(*result.notes, READ_ONLY))
    emit(command_run("tool", result))
    if sandbox.read_only and (refusal := read_only_refusal(result)):
        raise NotReadOnly(refusal)
    if why := kill_reason(result):
        raise SandboxViolation(f"sandbox_violation: {why}\n{_render_result(result)}")
    return _render_result(result)


def _render_result(result: CommandResult) -> str:
    parts = [_outcome(result)]
    for name, text in (("stdout", result.stdout), ("stderr", result.stderr)):
        if text:
            parts.append(f"{name}:\n{text.rstrip()}")
    if not result.stdout and not result.stderr:
        parts.append("(no output)")
    parts += [f"({note})" for note in result.notes]
    if advice := sandbox_hint(result):
        parts.append(advice)
    return "\n".join(parts)


def _outcome(result: CommandResult) -> str:
    if result.timed_out:
        return f"timed out after {result.seconds:.1f} s and was killed, with all it started"
    if result.exit_code is None:
        return "stopped"
    if result.exit_code < 0:
        number = -result.exit_code
        return f"killed by signal {number} ({_signal_name(number) or 'no name'})"
    signalled = _signal_name(result.exit_code - 128) if result.exit_code > 128 else ""
    return f"exit code: {result.exit_code}" + (f" (128 + {signalled})" if signalled else "")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""


# --- The tool that finds text in files, or files by name, within a bounded time and answer.

MOST_FOUND: Final = 100
SECONDS: Final = 20.0
LONGEST_ANSWER: Final = 4 * 1024 * 1024
START: Final = (
    "import sys; sys.path.append(sys.argv[1]); from daruma.tools.files._beneath import main; main()"
)


class SearchArgs(BaseModel):
    """Search the workspace: text in files (pattern), or files by name (glob without a pattern).

    Shows `path:line: text` with whole paths, which can be used as they are. At most 100 results.
    Caches, `.git`, binary files and files over 4 MiB are left out.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    pattern: str | None = Field(
        default=None,
        max_length=10_000,
        description="Python regular expression, line by line; (?i) at its start ignores case.",
    )
    literal: bool = Field(default=False, description="Take the pattern as plain text.")
    glob: str | None = Field(
        default=None,
        max_length=1_000,
        description="Only files that fit: '*.py' at any depth, 'src/**/test_*.py', '*.{ts,tsx}'.",
    )
    path: str = Field(default=".", description="Directory or file to search in.")


async def search(args: SearchArgs, workspace: Workspace, *, seconds: float = SECONDS) -> str:
    """Search and tell the model what was found. Raises ToolError; takes at most `seconds`."""
    if not args.pattern and not args.glob:
        raise SearchRefused("give a pattern to search for, or a glob to find files by name")
    pattern = re.escape(args.pattern) if args.literal and args.pattern else args.pattern
    request = Request(str(workspace.root), args.path, pattern or None, args.glob, MOST_FOUND)
    # Isolated and without site-packages: nothing in the workspace can be imported by mistake.
    home = str(Path(daruma.__file__).parents[1])
    argv = [sys.executable, "-I", "-S", "-c", START, home, json.dumps(asdict(request))]
    result = await run_in_group(argv, cwd=workspace.root, timeout=seconds, limit=LONGEST_ANSWER)
    answer = _answer(result, seconds)
    lines = answer.lines or ["nothing found"]
    if answer.cut:
        lines.append(f"[cut after {MOST_FOUND} results: narrow path, glob or pattern]")
    if answer.skipped:
        lines.append(f"[{answer.skipped} binary, oversized or unreadable files left out]")
    return "\n".join(lines)


def _answer(result: CommandResult, seconds: float) -> Answer:
    if result.timed_out:
        took = f"the search took over {seconds:g} s"
        raise SearchRefused(f"{took}: narrow path or glob, or simplify the pattern")
    if not result.passed:
        reason = (result.stderr.strip() or f"exit code {result.exit_code}").splitlines()[-1]
        raise SearchRefused(f"the search broke off: {reason}")
    answer = Answer(**json.loads(result.stdout))
    if answer.error is not None:
        raise SearchRefused(answer.error)
    return answer


# --- Both as they are given to the registry.


async def _run_command(args: RunCommandArgs, at: Surroundings) -> str:
    workspace = at.needs_workspace()
    sandbox = replace(await at.sandbox(), read_only=at.read_only)
    return await run_command(args, workspace, at.timeout, sandbox, at.emit, at.call_id)


COMMAND_TOOLS: Final[tuple[Tool, ...]] = (
    shipped_tool("search", SearchArgs, "none", lambda args, at: search(args, at.needs_workspace())),
    shipped_tool("run_command", RunCommandArgs, "workspace", _run_command),
)
