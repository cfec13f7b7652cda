"""A value made to fit a JSON schema by steps that lose nothing, or not at all."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from daruma.tools.repair.conversion import CONVERSIONS
from daruma.tools.repair.equality import same
from daruma.tools.repair.keys import spelling
from daruma.tools.repair.outcome import Unreadable
from daruma.tools.repair.schema import (
    Schema,
    fixed_values,
    misfit,
    properties,
    same_word,
    takes_any_key,
    type_of,
    types,
    variants,
)

SCALARS: Final = frozenset({"string", "integer", "boolean", "null"})


@dataclass(frozen=True)
class Fitted:
    """A value that fits, and the rungs it took; with none it is the value that was given."""

    value: Any
    rungs: tuple[str, ...] = ()


def fitted(value: Any, schema: Any, root: Schema) -> Fitted:
    """Return the only value that fits. Raises :class:`Unreadable` for none or for several."""
    choices = variants(schema, root)
    if not choices:
        return Fitted(value)
    found = [each for choice in choices for each in _attempts(value, choice, choices, root)]
    exact = [each for each in found if not each.rungs]
    found = exact or found
    if not found:
        raise Unreadable("it does not fit")
    if any(not same(each.value, found[0].value) for each in found[1:]):
        raise Unreadable("it can be made to fit in more than one way")
    return found[0]


def _attempts(value: Any, choice: Schema, choices: list[Schema], root: Schema) -> Iterator[Fitted]:
    for candidate in _of_type(value, choice, choices):
        try:
            grown = _inside(candidate, choice, root)
        except Unreadable:
            continue
        if misfit(grown.value, choice, root) is None:
            yield grown


def _of_type(value: Any, choice: Schema, choices: list[Schema]) -> Iterator[Fitted]:
    """Yield the value itself, or if no variant takes its type, its conversions for this one."""
    if any(_takes_type(value, each) for each in choices):
        yield Fitted(value)
        yield from _respelled(value, choice)
        return
    for name in sorted(types(choice)):
        convert = CONVERSIONS.get(name)
        converted = convert(value) if convert else None
        if converted is not None:
            yield Fitted(converted[0], (converted[1],))


def _takes_type(value: Any, choice: Schema) -> bool:
    taken = types(choice)
    of = type_of(value)
    return not taken or of in taken or (of == "integer" and "number" in taken)


def _respelled(value: Any, choice: Schema) -> Iterator[Fitted]:
    """Yield the one fixed value that differs from a text only in case and separators."""
    fixed = fixed_values(choice)
    if isinstance(value, str) and value not in fixed:
        alike = [v for v in fixed if isinstance(v, str) and same_word(v) == same_word(value)]
        if len(alike) == 1:
            yield Fitted(alike[0], ("value spelling",))


def _inside(given: Fitted, choice: Schema, root: Schema) -> Fitted:
    if isinstance(given.value, dict):
        grown = _object(given.value, choice, root)
    elif isinstance(given.value, list):
        grown = _array(given.value, choice, root)
    else:
        return given
    return Fitted(grown.value, (*given.rungs, *grown.rungs))


def _array(value: list[Any], choice: Schema, root: Schema) -> Fitted:
    if {type_of(each) for each in value} <= SCALARS and misfit(value, choice, root) is None:
        return Fitted(value)
    first = choice.get("prefixItems") or ()
    rest = choice.get("items", {})
    items = [
        fitted(each, first[n] if n < len(first) else rest, root) for n, each in enumerate(value)
    ]
    return Fitted([each.value for each in items], _rungs(items))


def _object(value: Mapping[str, Any], choice: Schema, root: Schema) -> Fitted:
    known = properties(choice)
    spelled = {} if takes_any_key(choice) else spelling(value, known)
    entries: dict[str, Any] = {}
    rungs: list[str] = ["key spelling"] if spelled else []
    for given, each in value.items():
        key = spelled.get(given, given)
        if each is None and key in known and _left_out(key, choice, root):
            rungs.append("null left out")
            continue
        grown = fitted(each, known.get(key, {}), root)
        entries[key] = grown.value
        rungs.extend(grown.rungs)
    return Fitted(entries, tuple(dict.fromkeys(rungs)))


def _left_out(key: str, choice: Schema, root: Schema) -> bool:
    """Whether null can only mean that an optional property is not given."""
    if key in (choice.get("required") or ()):
        return False
    return not any(_takes_type(None, each) for each in variants(properties(choice)[key], root))


def _rungs(items: list[Fitted]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(rung for each in items for rung in each.rungs))
