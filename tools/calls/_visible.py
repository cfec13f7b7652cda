"""Which tools a model is shown (TL-06), and which of them it means by a name (TL-04, TL-05)."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Literal

from daruma.state.calls import ToolTask
from daruma.state.conversation import Clarification
from daruma.state.errors import DarumaError
from daruma.state.settings import Tools
from daruma.state.text import is_blank
from daruma.tools.calls._tool import Tool

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
