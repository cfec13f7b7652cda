"""Names that could be read as two different tools: refused when the graph is built (TL-05). Pure.

With normalisation on, names are compared as they are read: by their key.
"""

from collections.abc import Iterable, Mapping

from daruma.state.errors import DarumaError
from daruma.tools.names import name_key
from daruma.tools.tool import Tool


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
