"""Open questions as a person sees them: exactly what will be, and the command that answers."""

import json
import shlex
from collections.abc import Collection, Mapping
from typing import Any

from langgraph.types import Interrupt

from daruma.graph.command_line.paper import Line
from daruma.graph.command_line.plan_lines import plan_lines
from daruma.graph.command_line.printable import exact


def question_lines(value: Mapping[str, Any], *, known: bool = False) -> list[Line]:
    """Return a question as lines; a ``known`` plan has just been shown and is not shown again."""
    if value["type"] == "spec_review_request":
        shown = [] if known else [Line("line", value["goal"]), *plan_lines(value["phases"])]
        return [Line("head", "Is this plan right?"), *shown]
    if value["type"] == "approval_request":
        lines = [approval_lines(approval) for approval in value["approvals"]]
        return [Line("head", "May this run?"), *(line for some in lines for line in some)]
    context = [Line("note", value["context"])] if value.get("context") else []
    return [Line("head", str(value.get("question", value["type"]))), *context]


def approval_lines(approval: Mapping[str, Any]) -> list[Line]:
    """Return one approval as lines: all that will run, in full and with nothing hidden."""
    effect = "stops the task" if approval["deny_effect"] == "block" else "is told to the model"
    needed = "required" if approval["required"] else "optional"
    told = {
        "in": approval.get("cwd"),
        "why it is asked": approval["reason"],
        "sandbox": approval["sandbox"],
        "approval": f"{approval['approval_id']}, {needed}; a denial {effect}",
    }
    what = [f"$ {approval['command']}"] if approval.get("command") else []
    others = {key: value for key, value in approval["args"].items() if key != "command" or not what}
    arguments = [f"{key}: {_value(value)}" for key, value in others.items()]
    return [Line("line", exact(text)) for text in [approval["tool"], *what, *arguments]] + [
        Line("note", f"{label}: {exact(text)}") for label, text in told.items() if text
    ]


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def how_to_answer(thread: str, questions: Collection[Interrupt]) -> list[str]:
    """Return the commands that answer, ready to be pasted."""
    command = f"daruma answer {shlex.quote(thread)}"
    commands = []
    for question in questions:
        commands += [f"{command} {option}" for option in _options(question.value)]
    return commands


def _options(value: Mapping[str, Any]) -> list[str]:
    if value["type"] == "spec_review_request":
        return ["--confirm", "--reject 'what to change'"]
    if value["type"] == "question":
        return ["--text 'your answer'"]
    if value["type"] != "approval_request":
        return []
    ids = [shlex.quote(each["approval_id"]) for each in value["approvals"]]
    each = [f"--approve {name}" for name in ids] if len(ids) > 1 else []
    return ["--approve", *each, "--deny --reason 'why not'"]
