"""Delegating (PL-08): the tool, what a helper may use of its caller's tools, and what it brings."""

from collections.abc import Iterator
from difflib import unified_diff
from glob import escape
from typing import Any, Final

from pydantic import Field

from daruma.state.outcome import join_paths
from daruma.state.plan import Report
from daruma.state.settings import PolicyRule, Settings
from daruma.state.spending import format_amount, spending
from daruma.state.task import Task
from daruma.tools.calls import Surroundings, Tool, ToolArgs, shipped_tool
from daruma.tools.calls.policy import profile_shows
from daruma.tools.context import Context, visible_tools
from daruma.tools.errors import ToolError
from daruma.tools.snapshots import Snapshots
from daruma.tools.team._templates import Expert, settings_of
from daruma.tools.team._worktree import JoinOutcome

# --- The tool, as the model is shown it.


class DelegateArgs(ToolArgs):
    """Have a helper carry out a part of the task, with a context of its own.

    Use it for what needs much reading and has a short answer, and for parts that do not depend on
    each other: several calls of one answer run at once. The helper knows only what you tell it, and
    you are told its answer, which files it changed, and what that took of your budget.
    """

    task: str = Field(
        min_length=1,
        pattern=r"\S",
        description="What to do or find out, where to look, and what to answer.",
    )
    expert: str | None = Field(
        default=None,
        description="The team's expert who does it, by name; leave it out for one like yourself.",
    )
    write: bool = Field(
        default=False,
        description="Let it change files: in a copy of the workspace, merged when it is done. "
        "Else it only reads.",
    )


async def _not_run(_: DelegateArgs, __: Surroundings) -> str:
    raise ToolError("helpers are there for the task itself only")  # its calls go to the helpers


DELEGATE_TOOLS: Final[tuple[Tool, ...]] = (
    shipped_tool("delegate", DelegateArgs, "none", _not_run, toolset="team"),
)


# --- What a helper may use: nothing that its caller may not.

PROFILE: Final = "helper"
ONLY_READS: Final = PolicyRule(
    decision="deny", reason="this helper only reads: it was not told to write"
)


def helper_settings(expert: Expert | None, task: Task, context: Context) -> Settings:
    """Return the settings that a helper runs under.

    Of the tools that its caller is shown it has those that its expert's profile shows, and one that
    only reads has those of them that change nothing: the editor then shows files, no more. The
    policy, the sandbox and all else are its caller's.
    """
    settings = settings_of(expert, context.settings)
    known = [t for t in visible_tools(task, context).tools if profile_shows(settings.tools, t)]
    if task.helps == "reads":
        known = [t for t in known if t.reads]
    sets = {*settings.tools.toolsets, *({"knowledge"} & {tool.toolset for tool in known})}
    names = tuple(escape(tool.name) for tool in known if tool.toolset != "team")
    narrowed: dict[str, Any] = {
        "profile": PROFILE,
        "profiles": {**settings.tools.profiles, PROFILE: names},
        "toolsets": tuple(sorted(sets)),
    }
    if task.helps == "reads":
        # A policy tells calls by their first letter: no other value that schemas allow begins so.
        reading = ((tool.name, *each) for tool in known for each in tool.reads_with.items())
        rules = {f"{tool}({name}=[!{value[0]}]*)": ONLY_READS for tool, name, value in reading}
        narrowed["policy"] = {**settings.tools.policy, **rules}
    tools = settings.tools.model_copy(update=narrowed)
    return settings.model_copy(update={"tools": tools})


# --- What a helper brings, in the words of the one result that its call gets.


def describe_report(report: Report, joined: JoinOutcome, why: str = "", patch: str = "") -> str:
    """Return the result of a helper's call: its answer, how it ended, and what it came to.

    ``why`` says what went wrong; ``patch`` is the id that work which was not merged is kept under.
    """
    phase, spent = report.phase, spending(report.steps)
    who = f"The helper {phase.expert}" if phase.expert else "The helper"
    steps = sum(step.kind == "think" for step in report.steps)
    amounts = ["1 step" if steps == 1 else f"{steps} steps", format_amount("tokens", spent.tokens)]
    amounts += [format_amount("usd", spent.usd)] if spent.usd else []
    parts = [f"Error: {who} has not done it: {why}" if why else f"{who} has done it.", phase.answer]
    if phase.verification:
        parts.append(f"Checks: {phase.verification.summary}")
    if joined.paths:
        parts.append(f"Files it changed, merged: {join_paths(joined.paths)}")
    elif report.snapshot and not why:
        parts.append("It changed no file.")
    if patch:
        parts.append(
            "None of what it changed came into the workspace. It is kept as a patch: read_output "
            f"shows it: id {patch}"
        )
    return "\n".join(filter(None, (*parts, f"Spent: {', '.join(amounts)}.")))


def patch_of(snapshots: Snapshots, began: str, ended: str) -> str:
    """Return what changed between two snapshots of a worktree as a patch; blocks.

    Files that are no text are named. Raises
    :class:`~daruma.tools.snapshots.SnapshotUnavailable`.
    """
    return "".join(_differences(snapshots, began, ended))


def _differences(snapshots: Snapshots, began: str, ended: str) -> Iterator[str]:
    for change in snapshots.changes(began, ended):
        before, after = (snapshots.text(each, change.path) or "" for each in (began, ended))
        old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
        told = [*unified_diff(old, new, f"a/{change.path}", f"b/{change.path}")]
        yield from told or [f"{change.path}: {change.what}\n"]
