"""Open questions as a person sees them: exactly what will be, with nothing hidden."""

import difflib
import json
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from langgraph.types import Interrupt

from daruma.graph.command_line._output import Line, Mark
from daruma.graph.command_line._printable import one_line
from daruma.state.errors import DarumaError
from daruma.state.interrupts import notes_on_plan
from daruma.state.text import reveal_invisible, revealed_line
from daruma.tools.errors import ToolError
from daruma.tools.files import FilesBeneath, TextFile, insert_after, replace_once


class AnswerRefused(DarumaError):
    """Raised for an answer that fits no open question; the questions stay open."""


# --- An approval named together with what was shown of it: ``ID@DIGEST``, a digest's beginning.

DIGEST_SHOWN: Final = 12
"""Characters; enough to tell two approvals apart, the answer carries it whole."""

_FEWEST: Final = 8


def as_shown(approval: Mapping[str, Any]) -> str:
    """Return the name that stands for an approval only as long as it is what was shown."""
    return f"{approval['approval_id']}@{approval['digest'][:DIGEST_SHOWN]}"


def approvals_named(
    names: Collection[str], open_ones: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Return the ids of names that may hold a digest.

    Raises :class:`AnswerRefused` where the digest is another: servers use the ids of calls again.
    """
    return [name if name in open_ones else _checked(name, open_ones) for name in names]


def _checked(name: str, open_ones: Mapping[str, Mapping[str, Any]]) -> str:
    own, at, digest = name.rpartition("@")
    if not at or own not in open_ones or len(digest) < _FEWEST:
        return name
    if not open_ones[own]["digest"].startswith(digest):
        raise AnswerRefused(f"{own!r} is another call by now: see what is open and answer that")
    return own


# --- One approval as a person sees it: all that will run, in full, with nothing hidden.


def approval_lines(approval: Mapping[str, Any]) -> list[Line]:
    """Return an approval as lines, warnings first.

    What the model gave stands behind marks of its own, one for each line of it, so that it can not
    pass for anything that is said here.
    """
    return [
        *(Line("alarm", f"Look closely: {warning}") for warning in approval.get("warnings", ())),
        Line("line", revealed_line(approval["tool"])),
        *_given(approval),
        *(Line("note", f"{label}: {text}") for label, text in _circumstances(approval)),
    ]


def _given(approval: Mapping[str, Any]) -> Iterator[Line]:
    """Yield the command and the arguments, each whole, however long."""
    command = approval.get("command")
    if command:
        yield from given_lines("$", command)
    args = approval["args"]
    yield from argument_lines({k: v for k, v in args.items() if not (command and k == "command")})


def argument_lines(args: Mapping[str, Any]) -> Iterator[Line]:
    """Yield a call's arguments, each whole, however long."""
    for name, value in args.items():
        yield from given_lines(f"{revealed_line(name)}:", _text(value))


def given_lines(label: str, text: str) -> Iterator[Line]:
    """Yield what a model gave, each line of it behind a mark."""
    lines = reveal_invisible(text).split("\n")
    if len(lines) == 1:
        yield Line("given", f"{label} {lines[0]}")
    else:
        yield Line("given", f"{label} {len(lines)} lines")
        yield from (Line("payload", line) for line in lines)


def _text(value: object) -> str:
    """Return a value as JSON, text without quotes unless it could be taken for something else."""
    if isinstance(value, str) and not _reads_as_json(value):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def _reads_as_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _circumstances(approval: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    told = {
        "in": approval.get("cwd"),
        "why it is asked": approval["reason"],
        "sandbox": approval["sandbox"],
    }
    yield from ((label, revealed_line(text)) for label, text in told.items() if text)
    yield from (("not covered", revealed_line(text)) for text in approval.get("not_covered", ()))
    effect = "stops the task" if approval["deny_effect"] == "block" else "is told to the model"
    needed = "required" if approval["required"] else "optional"
    name = revealed_line(approval["approval_id"])
    yield "approval", f"{name}, {needed}; a denial {effect}"
    yield "digest", approval["digest"][:DIGEST_SHOWN]


# --- What an edit that waits for a yes would change in its file, as the file is now.

EDITOR: Final = "str_replace_editor"
AROUND: Final = 3
"""Lines that are shown before and after a change, as diffs do."""

_MARKS: Final[Mapping[str, Mark]] = {"+": "plus", "-": "minus", "@": "note"}

_CHANGES: Final[Mapping[str, Callable[[str, Mapping[str, Any]], str]]] = {
    "str_replace": lambda now, args: replace_once(now, args["old_str"], args["new_str"]).text,
    "insert_at_line": lambda now, args: (
        insert_after(now, args["insert_line"], args["insert_text"]).text
    ),
}


def shown_approval(approval: Mapping[str, Any]) -> list[Line]:
    """Return an approval with what it would change in a file that it edits."""
    return [*approval_lines(approval), *edit_preview(approval)]


def edit_preview(approval: Mapping[str, Any]) -> list[Line]:
    """Return the diff of a call of the editor; nothing for other calls, and where nobody can tell.

    It reads the file beneath the approval's folder. A file that can not be edited as the call says
    is no error: the reason is told.
    """
    args, folder = approval["args"], approval.get("cwd")
    if approval["tool"] != EDITOR or not folder:
        return []
    try:
        before, after = _texts(Path(folder), args)
    except (ToolError, OSError) as error:
        return [Line("bad", f"as the file is now, this would be refused: {error}")]
    except (KeyError, TypeError, AttributeError):  # the tool itself says what is wrong with them
        return []
    return [*diff_lines(before, after)]


def _texts(folder: Path, args: Mapping[str, Any]) -> tuple[str, str]:
    """Return a file's text before and after. Raises KeyError for a command that changes none."""
    if args["command"] == "create":
        return "", args["file_text"]
    change = _CHANGES[args["command"]]
    now = TextFile.of(FilesBeneath(folder).read(args["path"]), args["path"]).text
    return now, change(now, args)


def diff_lines(before: str, after: str) -> Iterator[Line]:
    """Yield a unified diff; what hides in its lines is spelled, a line end of ``\\r\\n`` too."""
    if before.replace("\r\n", "\n") == after.replace("\r\n", "\n"):
        yield Line("note", "this changes nothing")
        return
    old, new = before.split("\n"), after.split("\n")
    for text in [*difflib.unified_diff(old, new, n=AROUND, lineterm="")][2:]:
        shown = revealed_line(text[1:].replace("\t", "    "))
        if text.startswith("@"):
            yield Line("note", text.strip("@ "), "what would change")
        else:
            yield Line(_MARKS.get(text[0], "same"), shown)


# --- What recovery would do about a failure, as a person sees it: in full, with nothing hidden.


def recovery_lines(value: Mapping[str, Any]) -> list[Line]:
    """Return a ``recovery_request`` as lines.

    The failure may quote a tool, and the rest is a model's: each stands behind a mark of its own.
    """
    proposed, action = value["action"], value["action"].get("action") or {}
    tool = action.get("tool_name")
    return [
        *given_lines("it failed:", value["failure"]),
        Line("line", revealed_line(proposed["strategy"]), revealed_line(tool) if tool else ""),
        *argument_lines(action.get("parameters") or {}),
        *_said(proposed, action),
        Line("note", confidence_of(proposed["confidence"], proposed.get("by", "model"))),
    ]


def _said(proposed: Mapping[str, Any], action: Mapping[str, Any]) -> Iterator[Line]:
    told = {
        "why:": proposed.get("reasoning"),
        "expected:": proposed.get("expected_outcome"),
        "to say:": action.get("escalation_message"),
    }
    for label, text in told.items():
        if text:
            yield from given_lines(label, text)


def confidence_of(confidence: float, by: str) -> str:
    """Say how sure the choice of an action is, and who made it."""
    return f"confidence {confidence:.2f}, chosen by {by}"


# --- A plan as people read it: what is to be done, in which order, with which commands.

_STANDING: dict[str, Mark] = {"completed": "ok", "failed": "bad"}


def review_lines(
    value: Mapping[str, Any], checks: Sequence[str] = (), *, known: bool = False
) -> list[Line]:
    """Return a plan under review, with who may work on it and how the work is judged.

    A ``known`` plan has just been shown, and is not shown again.
    """
    shown = (
        []
        if known
        else [Line("line", reveal_invisible(value["goal"])), *plan_lines(value["phases"])]
    )
    told = {
        "experts": ", ".join(value.get("experts", ())),
        "the work is checked with": ", ".join(checks),
        **notes_on_plan(value),
    }
    beside = [
        Line("note", f"{label}: {revealed_line(text)}") for label, text in told.items() if text
    ]
    return [*shown, *beside]


def plan_lines(phases: Sequence[Mapping[str, Any]]) -> list[Line]:
    """Return a plan as lines: titles, what is to be done, and every command it brings along."""
    lines = []
    for number, phase in enumerate(phases, 1):
        mark = _STANDING.get(phase.get("status", ""), "line")
        lines.append(Line(mark, f"{number}. {revealed_line(phase['title'])}"))
        lines.extend(Line("note", text) for text in _details(phase))
    return lines


def _details(phase: Mapping[str, Any]) -> list[str]:
    after, expert = ", ".join(phase.get("depends_on") or ()), phase.get("expert")
    told = {
        "after": after,
        "by": expert,
        "checked with": phase.get("validation_command"),
        "judged by": "; ".join(phase.get("rubric", ())),
        "undone with": phase.get("rollback_command"),
        "if it fails": "all files are put back" if phase.get("rollback") else None,
        "settles the conflicts of": phase.get("settles"),
        "in conflict": ", ".join(phase.get("conflicts", ())),
    }
    instructions = [reveal_invisible(phase["instructions"])] if phase.get("instructions") else []
    return instructions + [
        f"{label}: {reveal_invisible(text)}" for label, text in told.items() if text
    ]


# --- What is told of the workspace: files that others changed, states that are kept, rollbacks.

Event = Mapping[str, Any]

DECISIONS: Final[Mapping[str, str]] = {
    "retry": "the rollback is tried again",
    "restore": "all files are put back from the snapshot",
    "keep": "the files stay as they are",
}
"""What comes of each answer to the question after a failed rollback."""

_NAMED = 10
_LEFT = 20


def drift_lines(event: Event) -> list[Line]:
    """Tell what changed behind the thread's back."""
    total = event["total"]
    files = "1 file has" if total == 1 else f"{total} files have"
    head = Line("alarm", f"{files} changed since this thread last looked, and not by its work")
    return [head, *named_lines(event["paths"], total)]


def savepoint_lines(event: Event) -> list[Line]:
    """Tell what is to be known of a state that is kept; mostly that is nothing."""
    if not event["note"]:
        return []
    return [Line("note", f"savepoint {event['savepoint_id']}: {event['note']}")]


def begun_lines(event: Event) -> list[Line]:
    """Tell that a phase is rolled back, and by what."""
    how = "all files as before the phase" if event["command"] == "snapshot" else event["command"]
    return [Line("head", "Rollback", f"{event['phase_id']}: {one_line(how)}")]


def rolled_back_lines(event: Event) -> list[Line]:
    """Tell how a rollback ended, what is not as it was, and how to bring back what was undone."""
    said: Mapping[bool | None, tuple[Mark, str]] = {
        True: ("ok", "rolled back: the files are exactly as before the phase"),
        False: ("bad", "rolled back, but not all files are as before the phase"),
        None: ("ok", "rolled back"),
    }
    mark, text = said[event["exact"]]
    return [Line(mark, text), *left_lines(event["left"]), *_undo_lines(event["undo"])]


def failed_lines(event: Event) -> list[Line]:
    """Tell that a rollback failed, and why."""
    return [Line("bad", f"not rolled back: {event['reason']}"), *_undo_lines(event["undo"])]


def decided_lines(event: Event) -> list[Line]:
    """Tell what a person decided about a failed rollback."""
    decision = event["decision"]
    return [Line("ok", f"{decision}: {DECISIONS.get(decision, 'decided')}")]


def named_lines(paths: Sequence[str], total: int) -> list[Line]:
    """Return the first paths, and how many there are beside them."""
    more = total - min(len(paths), _NAMED)
    rest = [Line("note", f"and {more} more")] if more > 0 else []
    return [*(Line("note", one_line(path)) for path in paths[:_NAMED]), *rest]


def left_lines(left: Sequence[str]) -> list[Line]:
    """Return what is not as it was, each with its reason."""
    more = len(left) - _LEFT
    rest = [Line("note", f"and {more} more")] if more > 0 else []
    return [*(Line("bad", one_line(each, 300)) for each in left[:_LEFT]), *rest]


def _undo_lines(snapshot: str | None) -> list[Line]:
    if snapshot is None:
        return []
    return [Line("note", f"what was rolled back is kept: daruma undo THREAD --to {snapshot}")]


# --- Open questions as a person sees them: exactly what will be, and the command that answers.


def question_lines(
    value: Mapping[str, Any], *, known: bool = False, checks: Sequence[str] = ()
) -> list[Line]:
    """Return a question as lines; a ``known`` plan has just been shown and is not shown again.

    ``checks`` are the commands that the work under a plan will be checked with.
    """
    if value["type"] == "spec_review_request":
        parked = "parked: it waits, without a deadline" if value.get("parked") else ""
        return [
            Line("head", "Is this plan right?", parked),
            *review_lines(value, checks, known=known),
        ]
    if value["type"] == "approval_request":
        return [line for each in _numbered(value["approvals"]) for line in each]
    if value["type"] == "recovery_request":
        return [Line("head", "May this be done about a failure?"), *recovery_lines(value)]
    context = [Line("note", value["context"])] if value.get("context") else []
    return [Line("head", str(value.get("question", value["type"]))), *context]


def _numbered(approvals: Sequence[Mapping[str, Any]]) -> Iterator[list[Line]]:
    for number, approval in enumerate(approvals, 1):
        which = f"{number} of {len(approvals)}" if len(approvals) > 1 else ""
        yield [Line("head", "May this run?", which), *shown_approval(approval)]


def options_of(value: Mapping[str, Any]) -> list[str]:
    """Return what a question can be answered with; none where any words will do."""
    return [str(each) for each in value.get("options") or ()]


def how_to_answer(thread: str, questions: Collection[Interrupt]) -> list[str]:
    """Return the commands that answer, ready to be pasted."""
    command = f"daruma answer {shlex.quote(thread)}"
    commands = []
    worded = [each for each in questions if each.value["type"] == "question"]
    for question in questions:
        several = question in worded and len(worded) > 1
        which = f"--to {shlex.quote(str(question.value['id']))} " if several else ""
        commands += [f"{command} {which}{option}" for option in _options(question.value)]
    return commands


def _options(value: Mapping[str, Any]) -> list[str]:
    if value["type"] == "spec_review_request":
        return ["--confirm", "--reject 'what to change'"]
    if value["type"] == "question":
        given = [f"--text {shlex.quote(each)}" for each in options_of(value)]
        given += [f"--text '{amount} NUMBER'" for amount in value.get("amounts") or ()]
        return given or ["--text 'your answer'"]
    if value["type"] == "recovery_request":
        pinned = f"--approve {shlex.quote(value['id'])}"  # a later recovery is another one
        return [pinned, "--deny --reason 'why not'", "--text 'what to do instead'"]
    if value["type"] != "approval_request":
        return []
    ids = [shlex.quote(as_shown(each)) for each in value["approvals"]]
    each = [f"--approve {name}" for name in ids]
    every = [" ".join(each)] if len(ids) > 1 else []
    edits = [f"--edit {name} --args 'its new arguments, as JSON'" for name in ids]
    return [*every, *each, "--deny --reason 'why not'", *edits]
