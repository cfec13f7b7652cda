"""One approval as a person sees it: all that will run, in full, with nothing hidden."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from daruma.graph.command_line.paper import Line
from daruma.graph.command_line.shown_digest import DIGEST_SHOWN
from daruma.state.text import revealed, revealed_line


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
    lines = revealed(text).split("\n")
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
