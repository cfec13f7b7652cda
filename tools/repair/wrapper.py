"""A call inside the arguments of a call: its own arguments are what was meant."""

from collections.abc import Mapping
from typing import Any, Final

from daruma.tools.repair.conversion import CONVERSIONS
from daruma.tools.repair.outcome import Unreadable
from daruma.tools.repair.schema import properties, same_word, takes_any_key
from daruma.tools.tool import Tool

ARGUMENTS: Final = frozenset(
    {"arguments", "args", "parameters", "params", "input", "tool_input", "kwargs"}
)
NAMES: Final = frozenset({"name", "tool", "tool_name", "function"})
MARKS: Final = frozenset({"id", "type"})


def unwrapped(args: Mapping[str, Any], tool: Tool) -> dict[str, Any] | None:
    """Return the arguments inside, None where there is no wrapper that the schema rules out.

    Raises :class:`Unreadable` where the call inside names another tool.
    """
    inside = [key for key in args if key in ARGUMENTS]
    names = [key for key in args if key in NAMES]
    known = properties(tool.parameters)
    rest = args.keys() - ARGUMENTS - NAMES - MARKS
    free = not known and tool.parameters.get("additionalProperties") is not False
    if free or takes_any_key(tool.parameters) or rest or known.keys() & args.keys():
        return None
    if len(inside) != 1 or len(names) > 1:
        return None
    name = args[names[0]] if names else tool.name
    if not isinstance(name, str) or same_word(name) != same_word(tool.name):
        raise Unreadable(f"the arguments hold a call of another tool, {name!r:.60}")
    return _object(args[inside[0]])


def _object(value: Any) -> dict[str, Any] | None:
    decoded = CONVERSIONS["object"](value)
    found = decoded[0] if decoded else value
    return found if isinstance(found, dict) else None
