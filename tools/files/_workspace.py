"""The directory an agent works in: its files off the event loop, its lock, its edits and their
history.
"""

import fcntl
import hashlib
import os
import re
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ValidationError

from daruma.state.data_dir import data_dir
from daruma.state.errors import WorkspaceBusy
from daruma.tools.errors import EditRefused, FileChanged, FileUnavailable
from daruma.tools.files._beneath import DIRECTORY, FilesBeneath, closing_fd, put_entry
from daruma.tools.files._paths import printable_path
from daruma.tools.threads import entered_in_thread, in_thread

# --- Finding the one place that an edit means, and saying what is wrong when it is not one.

MOST_COUNTED: Final = 100
MOST_LISTED: Final = 10


def only_match(view: str, old: str) -> int:
    """Where `old` begins in `view`; EditRefused, saying where to look, unless exactly once."""
    found: list[int] = []
    at = view.find(old)
    while at >= 0 and len(found) < MOST_COUNTED:
        found.append(at)
        at = view.find(old, at + 1)
    if not found:
        raise EditRefused(f"old_str does not occur in the file{_near_miss(view, old)}")
    if len(found) > 1:
        lines = ", ".join(str(view.count("\n", 0, at) + 1) for at in found[:MOST_LISTED])
        count = f"{len(found)} times" if len(found) < MOST_COUNTED else "very many times"
        more = ", …" if len(found) > MOST_LISTED else ""
        raise EditRefused(f"old_str occurs {count}, on lines {lines}{more}: add lines around it")
    return found[0]


def _near_miss(view: str, old: str) -> str:
    wanted = "".join(old.split())
    at = "".join(view.split()).find(wanted) if wanted else -1
    if at < 0:
        return ": view it and copy the text exactly"
    for word in re.finditer(r"\S+", view):
        if at < len(word[0]):
            at += word.start()
            break
        at -= len(word[0])
    line = view.count("\n", 0, at) + 1
    return f", but text that differs only in white space is on line {line}: copy it exactly"


# --- Edits of text as pure functions: everything outside the edit stays as it is, line ends too.
#
# The model writes `\n`; a file may write `\r\n`, or both. Positions are found in the text with
# plain line ends and carried over to the text as it is.


@dataclass(frozen=True, slots=True)
class EditedText:
    """A text after an edit, and the lines (from 1, inclusive) that the edit touched."""

    text: str
    first: int
    last: int


def unix_newlines(text: str) -> str:
    """The text with `\\n` for every `\\r\\n`."""
    return text.replace("\r\n", "\n")


def replace_once(text: str, old: str, new: str) -> EditedText:
    """Put `new` in place of the only occurrence of `old`.

    EditRefused if there is none, or more than one (overlapping ones count), or nothing to change.
    """
    old, new, view = unix_newlines(old), unix_newlines(new), unix_newlines(text)
    if not old:
        raise EditRefused("old_str is empty: give the text to replace, or use insert_at_line")
    if old == new:
        raise EditRefused("old_str and new_str are the same: there is nothing to change")
    return _spliced(text, only_match(view, old), old, new)


def insert_after(text: str, line: int, addition: str) -> EditedText:
    """Put whole lines after `line` (0: before the first); a missing final line end stays missing.

    EditRefused if there is no such line.
    """
    view, block = unix_newlines(text), unix_newlines(addition).removesuffix("\n")
    count = len(lines_of(view))
    if not 0 <= line <= count:
        raise EditRefused(f"insert_line is {line}: it must be from 0 to {count}, the last line")
    at, last = _start_of_line(view, line), line + 1 + block.count("\n")
    unfinished = at == len(view) and not view.endswith("\n") and view != ""
    if unfinished:  # an empty last line can not be told without a line end of its own
        block = f"\n{block}" if block.rpartition("\n")[2] else f"\n{block}\n"
    edited = _spliced(text, at, "", block if unfinished else f"{block}\n")
    return EditedText(edited.text, line + 1, last)


def lines_of(text: str) -> list[str]:
    """The lines of a text with plain line ends, without these; an empty text has none."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _start_of_line(view: str, line: int) -> int:
    at = 0
    for _ in range(line):
        at = view.find("\n", at) + 1
        if at == 0:
            return len(view)
    return at


def _spliced(text: str, start: int, old: str, new: str) -> EditedText:
    # What old and new share at their ends is not part of the edit: its line ends stay as they are.
    head = _shared(old, new)
    tail = _shared(old[head:][::-1], new[head:][::-1])
    inner = new[head : len(new) - tail]
    crlf = [match.start() - n for n, match in enumerate(re.finditer("\r\n", text))]
    first, after = (p + bisect_left(crlf, p) for p in (start + head, start + len(old) - tail))
    ends = (text.find("\n", first, after), text.rfind("\n", 0, first), text.find("\n", after))
    at = next((each for each in ends if each >= 0), 0)
    line_end = "\r\n" if text[at - 1 : at] == "\r" else "\n"
    result = text[:first] + inner.replace("\n", line_end) + text[after:]
    top = text.count("\n", 0, first) + 1
    return EditedText(result, top, top + inner.count("\n"))


def _shared(one: str, other: str) -> int:
    differ = (index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(differ, min(len(one), len(other)))


# --- The recent edits of one file, with what is needed to take them back.

MOST_EDITS: Final = 10
MOST_BYTES: Final = 16 * 1024 * 1024
"""Of former contents, per file."""

RECORD: Final = "record.json"


class Edit(BaseModel):
    """One edit; `before` is None where it made the file. Hashes are SHA-256, size in bytes."""

    number: int
    before: str | None
    after: str
    size: int


class Record(BaseModel):
    """What the history knows of one file; `seen` is the hash of what was last seen of it.

    `forgotten` says that there were edits before those that are kept.
    """

    location: str
    seen: str | None = None
    edits: list[Edit] = []
    forgotten: bool = False


def digest(data: bytes) -> str:
    """The SHA-256 of `data` in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


class FileHistory:
    """One file's history, for as long as `EditHistory.of` holds it. All methods block."""

    def __init__(self, folder: Path, location: str) -> None:
        self._folder = folder
        self._location = location
        try:
            self._record = Record.model_validate_json((folder / RECORD).read_bytes())
        except (FileNotFoundError, ValidationError):  # damaged: as if nothing had been seen
            self._record = Record(location=location)

    def saw(self, data: bytes) -> None:
        """Note that this content was seen."""
        if self._record.seen != digest(data):
            self._record.seen = digest(data)
            self._save()

    def refuse_if_changed(self, data: bytes) -> None:
        """Raise FileChanged if another content was seen last; a file never seen is no matter.

        Nor is one that is as it was before its last edit: that was taken back by an undo.
        """
        edits = self._record.edits
        if edits and (edits[-1].before, edits[-1].after) == (digest(data), self._record.seen):
            self.drop_last()
        if self._record.seen not in {None, digest(data)}:
            shown = printable_path(self._location)
            raise FileChanged(f"{shown}: changed since it was viewed: view it again")

    @contextmanager
    def edit(self, before: bytes | None, after: bytes) -> Iterator[None]:
        """Note an edit that the body carries out; forgotten again if the body raises.

        It is on disk before the body runs: an edit that landed can be undone even after a crash.
        """
        former = self._record.model_copy(deep=True)
        self._append(before, after)
        try:
            yield
        except BaseException:
            self._record = former
            self._save()
            raise

    def last(self) -> Edit:
        """The last edit; EditRefused if none is kept."""
        if not self._record.edits:
            why = "there is no edit to undo"
            if self._record.forgotten:
                why = (
                    f"no earlier edit can be undone: of a file the last {MOST_EDITS} are kept, "
                    f"and at most {MOST_BYTES // 2**20} MiB of former contents"
                )
            raise EditRefused(f"{printable_path(self._location)}: {why}")
        return self._record.edits[-1]

    def content_before(self, edit: Edit) -> bytes:
        """The content that `edit` replaced; EditRefused if what was kept of it is damaged."""
        try:
            data = self._content(edit).read_bytes()
        except FileNotFoundError:
            data = b""
        if digest(data) != edit.before:
            shown = printable_path(self._location)
            raise EditRefused(f"{shown}: the kept former content is damaged")
        return data

    def drop_last(self) -> int:
        """Forget the last edit, whose former content is there again; says how many are left."""
        self._record.seen = self._record.edits.pop().before
        self._save()
        return len(self._record.edits)

    def _append(self, before: bytes | None, after: bytes) -> None:
        edits = self._record.edits
        number = edits[-1].number + 1 if edits else 1
        hashed = None if before is None else digest(before)
        self._record.forgotten &= before is not None
        edit = Edit(number=number, before=hashed, after=digest(after), size=len(before or b""))
        if before is not None:
            self._put(self._content(edit).name, before)
        edits.append(edit)
        while len(edits) > MOST_EDITS or sum(each.size for each in edits) > MOST_BYTES:
            edits.pop(0)
            self._record.forgotten = True
        self._record.seen = edit.after
        self._save()

    def _content(self, edit: Edit) -> Path:
        return self._folder / f"{edit.number}.before"

    def _save(self) -> None:
        self._put(RECORD, self._record.model_dump_json().encode())
        kept = {self._content(edit).name for edit in self._record.edits}
        for content in self._folder.glob("*.before"):
            if content.name not in kept:
                content.unlink()

    def _put(self, name: str, data: bytes) -> None:
        with closing_fd(os.open(self._folder, DIRECTORY | os.O_CLOEXEC)) as directory:
            put_entry(directory, name, data, 0o600)


# --- What was seen and edited of each file, kept outside the workspace for undo and caution.

PRIVATE: Final = 0o700


class EditHistory:
    """A directory with one folder per edited or viewed file; survives the process.

    `directory` must lie outside the workspaces it serves (ValueError). It is made when first
    used. Folders have mode 0700 and files 0600: they hold former contents.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @contextmanager
    def of(self, root: Path, location: str) -> Iterator[FileHistory]:
        """The history of one file beneath `root`, held against other threads and processes.

        `location` is relative to `root`, links resolved. Blocks; hold it for one edit only.
        """
        directory = self.directory.absolute()
        if directory.resolve().is_relative_to(root):
            raise ValueError(f"the edit history {directory} must lie outside the workspace {root}")
        key = hashlib.sha256(f"{root}\0{location}".encode()).hexdigest()[:32]
        folder = directory / key
        directory.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        folder.mkdir(mode=PRIVATE, exist_ok=True)
        with _locked(folder):
            yield FileHistory(folder, location)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with closing_fd(lock):
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


# --- The directory an agent works in: what the rest of Daruma knows of files, never blocking.


class Workspace:
    """Files beneath one directory, by path relative to it.

    `root` must be an existing directory. `files` are the operations on what is in it, which block.
    """

    def __init__(self, root: Path) -> None:
        self.files = FilesBeneath(root)

    @property
    def root(self) -> Path:
        """The directory, absolute, links resolved when the workspace was opened."""
        return self.files.root

    async def directory(self, path: str) -> Path:
        """The absolute path of an existing directory, to start a command in."""
        if not await in_thread(self.files.is_directory, path):
            raise FileUnavailable(f"{printable_path(path)}: is not a directory")
        return self.root / await in_thread(self.files.locate, path)


# --- Keeping two runs of one host out of one workspace: locks on the folder itself and those above
# it.
#
# The kernel drops them with the process. A folder is locked for its run alone, those above it are
# shared: so neither the same folder nor one inside the other is worked in by two.


@contextmanager
def workspace_locked(workspace: str | None) -> Iterator[None]:
    """Have a workspace for oneself, in this and all other processes of the host.

    Raises :class:`~daruma.state.errors.WorkspaceBusy`. A folder that is not there, or whose file
    system has no locks, is not kept: tools say themselves what they miss.
    """
    with ExitStack() as stack:
        if workspace is not None:
            real = Path(os.path.realpath(workspace))
            for folder in reversed(real.parents):
                _lock(folder, fcntl.LOCK_SH, workspace, stack)
            _lock(real, fcntl.LOCK_EX, workspace, stack)
        yield


def aworkspace_locked(workspace: str | None) -> AbstractAsyncContextManager[None]:
    """Do the same, asynchronously: in a thread, unless there is nothing to be locked."""
    return nullcontext() if workspace is None else entered_in_thread(workspace_locked(workspace))


def _lock(folder: Path, kind: int, workspace: str, stack: ExitStack) -> None:
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return
    stack.callback(os.close, opened)
    try:
        fcntl.flock(opened, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        raise WorkspaceBusy(
            f"another run on this machine works in {folder}: wait until that has stopped, or use "
            f"a copy of {workspace}"
        ) from None
    except OSError:
        return


# --- Where it is kept what a thread has seen and edited of a workspace's files.


def edit_folder(workspace: Path | str, thread: str) -> Path:
    """Return the folder of the edit histories of a thread in a workspace."""
    key = hashlib.sha256(f"{workspace}\0{thread}".encode()).hexdigest()[:32]
    return data_dir() / "edits" / key
