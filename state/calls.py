"""A tool call of the model on its way to execution, a person's approval of it, and a person's yes
to calls to come (TL-25).

What was said yes to on a thread is in its state. What was said yes to in a workspace lies in the
user's own folder, where tasks and their commands do not reach.
"""

import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any, Final, Literal

from daruma.state.data_dir import data_dir, write_private
from daruma.state.errors import DarumaError
from daruma.state.record import change_record, record
from daruma.state.task import Task
from daruma.state.text import digest, reveal_invisible, revealed_line, warnings

UNCHANGED = "daruma_unchanged"
"""The key among a result's ``additional_kwargs`` for a call that could change the workspace, and
did not."""

ALLOWED_BY = "daruma_allowed_by"
"""The key of the id of the yes that let a call run, which a person had given before (TL-25)."""

EXECUTED = "daruma_executed"
"""The key of the arguments that a call has after a repair, a hook or a person changed the model's
(TL-11, TL-14)."""

# --- A tool task: one tool call of the model on its way to execution.

ToolTaskStatus = Literal[
    "repairable", "ready", "awaiting", "lacking", "rejected", "done", "failed", "unknown"
]
NameResolution = Literal["exact", "alias", "normalized", "repaired", "unknown", "missing"]
Problem = Literal[
    "",
    "tool_not_found",
    "tool_not_in_profile",
    "invalid_json",
    "too_large",
    "cut_off",
    "invalid_args",
]


@record
class ToolTask:
    """One call. ``id`` is the model's own id of the call; results answer to it.

    Models use an id again in a later answer, so ``message_id`` says whose call this one is.
    ``ready`` may run, ``awaiting`` waits for a person, ``repairable`` has a ``problem`` that a
    model may repair, ``lacking`` lacks ``missing``, which the user is asked for once the calls
    beside it are answered; the others have their result in the history. ``unknown``: it may have
    run.
    ``repaired_by`` and ``rungs`` say how its arguments were mended.
    ``approved`` is the digest of exactly what a person agreed to, with all that it rests on.
    ``voided`` counts the answers that were given to something that has changed since, ``changes``
    says what had. ``definition`` is that of an MCP tool when its call was decided on.
    ``continues`` is the call that the user was asked about before, which this one goes on with.
    ``hooked`` is the digest of what the hooks have seen of it.
    ``masked`` says that a key stood in it, which is not stored (SE-08). A ``read_only`` command is
    run so before a person is asked about it, who is asked if that does not do. ``allowed_by`` is
    the id of the yes that a person gave before, if that is what let it run. A ``delegated`` call is
    carried out by a helper, not by the tool node.
    """

    id: str
    message_id: str
    name: str
    requested_name: str
    name_resolution: NameResolution = "exact"
    args: dict[str, Any]
    status: ToolTaskStatus = "ready"
    reason: str = ""
    required: bool = False
    deny_effect: Literal["block", "continue"] = "continue"
    problem: Problem = ""
    repaired_by: Literal["", "rules", "model"] = ""
    rungs: tuple[str, ...] = ()
    approved: str = ""
    voided: int = 0
    changes: tuple[str, ...] = ()
    definition: str = ""
    missing: tuple[str, ...] = ()
    continues: str = ""
    masked: bool = False
    read_only: bool = False
    allowed_by: str = ""
    hooked: str = ""
    delegated: bool = False
    schema_version: int = 1

    @property
    def result_id(self) -> str:
        """The id of the message that holds this call's result."""
        return f"{self.message_id}:{self.id}"


@record
class Dispatch:
    """What the tool node is sent: one call and the task it belongs to.

    ``shown`` are whole paths from earlier results that end with the path of the call (CX-06).
    ``phase_id`` is that of the phase it belongs to, None in a task without a plan.
    """

    task: Task
    call: ToolTask
    shown: tuple[str, ...] = ()
    phase_id: str | None = None
    schema_version: int = 1


def reduce_calls(
    calls: tuple[ToolTask, ...], write: tuple[ToolTask, ...] | ToolTask
) -> tuple[ToolTask, ...]:
    """Reduce the ``calls`` channel: a tuple begins a new turn, a single task updates its own."""
    if isinstance(write, ToolTask):
        return tuple(write if call.id == write.id else call for call in calls)
    return tuple(write)


def with_status(calls: Iterable[ToolTask], status: ToolTaskStatus) -> tuple[ToolTask, ...]:
    """Return those calls that have a status, in their order."""
    return tuple(call for call in calls if call.status == status)


def calls_to_run(calls: Iterable[ToolTask], *, delegated: bool = False) -> tuple[ToolTask, ...]:
    """Return what runs now: calls of the tool node, or those that helpers carry out (PL-08).

    What needs nobody goes before what was approved, whose ground it may change (TL-02).
    """
    found = [call for call in with_status(calls, "ready") if call.delegated is delegated]
    return tuple(call for call in found if not call.approved) or tuple(found)


def is_open(calls: Iterable[ToolTask]) -> bool:
    """Whether calls of an answer have still to run or to be asked about (TL-02)."""
    return any(call.status in ("ready", "awaiting") for call in calls)


def set_status(call: ToolTask, status: ToolTaskStatus) -> ToolTask:
    """Return the call with another status."""
    return change_record(call, status=status)


def await_approval(call: ToolTask, refusal: str) -> ToolTask:
    """Return a call as one that a person is asked about, as running it read-only did not do."""
    tried = f"; it was run read-only first: {refusal}" if refusal else ""
    return change_record(call, status="awaiting", read_only=False, reason=call.reason + tried)


# --- An approval: exactly what will run if a person says yes, and the digests that prove it.


@record
class Approval:
    """One open approval. An answer must name its id and digest.

    ``digest`` proves what was shown, the state of the workspace included. ``shown`` is the call
    with control, bidirectional and invisible characters spelled out; ``warnings`` says that there
    are any, and what has changed since it was asked before. ``lasting`` says that a yes can be
    given for calls to come as well.
    """

    approval_id: str
    digest: str
    tool: str
    args: dict[str, Any]
    reason: str
    required: bool
    deny_effect: Literal["block", "continue"]
    command: str | None = None
    cwd: str | None = None
    sandbox: str = "none"
    not_covered: tuple[str, ...] = ()
    shown: str = ""
    warnings: tuple[str, ...] = ()
    lasting: bool = False
    schema_version: int = 1


@dataclass(frozen=True)
class Grounds:
    """What an approval rests on beside the call: how it would be confined, in what state of things.

    ``environment`` are the variables of a command, ``definition`` is that of an MCP tool, and
    ``description`` a part of it; ``tree`` is the id of the workspace's content.
    """

    sandbox: str = "none"
    not_covered: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    definition: str = ""
    description: str = ""
    tree: str = ""


def approval_of(call: ToolTask, workspace: str | None, grounds: Grounds | None = None) -> Approval:
    """Describe a call for the person who decides; the digest covers all that will run (TL-13).

    The call's place in the history is part of it: models repeat ids, and a yes is for one call.
    """
    grounds = grounds or Grounds()
    command = str(call.args.get("command")) if call.name == "run_command" else None
    within = str(call.args.get("cwd") or "")
    cwd = str(PurePath(workspace or "", within)) if command and within else workspace
    rests_on = {
        "call": call.result_id,
        "tool": call.name,
        "args": call.args,
        "cwd": cwd,
        "sandbox": grounds.sandbox,
        "not_covered": list(grounds.not_covered),
        "environment": dict(grounds.environment),
        "definition": grounds.definition,
        "tree": grounds.tree,
    }
    canonical = json.dumps(rests_on, sort_keys=True, ensure_ascii=False, default=str)
    plain = command or json.dumps(call.args, ensure_ascii=False, indent=1, default=str)
    odd = list[str]()
    for name, arg in call.args.items():
        text = arg if isinstance(arg, str) else json.dumps(arg, ensure_ascii=False, default=str)
        odd += [f"the name of an argument: {each}" for each in warnings(name)]
        odd += [f"{revealed_line(name)}: {each}" for each in warnings(text)]
    return Approval(
        approval_id=call.id,
        digest=hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest(),
        tool=call.name,
        args=call.args,
        reason=call.reason,
        required=call.required,
        deny_effect=call.deny_effect,
        command=command,
        cwd=cwd,
        sandbox=grounds.sandbox,
        not_covered=grounds.not_covered,
        shown=reveal_invisible(plain),
        warnings=(*call.changes, *warnings(call.name), *odd),
        lasting=not (call.required or call.masked),
    )


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
