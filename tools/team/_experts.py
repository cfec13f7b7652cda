"""Teams: their experts, the files these are read from, delegating a part of a task to one."""

import stat
from collections.abc import Sequence
from difflib import get_close_matches, unified_diff
from functools import partial
from glob import escape
from pathlib import Path
from typing import Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from daruma.state.errors import DarumaError
from daruma.state.outcome import join_paths
from daruma.state.plan import Assignment, Report
from daruma.state.settings import (
    ModelOptions,
    PolicyRule,
    Settings,
    SettingsError,
    Team,
    Tools,
    is_trusted_text,
)
from daruma.state.spending import format_amount, spending
from daruma.state.task import Task
from daruma.state.text import pasted, read_yaml
from daruma.tools.calls import Surroundings, Tool, ToolArgs, shipped_tool
from daruma.tools.calls.policy import check_profile_name, profile_shows
from daruma.tools.context import Context, visible_tools
from daruma.tools.errors import ToolError
from daruma.tools.snapshots import Snapshots
from daruma.tools.team._worktree import JoinOutcome
from daruma.tools.threads import in_thread

# --- What a team is: its experts, and what each is there for.


class Expert(BaseModel):
    """One member of a team.

    ``prompt`` is what the member is told of its part; ``model`` a model's name or alias, None for
    the main one; ``profile`` one of the tool profiles, None for that of the settings.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[A-Za-z0-9][\w.-]*$")
    about: str = Field(min_length=1, description="What it is for, in a line: planning reads it.")
    prompt: str = ""
    model: str | None = None
    profile: str | None = None


class Template(BaseModel):
    """A team that a task can be given to, as ``@team:NAME``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    about: str = ""
    experts: tuple[Expert, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        names = [each.name for each in self.experts]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"experts there are twice: {', '.join(twice)}")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its experts."""
        return tuple(each.name for each in self.experts)

    def expert(self, name: str | None) -> Expert | None:
        """Return the expert of a name."""
        return next((each for each in self.experts if each.name == name), None)


# --- Reading a team template from its file; what is wrong with one is said in a line.

LARGEST: Final = 256 * 1024
"""Bytes; a template of some experts and their prompts has a few thousand."""


class TemplateRefused(DarumaError):
    """Raised for a team template that is not there, or whose file can not be used; says why."""


def read_template(file: Path) -> Template:
    """Read a template, which has the name of its file.

    Raises :class:`TemplateRefused`, naming the file and the first key that is wrong.
    """
    try:
        content = read_yaml(_text(file))
    except (OSError, ValueError) as error:
        raise TemplateRefused(f"{file} can not be read: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise TemplateRefused(f"{file} has to hold keys and values: about, experts")
    if "name" in content:
        raise TemplateRefused(f"{file}: key 'name': leave it out, the file's name is the team's")
    try:
        return Template.model_validate({"name": file.stem, **content})
    except ValidationError as error:
        raise TemplateRefused(f"{file}: {_explained(error.errors(include_url=False))}") from None


def _text(file: Path) -> str:
    """Return what a file holds. Raises OSError, TemplateRefused, and UnicodeDecodeError."""
    status = file.stat()
    if not stat.S_ISREG(status.st_mode):
        raise TemplateRefused(f"{file} can not be read: it is no plain file")
    if status.st_size > LARGEST:
        raise TemplateRefused(f"{file} can not be read: it is larger than {LARGEST} bytes")
    return file.read_text(encoding="utf-8")


def _explained(problems: Sequence[ErrorDetails]) -> str:
    unknown = [each for each in problems if each["type"] == "extra_forbidden"]
    first = (unknown or problems)[0]
    key = ".".join(map(str, first["loc"])) or "experts"
    if unknown:
        return f"unknown key {key!r}{_nearest(first['loc'])}"
    if first["type"] == "missing":
        return f"key {key!r} is missing"
    return f"key {key!r}: {first['msg'].removeprefix('Value error, ')}"


def _nearest(path: tuple[int | str, ...]) -> str:
    fields = {*(Expert if len(path) > 1 else Template).model_fields}
    known = sorted(fields - {"name"} if len(path) == 1 else fields)
    close = get_close_matches(str(path[-1]), known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else f"; known here: {', '.join(known)}"


# --- The teams there are: those that come with Daruma, and files of one's own.

BUILT_IN: Final = Path(__file__).with_name("templates")


def templates(team: Team) -> dict[str, Path]:
    """Return the files of the templates by name (PL-07); a folder that is not there holds none.

    Folders are looked through in their order, the built-in ones last.
    """
    found: dict[str, Path] = {}
    for folder in (BUILT_IN, *map(Path, team.folders[::-1])):
        found |= {file.stem: file for file in folder.glob("*.yaml")}
    return dict(sorted(found.items()))


def template_named(
    name: str | None, team: Team, tools: Tools | None = None, workspace: str | None = None
) -> Template:
    """Return a template; None stands for that of the settings.

    Raises :class:`TemplateRefused` if it is not there, if its file can not be used, if an expert
    has a profile that ``tools`` do not have, or if it lies in a task's ``workspace`` and nobody has
    agreed to it: it gives instructions, and chooses models (SE-02).
    """
    name, known = name or team.template, templates(team)
    if name not in known:
        raise TemplateRefused(f"there is no team template {name!r}{_instead(name, [*known])}")
    file = known[name]
    if file.parent != BUILT_IN and not is_trusted_text(file, workspace):
        raise TemplateRefused(
            f"{file} is not trusted: look at it, then `daruma trust {pasted(str(file))}`"
        )
    template = read_template(file)
    if tools is not None:
        _check_profiles(template, file, tools)
    return template


def _instead(name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    return f"{hint} There are: {', '.join(known)}"


def _check_profiles(template: Template, file: Path, tools: Tools) -> None:
    for number, expert in enumerate(template.experts):
        try:
            check_profile_name(expert.profile, tools)
        except SettingsError as error:
            key = f"experts.{number}.profile"
            raise TemplateRefused(f"{file}: key {key!r}: {error}") from None


# --- The team that a task was given to.


async def team_of(task: Task | None, settings: Settings) -> Template | None:
    """Return the team of a task in ``team_collab``, None in other modes.

    Raises :class:`~daruma.tools.team.TemplateRefused`: files may have changed.
    """
    if task is None or task.mode != "team_collab":
        return None
    named = partial(template_named, workspace=task.workspace)
    return await in_thread(named, task.template, settings.team, settings.tools)


async def expert_of(given: Assignment, settings: Settings) -> Expert | None:
    """Return who carries out an assignment; None for a helper without a part of its own.

    A helper is an expert of the task's template, or of that of the settings. Raises
    :class:`TemplateRefused`, for an expert that is not there with the names of those that are.
    """
    name, task = given.phase.expert, given.task
    if not task.helps:
        team = await team_of(task, settings)
        return team.expert(name) if team else None
    if name is None:
        return None
    named = partial(template_named, workspace=task.workspace)
    template = await in_thread(named, task.template, settings.team, settings.tools)
    if found := template.expert(name):
        return found
    raise TemplateRefused(f"there is no expert {name!r}{_instead(name, [*template.names])}")


# --- What an expert changes of the settings that a task runs under.


def settings_of(expert: Expert | None, settings: Settings) -> Settings:
    """Return the settings that a member runs under: with its own model and tool profile.

    It has no helpers: whoever helps does not delegate (PL-08).
    """
    team = settings.team.model_copy(update={"delegate": False})
    settings = settings.model_copy(update={"team": team}) if settings.team.delegate else settings
    if expert is None:
        return settings
    llm, tools = settings.llm, settings.tools
    if expert.model:
        options = llm.options.model_copy(update={"main": ModelOptions()})  # those of another model
        llm = llm.model_copy(update={"model": expert.model, "options": options})
    if expert.profile:
        tools = tools.model_copy(update={"profile": expert.profile})
    return settings.model_copy(update={"llm": llm, "tools": tools})


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
    elif report.snapshot and not why and not joined.left:
        parts.append("It changed no file.")
    parts.append(joined.left)
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
    parts: list[str] = []
    for change in snapshots.changes(began, ended):
        before, after = (snapshots.text(each, change.path) or "" for each in (began, ended))
        old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
        told = [*unified_diff(old, new, f"a/{change.path}", f"b/{change.path}")]
        parts += told or [f"{change.path}: {change.what}\n"]
    return "".join(parts)
