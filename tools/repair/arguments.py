"""The rules rung (TL-10): what a call's arguments certainly meant, without asking anyone."""

from collections.abc import Mapping
from typing import Any, Final

from daruma.tools.repair.cut import lost_nothing
from daruma.tools.repair.equality import same
from daruma.tools.repair.fitting import fitted
from daruma.tools.repair.outcome import CutOff, Refused, Repaired, Unreadable
from daruma.tools.repair.reader import DEEPEST
from daruma.tools.repair.reading import Reading
from daruma.tools.repair.schema import misfit, properties, takes_any_key
from daruma.tools.repair.texts import readings
from daruma.tools.repair.wrapper import unwrapped
from daruma.tools.tool import Tool

NOT_AN_OBJECT: Final = "not an object: "
NOTHING: Final = "nothing"
"""How the model client hands on arguments that are JSON and no object, and no text at all."""


AGAIN: Final = "give the call again, with less in it"


def repaired_text(raw: str, tool: Tool, *, max_bytes: int) -> Repaired | Refused:
    """Return what a text of arguments certainly means, or why that can not be said.

    Every rung is exact: each character of the text is accounted for, and the result fits the
    tool's schema. A text that ends early is closed only for a tool without effects, and only
    where nothing but the brackets can be missing.
    """
    if len(raw.encode(errors="replace")) > max_bytes:
        reason = f"the arguments are larger than {max_bytes} bytes: {AGAIN}"
        return Refused("too_large", reason)
    text = raw.strip().removeprefix(NOT_AN_OBJECT)
    names = frozenset(key.lower() for key in properties(tool.parameters))
    try:
        found = readings("" if text == NOTHING else text, names)
        return _agreed([_fit(reading, tool) for reading in found])
    except CutOff as error:
        return Refused("cut_off", f"{error}: the call was cut off: {AGAIN}")
    except Unreadable as error:
        return Refused("invalid_json", f"the arguments are not valid JSON: {error}")


def repaired_args(args: Mapping[str, Any], tool: Tool) -> Repaired | Refused:
    """Return arguments that fit the tool's schema by steps that lose nothing, or why none do.

    The steps are named in :mod:`daruma.tools.repair.conversion` and ``fitting``; no key is
    dropped, but for a null that an optional property does not take.
    """
    if _too_deep(args):
        return Refused("invalid_args", f"$: nested more than {DEEPEST} levels deep")
    try:
        inner = unwrapped(args, tool)
    except Unreadable as error:
        return Refused("invalid_args", f"$: {error}")
    if inner is not None and isinstance(found := _fitting(inner, tool), Repaired):
        return Repaired(found.args, ("wrapper", *found.rungs))
    return _fitting(dict(args), tool)


def _fitting(args: dict[str, Any], tool: Tool) -> Repaired | Refused:
    schema = tool.parameters
    try:
        grown = fitted(args, schema, schema)
    except Unreadable as error:
        return Refused("invalid_args", misfit(args, schema, schema) or f"$: {error}")
    problem = misfit(grown.value, schema, schema)
    if problem is not None:
        return Refused("invalid_args", problem)
    return Repaired(grown.value, grown.rungs)


def _fit(reading: Reading, tool: Tool) -> Repaired | Refused:
    if reading.unclosed:
        if tool.effect != "none" or "comments" in reading.rungs:
            raise CutOff("the arguments end before their closing bracket")
        if not lost_nothing(reading.value, reading.unclosed, tool.parameters):
            raise CutOff("the arguments end where more could follow")
        return Repaired(reading.value, (*reading.rungs, "missing closing brackets"))
    found = repaired_args(reading.value, tool)
    if isinstance(found, Refused):
        return found
    schema = tool.parameters
    strange = found.args.keys() - properties(schema).keys()
    if reading.rungs and strange and properties(schema) and not takes_any_key(schema):
        return Refused("invalid_args", f"$: {min(strange)!r:.60} is not an argument of {tool.name}")
    return Repaired(found.args, (*reading.rungs, *found.rungs))


def _agreed(found: list[Repaired | Refused]) -> Repaired | Refused:
    fits = [each for each in found if isinstance(each, Repaired)]
    if not fits:
        return found[0]
    if any(not same(each.args, fits[0].args) for each in fits[1:]):
        raise Unreadable("they can be read in more than one way")
    return fits[0]


def _too_deep(args: Mapping[str, Any]) -> bool:
    level: list[Any] = [args]
    for _ in range(DEEPEST):
        below = [list(each.values() if isinstance(each, Mapping) else each) for each in level]
        level = [each for items in below for each in items if isinstance(each, (Mapping, list))]
        if not level:
            return False
    return True
