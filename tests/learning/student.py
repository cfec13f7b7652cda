"""A model that does what is wrong in each kind of task, unless what it is sent says otherwise.

It is a function of what it is sent alone, and of that it heeds only what it is told before it
begins: it learns nothing within a task.
"""

import json
import re
from collections.abc import Mapping, Sequence
from html import unescape
from itertools import takewhile
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from tests.learning.families import FAMILIES, Family
from tests.scripted_runs import RecordingModel
from typing_extensions import override

BLOCK = re.compile(r"<historical_pitfalls>.*?</historical_pitfalls>", re.DOTALL)
_WHAT = re.compile(r"<what>([^<]*)</what>")


class Student(RecordingModel):
    """The model; ``requests`` are those that it was sent."""

    @override
    def answer(
        self,
        messages: Sequence[BaseMessage],
        *,
        metadata: Mapping[str, Any],
        tools: Sequence[Mapping[str, Any]],
    ) -> AIMessage:
        self._requests.append(list(messages))
        told = "\n".join(m.text for m in messages if isinstance(m, SystemMessage | HumanMessage))
        family = _family(told)
        if metadata.get("daruma_role") == "plan":
            before = takewhile(lambda m: not isinstance(m, AIMessage), messages)
            return AIMessage(json.dumps(_plan(family, "\n".join(m.text for m in before))))
        done = sum(isinstance(message, ToolMessage) for message in messages)
        return _WORK[family.way](family, done, knows=family.clue in told)


class Deaf(Student):
    """The same model, from whose requests the block of pitfalls was cut out."""

    @override
    def answer(
        self,
        messages: Sequence[BaseMessage],
        *,
        metadata: Mapping[str, Any],
        tools: Sequence[Mapping[str, Any]],
    ) -> AIMessage:
        kept = [m for m in messages if not (isinstance(m, HumanMessage) and BLOCK.search(m.text))]
        return super().answer(kept, metadata=metadata, tools=tools)


def _family(told: str) -> Family:
    """Say what kind of task it is, by how its goal begins."""
    return next(each for each in FAMILIES if each.goal.partition("{}")[0] in told)


def _plan(family: Family, told: str) -> dict[str, Any]:
    """Plan one phase that says what to look out for, as far as it was told."""
    warned = [unescape(each) for block in BLOCK.findall(told) for each in _WHAT.findall(block)]
    phase: dict[str, Any] = {
        "id": "p1",
        "title": family.name,
        "instructions": "\n".join(("Do it.", *warned)),
    }
    if family.way == "plan" and family.clue not in told:
        phase |= {"depends_on": ["p1"]}
    return {"phases": [phase]}


def _write(family: Family, done: int, *, knows: bool) -> AIMessage:
    text = family.right if knows else family.wrong
    if done:
        return AIMessage("It is done.")
    return _calling("str_replace_editor", command="create", path=family.file, file_text=text)


def _wait(family: Family, done: int, *, knows: bool) -> AIMessage:  # noqa: ARG001
    if not knows:
        return _calling("poll_status", job="import")
    return AIMessage("It is done.") if done else _calling("wait_for_job", job="import")


def _export(family: Family, done: int, *, knows: bool) -> AIMessage:  # noqa: ARG001
    if not knows:
        return _calling("legacy_export", table="customers", page=done)
    return AIMessage("It is done.") if done else _calling("export_rows", table="customers")


def _say(family: Family, done: int, *, knows: bool) -> AIMessage:  # noqa: ARG001
    return AIMessage("It is done.")


_WORK = {"file": _write, "loop": _wait, "tool": _export, "plan": _say}


def _calling(name: str, **args: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": "c"}])


def poll_status(job: str) -> str:
    """Say how far a job is."""
    return f"{job}: running"


def wait_for_job(job: str) -> str:
    """Wait for the end of a job."""
    return f"{job}: finished"


def legacy_export(table: str, page: int) -> str:
    """Export a page of a table."""
    raise ValueError(f"legacy_export is retired for {table}, export_rows took its place ({page})")


def export_rows(table: str) -> str:
    """Export a table as rows."""
    return f"{table}: 12 rows"


TOOLS = (poll_status, wait_for_job, legacy_export, export_rows)
