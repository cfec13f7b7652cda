"""What a call lacks that only the user can say (CO-01). Pure."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from daruma.state.tool_task import ToolTask
from daruma.tools.offer import Offer
from daruma.tools.repair.arguments import repaired_args
from daruma.tools.repair.outcome import Refused
from daruma.tools.tool import Tool


def lacking(task: ToolTask, unread: Collection[str], offer: Offer) -> ToolTask | None:
    """Return a call as one that lacks something, if that is all there is about it.

    It lacks what its tool says is to be asked for: what it has to have and has not, or is blank,
    and the dates in ``unread``. A call that does not fit for another reason is none of these.
    """
    tool = offer.find(task.name)
    if tool is None or tool.canonical is None or not offer.asks:
        return None
    questions = tool.canonical.ask_for
    required = tool.parameters.get("required", ())
    missing = tuple(
        name
        for name in questions
        if name in unread or (name in required and _blank(task.args.get(name)))
    )
    if not missing:
        return None
    rest = {name: value for name, value in task.args.items() if name not in missing}
    read = repaired_args(rest, without_required(tool, missing))
    if isinstance(read, Refused):
        return None
    question = " ".join(dict.fromkeys(_question(name, task, tool, unread) for name in missing))
    return replace(
        task, status="lacking", args=read.args, missing=missing, reason=question, problem=""
    )


def without_required(tool: Tool, names: Collection[str]) -> Tool:
    """Return a tool that can do without some of its arguments."""
    required = [name for name in tool.parameters.get("required", ()) if name not in names]
    return replace(tool, parameters={**tool.parameters, "required": required})


def without_blank(args: Mapping[str, Any], tool: Tool | None) -> dict[str, Any]:
    """Return arguments without those that are blank and would be asked for."""
    asked = tool.canonical.ask_for if tool and tool.canonical else {}
    return {name: value for name, value in args.items() if name not in asked or not _blank(value)}


def _question(name: str, task: ToolTask, tool: Tool, unread: Collection[str]) -> str:
    asked = tool.canonical.ask_for[name] if tool.canonical else ""
    if name not in unread:
        return asked
    return f"{asked} ({task.args[name]!r:.80} leaves it open.)"


def _blank(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())
