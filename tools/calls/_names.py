"""Which tool a model means by a name (TL-04), and names that the build refuses (TL-05)."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from daruma.state.errors import DarumaError
from daruma.tools.calls._results import blank
from daruma.tools.calls._tool import Tool

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
    requested: str,
    visible: Collection[str],
    *,
    aliases: Mapping[str, str],
    normalize: bool,
) -> ResolvedName:
    """Find the visible tool that is meant: exactly, by an alias, then by the normalised name.

    ``aliases`` are the user's and go before the built-in ones. ``normalize`` also lets an alias be
    spelt otherwise and takes off namespaces (``functions.``), the name as a whole being tried
    first. Where two tools could be meant, none is: nothing resolves to a tool outside ``visible``.
    """
    if blank(requested):
        return ResolvedName(requested, "missing")
    if requested in visible:
        return ResolvedName(requested, "exact")
    for spelling in _spellings(requested) if normalize else (requested,):
        found = _candidates(spelling, visible, aliases, normalize=normalize)
        if found:
            return _only(found, requested, whole=spelling == requested)
    return ResolvedName(requested, "unknown")


def _spellings(requested: str) -> Iterator[str]:
    """Yield the name as it is, then without the namespaces before it, one after the other."""
    yield requested
    for _ in range(_MAX_NAMESPACES):
        prefix = _NAMESPACE.match(requested)
        if prefix is None:
            return
        requested = requested[prefix.end() :]
        yield requested


def _only(found: Mapping[str, How], requested: str, *, whole: bool) -> ResolvedName:
    if len(found) > 1 or "unknown" in found.values():
        return ResolvedName(requested, "unknown")
    ((name, how),) = found.items()
    return ResolvedName(name, how if whole or how == "alias" else "normalized")


def _candidates(
    spelling: str, visible: Collection[str], aliases: Mapping[str, str], *, normalize: bool
) -> dict[str, How]:
    """Return the names that a spelling may stand for, and how; ``unknown`` for a hidden one."""
    if spelling in visible:
        return {spelling: "exact"}
    table = _table(visible, aliases, normalize=normalize)
    if spelling in table:
        return _led_to({table[spelling]}, visible)
    key = name_key(spelling) if normalize else ""
    if not key:
        return {}
    targets = {name for alias, name in table.items() if name_key(alias) == key}
    alike: dict[str, How] = {name: "normalized" for name in visible if name_key(name) == key}
    return _led_to(targets, visible) | alike


def _table(
    visible: Collection[str], aliases: Mapping[str, str], *, normalize: bool
) -> dict[str, str]:
    """Return the user's aliases, and the built-in ones that they leave room for."""
    own = {alias: name for alias, name in aliases.items() if alias != name}
    taken = {name_key(alias) if normalize else alias for alias in own}
    builtin = {
        alias: name
        for alias, name in BUILTIN_ALIASES.items()
        if name in visible and (name_key(alias) if normalize else alias) not in taken
    }
    return builtin | own


def _led_to(targets: set[str], visible: Collection[str]) -> dict[str, How]:
    return {name: "alias" if name in visible else "unknown" for name in targets}


# --- Names that could be read as two different tools: refused when the graph is built (TL-05).
# Pure.
#
# With normalisation on, names are compared as they are read: by their key.


class ToolNameConflictError(DarumaError):
    """Raised when a name could mean two tools; names both, and where they come from."""


def check_names(tools: Iterable[Tool], *, normalize: bool) -> None:
    """Raise :class:`ToolNameConflictError` for two tools of one name, or of one key."""
    seen: dict[str, Tool] = {}
    for tool in tools:
        key = (normalize and name_key(tool.name)) or tool.name
        other = seen.setdefault(key, tool)
        if other is tool:
            continue
        if other.name == tool.name:
            said = f"two tools are named {tool.name!r}: {_place(other)} and {_place(tool)}"
            raise ToolNameConflictError(f"{said}; rename one")
        said = f"the tools {_told(other)} and {_told(tool)} have names that are read as one"
        raise ToolNameConflictError(f"{said}; rename one, or set tools.normalize_names to false")


def check_aliases(tools: Iterable[Tool], aliases: Mapping[str, str], *, normalize: bool) -> None:
    """Raise :class:`ToolNameConflictError` for an alias that hides a tool.

    That is one written like a tool's own name and leading to another; a tool's other spelling
    that leads to the tool itself is superfluous, and harmless.
    """
    tools = list(tools)
    for alias, name in aliases.items():
        for tool in tools:
            if name not in (alias, tool.name) and _same(alias, tool.name, normalize=normalize):
                raise ToolNameConflictError(
                    f"tools.name_aliases: the alias {alias!r} for {name!r} is the name of the "
                    f"tool {_told(tool)}; take the alias away, or rename the tool"
                )


def _same(alias: str, name: str, *, normalize: bool) -> bool:
    return alias == name or (normalize and name_key(alias) == name_key(name))


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
        while (target := _target(tools[path[-1]])) is not None:
            if target not in tools:
                raise PromotionRefused(
                    f"the tool {path[-1]!r} is promoted to {target!r}, and there is no such tool: "
                    "pass it in too, or correct promote_to"
                )
            if target in path:
                circle = " → ".join([*path, target])
                raise PromotionRefused(f"tools are promoted in a circle: {circle}; break it")
            path.append(target)


def _target(tool: Tool) -> str | None:
    return tool.canonical.promote_to if tool.canonical else None
