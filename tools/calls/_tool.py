"""A tool, wherever it comes from; its calls in canonical form; which tools a model is shown."""

import json
import re
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeVar

from langgraph.store.base import BaseStore
from pydantic import BaseModel, ConfigDict, ValidationError

from daruma.state.calls import ToolTask
from daruma.state.conversation import Clarification
from daruma.state.errors import DarumaError
from daruma.state.events import Event, unheard
from daruma.state.settings import Settings, Tools
from daruma.state.text import digest, is_blank
from daruma.tools.calls._results import Outputs
from daruma.tools.calls._schema import SchemaCheck, SchemaUnreadable, tighten
from daruma.tools.errors import ToolError
from daruma.tools.files import EditHistory, Workspace
from daruma.tools.sandbox import Sandbox, SandboxUnavailable, open_best

# --- The one form a call is stored in: declared argument aliases and promotions applied. Pure.
#
# It comes before the schema check, approvals and questions, so that whatever stores a call, or goes
# on with it later, has canonical arguments (TL-19).

DateKind = Literal["date", "time"]


@dataclass(frozen=True)
class Canonical:
    """What a tool declares: other names of its arguments, and when another tool is meant.

    The call becomes one of ``promote_to`` as soon as one argument of ``promote_when`` is given.
    ``dates`` are arguments that come in ISO form: a ``date`` names a day, and may have a time, a
    ``time`` may be either or both. ``ask_for`` holds the question for each argument that the user
    is asked for where it is missing, or can not be read.
    """

    argument_aliases: Mapping[str, str] = field(default_factory=dict)
    promote_to: str | None = None
    promote_when: tuple[str, ...] = ()
    dates: Mapping[str, DateKind] = field(default_factory=dict)
    ask_for: Mapping[str, str] = field(default_factory=dict)


class CanonicalCall(NamedTuple):
    """A call in its canonical form, and one line for every change that led there.

    ``unread`` are the dates among ``args`` that say no day or time beyond doubt.
    """

    name: str
    args: dict[str, Any]
    changes: tuple[str, ...]
    unread: tuple[str, ...] = ()


def canonical_call(
    name: str, args: Mapping[str, Any], tools: Sequence["Tool"], now: datetime | None = None
) -> CanonicalCall:
    """Bring a call into its canonical form; ``tools`` are those that the model is shown.

    A call is promoted to a visible tool only. Its arguments go over as they are, and are then read
    with the aliases of the tool it has become; last its dates are, from ``now`` on, if it is given.
    """
    if not any(tool.canonical for tool in tools):
        return CanonicalCall(name, dict(args), ())
    declared = {tool.name: tool.canonical for tool in tools}
    changes: list[str] = []
    passed: set[str] = set()
    args = dict(args)
    while name not in passed and (canonical := declared.get(name)) is not None:
        passed.add(name)
        renamed = _renames(args, canonical.argument_aliases)
        changes += [f"{name}: {alias} is {key}" for alias, key in renamed.items()]
        args = {renamed.get(key, key): value for key, value in args.items()}
        given = [key for key in canonical.promote_when if args.get(key) not in (None, "")]
        if given and canonical.promote_to in declared:
            changes.append(f"{name} with {given[0]} is {canonical.promote_to}")
            name = canonical.promote_to
    read = _moments(declared.get(name), args, now) if now else {}
    moments = {key: moment for key, moment in read.items() if moment not in (None, args[key])}
    changes += [f"{name}: {key} {args[key]:.80} is {moment}" for key, moment in moments.items()]
    unread = tuple(key for key, moment in read.items() if moment is None)
    return CanonicalCall(name, args | moments, tuple(changes), unread)


def _renames(args: Mapping[str, Any], aliases: Mapping[str, str]) -> dict[str, str]:
    """Return the aliases to replace: none whose argument would then have two different values."""
    used = {alias: key for alias, key in aliases.items() if alias in args and alias != key}
    values: dict[str, set[str]] = {}
    for name, value in args.items():  # compared as JSON, where true is not 1
        written = json.dumps(value, sort_keys=True, default=repr)
        values.setdefault(used.get(name, name), set()).add(written)
    return {alias: key for alias, key in used.items() if len(values[key]) == 1}


def _moments(
    canonical: Canonical | None, args: Mapping[str, Any], now: datetime
) -> dict[str, str | None]:
    """Return the dates of a call in ISO form, None for what is in doubt."""
    if canonical is None or not canonical.dates:
        return {}
    from daruma.tools.dates import has_day, moment_in  # rarely needed

    found: dict[str, str | None] = {}
    for key, kind in canonical.dates.items():
        said = args.get(key)
        if isinstance(said, str) and said.strip():
            moment = moment_in(said, now)
            found[key] = moment if moment and (kind == "time" or has_day(moment)) else None
    return found


# --- What a tool is to Daruma, wherever it comes from.

Effect = Literal["none", "workspace", "external"]
"""What running a tool changes: nothing, files of the workspace, or the world outside."""

Toolset = Literal["workspace", "memory", "skills", "assistant", "knowledge", "planning", "team"]
"""What a tool that ships belongs to; each is shown where it can be used, or is asked for."""

Origin = Literal["builtin", "application", "mcp"]
"""Where a tool comes from: Daruma, the application that built the graph, or an MCP server."""


@dataclass(frozen=True)
class Surroundings:
    """What a tool may use of the run it is called in. ``timeout`` is in seconds, for commands.

    ``store`` is the graph's, None where it has none; ``memory_owner`` says whose memories the task
    works with; ``call_id`` is the call's; ``expert`` is the team member that calls; ``now`` gives
    Unix time in seconds. ``read_only`` lets a command change nothing: nobody was asked about it.
    """

    workspace: Workspace | None = None
    history: EditHistory | None = None
    timeout: float = 120.0
    open_sandbox: Callable[[], Awaitable[Sandbox]] = open_best
    emit: Callable[[Event], None] = unheard
    outputs: Outputs = field(default_factory=Outputs)
    store: BaseStore | None = None
    settings: Settings = field(default_factory=Settings)
    thread_id: str = "local"
    task_id: str = ""
    call_id: str = ""
    expert: str = ""
    memory_owner: str = "default"
    now: Callable[[], float] = time.time
    read_only: bool = False

    def needs_store(self) -> BaseStore:
        """Return the store. Raises :class:`ToolError` for a graph that has none."""
        if self.store is None:
            raise ToolError("nothing can be kept here: the graph was built without a store")
        return self.store

    async def sandbox(self) -> Sandbox:
        """Return what commands run in, opened when first asked for.

        Raises :class:`ToolError` if what the settings require is not to be had.
        """
        try:
            return await self.open_sandbox()
        except SandboxUnavailable as error:
            raise ToolError(f"sandbox_violation: {error}") from None

    def needs_workspace(self) -> Workspace:
        """Return the workspace. Raises :class:`ToolError` for a task that has none."""
        if self.workspace is None:
            raise ToolError("this needs a workspace, and the task has none")
        return self.workspace

    def needs_history(self) -> EditHistory:
        """Return what remembers edits. Raises :class:`ToolError` for a task without workspace."""
        if self.history is None:
            raise ToolError("this needs a workspace, and the task has none")
        return self.history


@dataclass(frozen=True)
class Tool:
    """One tool: what the model is shown, and what runs.

    ``parameters`` is a JSON schema, tightened when the tool is made: what the model is shown is
    what its calls are checked against. ``run`` gets the arguments and returns the text for the
    model; it raises :class:`daruma.tools.errors.ToolError` for what the model should hear of.
    ``source`` says in a few words where the tool comes from, for people. An ``idempotent`` tool may
    be called again with the same arguments: the effect is that of one call. ``idempotency_key`` is
    the argument by which a service knows a call that is made again; the model is not shown it.
    ``blocking`` says that ``run`` only waits for a thread, and ends at once when it is cancelled.
    ``server`` is the command or the address of the MCP server that it comes from, ``server_rest``
    what else of that is agreed to, without values; ``look_again`` asks that server for the tool as
    it is now (SE-06). A call with the arguments ``reads_with`` only reads, whatever the
    ``effect`` of others; empty for a tool without such calls.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    run: Callable[[Mapping[str, Any], Surroundings], Awaitable[str]]
    effect: Effect = "external"
    origin: Origin = "application"
    toolset: Toolset | None = None
    idempotent: bool = False
    idempotency_key: str = ""
    canonical: Canonical | None = None
    source: str = ""
    blocking: bool = False
    server: tuple[str, ...] = ()
    server_rest: tuple[str, ...] = ()
    look_again: Callable[[], Awaitable["Tool"]] | None = None
    reads_with: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Tighten the schema, once."""
        object.__setattr__(self, "parameters", tighten(self.parameters))

    @property
    def reads(self) -> bool:
        """Whether calls of it change nothing, or some of them (``reads_with``)."""
        return self.effect == "none" or bool(self.reads_with)

    def only_reads(self, args: Mapping[str, Any]) -> bool:
        """Whether a call changes nothing, by what the tool declares."""
        if self.effect == "none" or not self.reads_with:
            return self.effect == "none"
        return self.reads_with.items() <= dict(args).items()

    @property
    def repeatable(self) -> bool:
        """Whether a call whose outcome is not known can simply be made again."""
        return self.idempotent or bool(self.idempotency_key)

    @property
    def builtin(self) -> bool:
        """Whether the tool ships with Daruma."""
        return self.origin == "builtin"

    @cached_property
    def definition(self) -> str:
        """The digest of all that an MCP server says of its tool; empty for any other."""
        told = [self.name, self.description, self.parameters, self.effect, self.idempotent]
        server = [self.server, self.server_rest]
        return digest([*told, *server]) if self.origin == "mcp" else ""

    def misfit(self, args: Mapping[str, Any]) -> str | None:
        """Say what of some arguments does not fit the schema, None if all does."""
        try:
            return self._check.problem_of(args)
        except SchemaUnreadable:
            return None  # the tool's own fault: it will say itself what it can not take

    @cached_property
    def _check(self) -> SchemaCheck:
        return SchemaCheck(self.parameters)

    def as_function(self) -> dict[str, Any]:
        """Return the tool in the form that chat models are given."""
        told = {"name": self.name, "description": self.description}
        return {"type": "function", "function": {**told, "parameters": dict(self.parameters)}}


# --- Making a tool that ships with Daruma.

Args = TypeVar("Args", bound=BaseModel)


class ToolArgs(BaseModel):
    """What a tool that ships is called with; a docstring of its own tells the model of the tool."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def shipped_tool(
    name: str,
    args_type: type[Args],
    effect: Effect,
    run: Callable[[Args, Surroundings], Awaitable[str]],
    *,
    toolset: Toolset = "workspace",
    idempotent: bool = False,
    reads_with: Mapping[str, Any] | None = None,
) -> Tool:
    """Make a tool that ships of a function; its arguments are a model whose docstring tells of it.

    The model is shown the schema of ``args_type``; ``run`` is given one that was validated.
    """

    async def checked(args: Mapping[str, Any], surroundings: Surroundings) -> str:
        try:
            read = args_type.model_validate(dict(args))
        except ValidationError as error:
            found = [(".".join(map(str, each["loc"])), each["msg"]) for each in error.errors()]
            problems = "; ".join(f"{where}: {what}" for where, what in found)
            raise ToolError(f"invalid arguments: {problems}") from None
        return await run(read, surroundings)

    schema = args_type.model_json_schema()
    return Tool(
        name=name,
        description=schema.pop("description", ""),
        parameters=schema,
        run=checked,
        effect=effect,
        origin="builtin",
        toolset=toolset,
        idempotent=idempotent,
        reads_with=reads_with or {},
    )


# --- What a task's model is offered: the tools it is shown, and the rules for calling them.


@dataclass(frozen=True)
class VisibleTools:
    """The tools that are shown, the names of those that are there but not shown, the settings.

    Dates are read as of ``now``, where it is given: where a tool that is shown takes some.
    ``asks`` says that the user can be asked for what a call lacks; calls go on with what is in
    ``resuming``. ``unconfined`` says that commands run at sandbox level none, ``reads_first`` that
    they can be run read-only. ``ran_as`` are the definitions that MCP tools had when they ran on
    the thread.
    """

    tools: tuple[Tool, ...] = ()
    hidden: frozenset[str] = frozenset()
    settings: Tools = field(default_factory=Tools)
    now: datetime | None = None
    asks: bool = False
    resuming: tuple[Clarification, ...] = ()
    unconfined: bool = False
    reads_first: bool = False
    ran_as: Mapping[str, str] = field(default_factory=dict)

    def find(self, name: str) -> Tool | None:
        """Return the shown tool of a name. What is not shown can not be called (TL-06)."""
        return self._named.get(name)

    def tool(self, name: str) -> Tool:
        """Return the shown tool of a name that is known to be shown."""
        return self._named[name]

    def after(self, task: ToolTask) -> "VisibleTools":
        """Return what the next call of an answer is offered: no two go on with the same."""
        rest = tuple(each for each in self.resuming if each.call_id != task.continues)
        return replace(self, resuming=rest) if len(rest) < len(self.resuming) else self

    def cautious(self, tool: Tool) -> Tool:
        """Return a tool with the effect of what its calls may be promoted to.

        Its calls are repaired with the care that such an effect asks for.
        """
        target = self.find(tool.canonical.promote_to or "") if tool.canonical else None
        if tool.effect != "none" or target is None:
            return tool
        return replace(tool, effect=self.cautious(target).effect)

    @cached_property
    def _named(self) -> Mapping[str, Tool]:
        return {tool.name: tool for tool in reversed(self.tools)}  # the first of a name counts

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the tools that are shown."""
        return tuple(tool.name for tool in self.tools)


# --- Which tool a model means by the name it wrote. Pure.

How = Literal["exact", "alias", "normalized", "unknown", "missing"]

BUILTIN_ALIASES = {
    "memory.search": "memory_search",
    "memory.store": "memory_store",
    "memory.forget": "memory_forget",
    "skills.list": "skills_list",
    "skills.load": "skills_load",
    "skills.read_file": "skills_read_file",
}

_SEPARATORS = re.compile(r"(?P<between_digits>(?<=[0-9])[\s._-]+(?=[0-9]))|[\s._-]+", re.ASCII)
_NAMESPACE = re.compile(r"\s*(?:functions|tools|default_api|multi_tool_use)[.:]+", re.IGNORECASE)
_MAX_NAMESPACES = 3


@dataclass(frozen=True)
class ResolvedName:
    """The tool's name, or the requested one where ``how`` is ``unknown`` or ``missing``."""

    name: str
    how: How


def name_key(name: str) -> str:
    """Return what all spellings of a name have in common: camel, snake, dots, hyphens, spaces.

    A separator between two digits stays, as it tells ``v1_2`` from ``v12``; a name with a character
    outside ASCII is its own key, so that no look-alike passes for another.
    """
    if not name.isascii():
        return name
    return _SEPARATORS.sub(lambda found: "_" if found["between_digits"] else "", name).lower()


def resolve_name(
    requested: str, visible: Collection[str], *, aliases: Mapping[str, str], normalize: bool
) -> ResolvedName:
    """Find the visible tool that is meant: exactly, by an alias, then by the normalised name.

    ``aliases`` are the user's and go before the built-in ones. ``normalize`` also lets an alias be
    spelt otherwise and takes off namespaces (``functions.``), the name as a whole being tried
    first. Where two tools could be meant, none is: nothing resolves to a tool outside ``visible``.
    """
    if is_blank(requested):
        return ResolvedName(requested, "missing")
    key = name_key if normalize else str
    own = {alias: name for alias, name in aliases.items() if alias != name}
    taken = set(map(key, own))
    builtin = BUILTIN_ALIASES.items()
    left = {alias: name for alias, name in builtin if name in visible and key(alias) not in taken}
    spelling, how = requested, None
    for _ in range(1 + _MAX_NAMESPACES * normalize):
        found = _candidates(spelling, visible, left | own, normalize=normalize)
        if len(found) == 1:
            ((name, how),) = found.items()
        if found:
            break
        prefix = _NAMESPACE.match(spelling)
        if prefix is None:
            break
        spelling = spelling[prefix.end() :]
    if how is None or how == "unknown":
        return ResolvedName(requested, "unknown")
    return ResolvedName(name, how if spelling == requested or how == "alias" else "normalized")


def _candidates(
    spelling: str, visible: Collection[str], aliases: Mapping[str, str], *, normalize: bool
) -> dict[str, How]:
    """Return the names that a spelling may stand for, and how; ``unknown`` for a hidden one."""
    if spelling in visible:
        return {spelling: "exact"}
    key = name_key(spelling) if normalize else ""
    targets, alike = {aliases.get(spelling, "")} - {""}, set[str]()
    if key and not targets:
        targets = {name for alias, name in aliases.items() if name_key(alias) == key}
        alike = {name for name in visible if name_key(name) == key}
    found: dict[str, How] = {n: "alias" if n in visible else "unknown" for n in targets}
    return found | dict.fromkeys(alike, "normalized")


# --- Names that could be read as two different tools: refused when the graph is built (TL-05).
# Pure.
#
# With normalisation on, names are compared as they are read: by their key.


class ToolNameConflictError(DarumaError):
    """Raised when a name could mean two tools; names both, and where they come from."""


def check_names(tools: Collection[Tool], aliases: Mapping[str, str], *, normalize: bool) -> None:
    """Raise :class:`ToolNameConflictError` for names, keys and aliases that could mean two tools.

    An alias must not be written like a tool's own name and lead to another; a tool's other spelling
    that leads to the tool itself is superfluous, and harmless.
    """
    seen: dict[str, Tool] = {}
    for tool in tools:
        other = seen.setdefault((normalize and name_key(tool.name)) or tool.name, tool)
        if other is tool:
            continue
        if other.name == tool.name:
            said = f"two tools are named {tool.name!r}: {_place(other)} and {_place(tool)}"
            raise ToolNameConflictError(f"{said}; rename one")
        said = f"the tools {_told(other)} and {_told(tool)} have names that are read as one"
        raise ToolNameConflictError(f"{said}; rename one, or set tools.normalize_names to false")
    for alias, name in aliases.items():
        for tool in tools:
            same = alias == tool.name or (normalize and name_key(alias) == name_key(tool.name))
            if same and name not in (alias, tool.name):
                raise ToolNameConflictError(
                    f"tools.name_aliases: the alias {alias!r} for {name!r} is the name of the "
                    f"tool {_told(tool)}; take the alias away, or rename the tool"
                )


def _told(tool: Tool) -> str:
    return f"{tool.name!r} ({_place(tool)})"


def _place(tool: Tool) -> str:
    return tool.source or {"builtin": "built in"}.get(tool.origin, tool.origin)


# --- Promotions have to lead somewhere: checked when the graph is built (TL-19). Pure.


class PromotionRefused(DarumaError):
    """Raised when a tool is promoted to one that is not there, or round in a circle."""


def check_promotions(tools: Mapping[str, Tool]) -> None:
    """Raise :class:`PromotionRefused` for a declared promotion that can not be carried out."""
    for name in tools:
        path = [name]
        while (known := tools[path[-1]].canonical) and (target := known.promote_to) is not None:
            if target not in tools:
                raise PromotionRefused(
                    f"the tool {path[-1]!r} is promoted to {target!r}, and there is no such tool: "
                    "pass it in too, or correct promote_to"
                )
            if target in path:
                circle = " → ".join([*path, target])
                raise PromotionRefused(f"tools are promoted in a circle: {circle}; break it")
            path.append(target)
