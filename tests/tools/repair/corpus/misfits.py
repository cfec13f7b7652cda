"""The ways in which readable arguments miss their schema, as changes of what was meant."""

import json
from collections.abc import Callable, Iterable
from typing import Any

Args = dict[str, Any]
FREE = ("headers", "location")
"""Objects whose keys are left alone."""


def _each(args: Args, change: Callable[[Any], Any]) -> Iterable[Args]:
    """Yield the arguments with one value changed, for each that the change is for."""
    for key, value in args.items():
        changed = change(value)
        if changed is not None:
            yield {**args, key: changed}


def _as_text(value: Any) -> Any:
    wrong = isinstance(value, (bool, int, float, list, dict))
    return json.dumps(value, ensure_ascii=False) if wrong else None


def _as_python(value: Any) -> Any:
    return repr(value) if isinstance(value, (bool, list, dict)) and value != {} else None


def _as_float(value: Any) -> Any:
    whole = isinstance(value, int) and not isinstance(value, bool) and value < 2**53
    return float(value) if whole else None


def _as_decimal_text(value: Any) -> Any:
    return None if (number := _as_float(value)) is None else str(number)


def _alone(value: Any) -> Any:
    return value[0] if isinstance(value, list) and len(value) == 1 else None


def wrong_types(_: str, args: Args) -> Iterable[Args]:
    """Yield numbers, truth values and lists as texts, and lone values for lists."""
    yield from _each(args, _as_text)
    yield from _each(args, _as_python)
    yield from _each(args, _alone)
    if "timeout" not in args:  # which takes 60.0 as it takes 60
        yield from _each(args, _as_float)
        yield from _each(args, _as_decimal_text)
    texts = {key: _as_text(value) if key not in FREE else value for key, value in args.items()}
    yield {key: args[key] if text is None else text for key, text in texts.items()}
    if "conditions" in args:
        inner = [{**each, "value": str(each["value"])} for each in args["conditions"]]
        yield {**args, "conditions": inner}


def renamed_keys(_: str, args: Args) -> Iterable[Args]:
    """Yield the keys in other cases and with other separators."""
    yield {key.replace("_", "-"): value for key, value in args.items()}
    yield {key.title().replace("_", ""): value for key, value in args.items()}
    yield {key.upper(): value for key, value in args.items()}
    yield {key.replace("_", " "): value for key, value in args.items()}


def respelled_values(_: str, args: Args) -> Iterable[Args]:
    """Yield the values of enumerations in other spellings."""
    for key in ("command", "priority", "status"):
        if key in args and ("path" in args or key != "command"):
            yield {**args, key: args[key].upper()}
            yield {**args, key: args[key].replace("_", "-").capitalize()}


def nulls(tool: str, args: Args) -> Iterable[Args]:
    """Yield null for what was not given and does not take null, or as a text."""
    optional = {
        "create_event": ["duration_minutes", "priority"],
        "query_orders": ["status", "conditions"],
        "search": ["literal", "path"],
        "send_message": ["headers"],
    }
    for key in optional.get(tool, ()):
        if key not in args:
            yield {**args, key: None}
    if args.get("location", "") is None:
        yield {**args, "location": "null"}


MISFITS = {
    "wrong types": wrong_types,
    "renamed keys": renamed_keys,
    "respelled values": respelled_values,
    "nulls": nulls,
}
"""By its class's name: from what was meant to arguments that do not fit."""
