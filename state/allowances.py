"""A person's yes to calls to come (TL-25): what it covers, and which ones hold in a workspace.

Those of a thread are in its state. Those of a workspace lie in the user's own folder, where tasks
and their commands do not reach.
"""

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from daruma.state.calls import Grounds, ToolTask
from daruma.state.data_dir import data_dir, write_private
from daruma.state.errors import DarumaError
from daruma.state.record import record
from daruma.state.text import digest, revealed_line

# --- What a yes covers: one call exactly, or what fits a pattern.

_COMMAND: Final = "run_command"
_NO_MATTER: Final = ("timeout", "write")
"""Arguments of a command that change nothing of what it does."""


@record
class Allowance:
    """One yes. A call is covered whose arguments are ``args``, beside those that are ``free``.

    With ``words`` a command may be any plain one that begins with them. Workspace, sandbox and the
    definition of an MCP tool have to be those of the approval that it was given with; ``approval``
    is the digest of that, ``at`` when, in Unix seconds. A workspace is the folder itself, not a
    link that leads there: that may lead elsewhere by then.
    """

    id: str = ""
    tool: str
    args: dict[str, Any]
    free: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    workspace: str = ""
    sandbox: str = "none"
    not_covered: tuple[str, ...] = ()
    definition: str = ""
    approval: str = ""
    at: float = 0.0
    schema_version: int = 1

    @property
    def text(self) -> str:
        """What it covers, on one line."""
        if self.tool == _COMMAND and (self.words or "command" in self.args):
            said = f"{shlex.join(self.words)} *" if self.words else str(self.args["command"])
            within = f", in {self.args['cwd']}" if self.args.get("cwd") else ""
            return revealed_line(f"{self.tool}: {said}{within}")
        given = [f"{name}={value!r}" for name, value in self.args.items()]
        given += [f"{name}=*" for name in self.free]
        return revealed_line(f"{self.tool}({', '.join(given)})")

    def covers(self, call: ToolTask, workspace: str | None, grounds: Grounds) -> bool:
        """Whether a call may run by it: never one that requires a person, or holds a key."""
        now = (call.name, workspace or "", grounds.sandbox, tuple(grounds.not_covered))
        then = (self.tool, self.workspace, self.sandbox, self.not_covered)
        same = (*now, grounds.definition) == (*then, self.definition)
        if call.required or call.masked or not same:
            return False
        args = _counting(call.name, call.args)
        if self.words:
            line = args.pop("command", None)
            if not isinstance(line, str) or plain_words(line)[: len(self.words)] != self.words:
                return False
        rest = {name: value for name, value in args.items() if name not in self.free}
        return _written(rest) == _written(self.args)  # true is not 1


_written: Final = json.JSONEncoder(sort_keys=True, default=repr).encode


def _counting(tool: str, args: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in args.items() if tool != _COMMAND or k not in _NO_MATTER}


def build_allowance(
    call: ToolTask, workspace: str | None, grounds: Grounds, pattern: str, approval: str, at: float
) -> Allowance:
    """Return the yes to a call, and to what fits the pattern. Raises ValueError for a bad one."""
    args, free, words = read_pattern(call.name, call.args, pattern)
    made = Allowance(
        tool=call.name,
        args=args,
        free=free,
        words=words,
        workspace=workspace or "",
        sandbox=grounds.sandbox,
        not_covered=tuple(grounds.not_covered),
        definition=grounds.definition,
        approval=approval,
        at=at,
    )
    return replace(made, id=_id_of(made))


def _id_of(own: Allowance) -> str:
    return digest({name: value for name, value in asdict(own).items() if name not in ("id", "at")})


def read_pattern(
    tool: str, args: Mapping[str, Any], pattern: str
) -> tuple[dict[str, Any], tuple[str, ...], tuple[str, ...]]:
    """Return the arguments that stay as they are, the free ones, and the words of a command.

    Without a pattern nothing is free. Raises ValueError for one that does not fit the call itself.
    """
    counting = _counting(tool, args)
    if not pattern.strip():
        return counting, (), ()
    if tool == _COMMAND:
        words = plain_words(pattern.strip().removesuffix(" *"))
        line = plain_words(str(counting.pop("command", "")))
        if not (words and pattern.strip().endswith(" *") and line[: len(words)] == words):
            raise ValueError(
                "the pattern of a command is its first words and a star, as in 'pytest *'; what a "
                "shell expands, joins or redirects is allowed exactly, without a pattern"
            )
        return counting, (), words
    free = tuple(part.strip().removesuffix("=*") for part in pattern.split(","))
    if not set(free) <= set(counting) or pattern.count("=*") != len(free):
        example = f"'{next(iter(args), 'amount')}=*'"
        raise ValueError(f"a pattern names arguments that may be anything, as in {example}")
    return {k: v for k, v in counting.items() if k not in free}, free, ()


def revoked(id_: str) -> str:
    """Return the id of the note by which a thread's yes is taken back."""
    return f"revoked-{id_}"


# --- Shell lines that are one plain command, word by word.

_PLAIN_LINE = re.compile(
    r"""(?:[\w@%+=:,./^-]|(?<=\w)~|[ \t]|'[^'\x00-\x1f\x7f]*'|"[^"$`\\\x00-\x1f\x7f]*")+"""
)
"""One simple command, with quotes at most: nothing that a shell expands, joins or redirects."""

ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")


def plain_words(line: str) -> tuple[str, ...]:
    """Return the words of a line that is one simple command; none for any other."""
    words = tuple(shlex.split(line)) if _PLAIN_LINE.fullmatch(line) else ()
    return () if not words or ASSIGNMENT.match(words[0]) else words


# --- Those of workspaces: a file each, in the user's own folder.


class AllowancesDamaged(DarumaError):
    """Raised when what is kept can not be read as it was written: then nothing is allowed by it."""


def workspace_allowances(workspace: str | None = None) -> tuple[Allowance, ...]:
    """Return those of a workspace, or all, oldest first. Raises :class:`AllowancesDamaged`."""
    every = sorted(map(_read, _files()), key=lambda each: each.at)
    return tuple(each for each in every if workspace in (None, each.workspace))


def keep_allowance(given: Allowance) -> None:
    """Keep one for its workspace; the same one may be kept again."""
    write_private(_folder() / f"{given.id}.json", json.dumps(asdict(given)))


def revoke_allowance(id_: str) -> bool:
    """Take one of a workspace back; return whether there was one. A damaged one goes, too."""
    found = [file for file in _files() if file.stem == id_]
    for file in found:
        file.unlink(missing_ok=True)
    return bool(found)


def _read(file: Path) -> Allowance:
    why = "nothing is allowed by what was kept for workspaces: `daruma approvals revoke"
    try:
        status = file.lstat()
        kept: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        read = Allowance(**kept)
        if status.st_mode & 0o077 or read.id != file.stem or read.id != _id_of(read):
            raise ValueError
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        raise AllowancesDamaged(f"{file} is damaged, so {why} {file.stem}` removes it") from None
    return read


def _files() -> list[Path]:
    return [each for each in _folder().glob("*.json") if not each.is_dir()]


def _folder() -> Path:
    return data_dir() / "trust" / "approvals"
