"""Open questions as a person sees them: exactly what will be, with nothing hidden."""

import difflib
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from daruma.graph.command_line._output import Line, Mark
from daruma.graph.timeline import chosen_by
from daruma.state.errors import DarumaError
from daruma.state.interrupts import notes_on_plan
from daruma.state.text import on_thread, pasted, reveal_invisible, revealed_line
from daruma.tools.errors import ToolError
from daruma.tools.files import FilesBeneath, TextFile, insert_after, replace_once

if TYPE_CHECKING:  # `daruma threads` imports no LangGraph with it (FA-13)
    from langgraph.types import Interrupt

    from daruma.state.serializer import Asked


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
    found = list[str]()
    for name in names:
        own, at, digest = name.rpartition("@")
        pinned = at and name not in open_ones and own in open_ones and len(digest) >= _FEWEST
        if pinned and not open_ones[own]["digest"].startswith(digest):
            raise AnswerRefused(f"{own!r} is another call by now: see what is open and answer that")
        found.append(own if pinned else name)
    return found


# --- One approval as a person sees it: all that will run, in full, with nothing hidden.


def approval_lines(approval: Mapping[str, Any]) -> list[Line]:
    """Return an approval as lines, warnings first.

    What the model gave stands behind marks of its own, one for each line of it, so that it can not
    pass for anything that is said here.
    """
    command, args = approval.get("command"), approval["args"]
    others = {k: v for k, v in args.items() if not (command and k == "command")}
    return [
        *(Line("alarm", f"Look closely: {warning}") for warning in approval.get("warnings", ())),
        Line("line", revealed_line(approval["tool"])),
        *(given_lines("$", command) if command else ()),
        *argument_lines(others),
        *(Line("note", f"{label}: {text}") for label, text in _circumstances(approval)),
    ]


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
    if isinstance(value, str):
        try:
            json.loads(value)
        except (ValueError, RecursionError):
            return value
    return json.dumps(value, ensure_ascii=False, default=str)


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
        Line("note", chosen_by(proposed.get("by", "model"), proposed["confidence"])),
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


# --- A plan as people read it: what is to be done, in which order, with which commands.

_STANDING: dict[str, Mark] = {"completed": "ok", "failed": "bad"}


def review_lines(
    value: Mapping[str, Any], checks: Sequence[str] = (), *, known: bool = False
) -> list[Line]:
    """Return a plan under review, with who may work on it and how the work is judged.

    A ``known`` plan has just been shown, and is not shown again.
    """
    plan = [] if known else plan_lines(value["phases"])
    goal = [] if known else [Line("line", reveal_invisible(value["goal"]))]
    told = {
        "experts": ", ".join(value.get("experts", ())),
        "the work is checked with": ", ".join(checks),
        **notes_on_plan(value),
    }
    beside = (Line("note", f"{name}: {revealed_line(text)}") for name, text in told.items() if text)
    return [*goal, *plan, *beside]


def plan_lines(phases: Sequence[Mapping[str, Any]]) -> list[Line]:
    """Return a plan as lines: titles, what is to be done, and every command it brings along."""
    lines = []
    for number, phase in enumerate(phases, 1):
        mark = _STANDING.get(phase.get("status", ""), "line")
        lines.append(Line(mark, f"{number}. {revealed_line(phase['title'])}"))
        lines.extend(Line("note", text) for text in _details(phase))
    return lines


def _details(phase: Mapping[str, Any]) -> list[str]:
    told = {
        "after": ", ".join(phase.get("depends_on") or ()),
        "by": phase.get("expert"),
        "checked with": phase.get("validation_command"),
        "judged by": "; ".join(phase.get("rubric", ())),
        "undone with": phase.get("rollback_command"),
        "if it fails": "all files are put back" if phase.get("rollback") else None,
        "settles the conflicts of": phase.get("settles"),
        "in conflict": ", ".join(phase.get("conflicts", ())),
    }
    instructions = [reveal_invisible(phase["instructions"])] if phase.get("instructions") else []
    return [*instructions, *(f"{name}: {reveal_invisible(v)}" for name, v in told.items() if v)]


# --- Open questions as a person sees them: exactly what will be, and the command that answers.


def question_lines(
    value: Mapping[str, Any], *, known: bool = False, checks: Sequence[str] = ()
) -> list[Line]:
    """Return a question as lines; a ``known`` plan has just been shown and is not shown again.

    ``checks`` are the commands that the work under a plan will be checked with.
    """
    if value["type"] == "spec_review_request":
        parked = "parked: it waits, without a deadline" if value.get("parked") else ""
        head = Line("head", "Is this plan right?", parked)
        return [head, *review_lines(value, checks, known=known)]
    if value["type"] == "approval_request":
        asked, lines = value["approvals"], list[Line]()
        for number, approval in enumerate(asked, 1):
            which = f"{number} of {len(asked)}" if len(asked) > 1 else ""
            lines += [Line("head", "May this run?", which), *shown_approval(approval)]
        return lines
    if value["type"] == "recovery_request":
        return [Line("head", "May this be done about a failure?"), *recovery_lines(value)]
    context = [Line("note", value["context"])] if value.get("context") else []
    return [Line("head", str(value.get("question", value["type"]))), *context]


def options_of(value: Mapping[str, Any]) -> list[str]:
    """Return what a question can be answered with; none where any words will do."""
    return [str(each) for each in value.get("options") or ()]


def how_to_answer(thread: str, questions: "Collection[Interrupt | Asked]") -> list[str]:
    """Return the commands that answer, ready to be pasted."""
    commands = []
    worded = [each for each in questions if each.value["type"] == "question"]
    for question in questions:
        several = question in worded and len(worded) > 1
        which = f"--to {pasted(str(question.value['id']))} " if several else ""
        ways = _options(question.value)
        commands += [on_thread("answer", thread, f"{which}{way}") for way in ways]
    return commands


def _options(value: Mapping[str, Any]) -> list[str]:
    if value["type"] == "spec_review_request":
        return ["--confirm", "--reject 'what to change'"]
    if value["type"] == "question":
        given = [f"--text {pasted(each)}" for each in options_of(value)]
        given += [f"--text '{amount} NUMBER'" for amount in value.get("amounts") or ()]
        return given or ["--text 'your answer'"]
    if value["type"] == "recovery_request":
        pinned = f"--approve {pasted(value['id'])}"  # a later recovery is another one
        return [pinned, "--deny --reason 'why not'", "--text 'what to do instead'"]
    if value["type"] != "approval_request":
        return []
    ids = [pasted(as_shown(each)) for each in value["approvals"]]
    each = [f"--approve {name}" for name in ids]
    every = [" ".join(each)] if len(ids) > 1 else []
    edits = [f"--edit {name} --args 'its new arguments, as JSON'" for name in ids]
    return [*every, *each, "--deny --reason 'why not'", *edits]
