"""Every key of the settings, read off the models, and what is said of one that can not be used."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticUndefined

from daruma.state.errors import DarumaError
from daruma.state.settings._tools import unpacked_servers

# --- Every key with its type, default, range and meaning.

PREFIX: Final = "DARUMA_"
"""What the environment variables of settings begin with."""

NAME: Final = "NAME"
"""Stands in a path for a name that the user gives."""

_WORDS: Final[dict[Any, str]] = {
    str: "text",
    int: "integer",
    float: "number",
    bool: "true or false",
    NoneType: "null",
}
_BOUNDS: Final = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


@dataclass(frozen=True)
class SettingsKey:
    """One key. ``default`` is JSON, empty for a key that has to be given.

    ``variable`` is the environment variable that sets it, empty for a key under a name of the
    user's; one of a ``is_json`` type holds JSON.
    """

    path: str
    type: str
    default: str
    range: str
    description: str
    variable: str
    is_json: bool = False


@dataclass(frozen=True)
class Heading:
    """A section, with what it is about."""

    path: str
    description: str
    keys: tuple[SettingsKey, ...]


def sections(model: type[BaseModel], path: str = "") -> Iterator[Heading]:
    """Yield all sections in their order, each before those within it; the first has no path."""
    inner = {name: section_in(field.annotation) for name, field in model.model_fields.items()}
    own = tuple(
        _key(f"{path}{name}", field)
        for name, field in model.model_fields.items()
        if inner[name] is None or get_origin(field.annotation) is dict
    )
    about = (model.__doc__ or "").split("\n\n")[0].split(" Raises ")[0].strip()
    yield Heading(path.removesuffix("."), about, own)
    for name, section in inner.items():
        if section:
            by_name = get_origin(model.model_fields[name].annotation) is dict
            named = f".{NAME}" if by_name else ""
            yield from sections(section, f"{path}{name}{named}.")


def settings_keys(model: type[BaseModel]) -> list[SettingsKey]:
    """Return all keys of the settings."""
    return [key for section in sections(model) for key in section.keys]


def _key(path: str, field: FieldInfo) -> SettingsKey:
    kind = _type(field.annotation)
    value = field.get_default(call_default_factory=True, validated_data={})
    return SettingsKey(
        path=path,
        type=kind,
        default="" if value is PydanticUndefined else json.dumps(value, ensure_ascii=False),
        range=_range(field),
        description=field.description or "",
        variable="" if NAME in path.split(".") else PREFIX + path.upper().replace(".", "__"),
        is_json=kind.startswith(("list", "names")),
    )


def _range(field: FieldInfo) -> str:
    """Return the bounds of a value, as in ``≥ 1, ≤ 3``."""
    given = [
        f"{sign} {bound:g}"
        for each in field.metadata
        for name, sign in _BOUNDS.items()
        if (bound := getattr(each, name, None)) is not None
    ]
    shortest = [each.min_length for each in field.metadata if getattr(each, "min_length", 0)]
    return ", ".join(given + [f"{n} character at least" for n in shortest])


def _type(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type(arguments[0])
    if origin is Literal:
        return " or ".join(map(str, arguments))
    if origin in (Union, UnionType):
        return " or ".join(_type(each) for each in arguments)
    if origin is tuple:
        return f"list of {_type(arguments[0])}"
    if origin is dict:
        return f"names to {_type(arguments[1])}"
    return _WORDS.get(annotation) or f"a section of {annotation.__name__}"


def section_in(annotation: Any) -> type[BaseModel] | None:
    """Return the section that a field of a type holds, by itself or by names; None for none."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (section_in(argument) for argument in get_args(annotation))
    return next((section for section in found if section), None)


# --- A validation error of the settings as one clear line.

_SERVERS: Final = ("tools", "mcp_servers")

_OF_SECTIONS: Final = ("model_type", "dict_type", "model_attributes_type")
"""Of an error: what should be a section, or hold names, is something else."""

_MOVED: Final = {
    "verification.max_reflections": "; the one limit on reflections is budgets.reflect",
    "mcpServers": "; MCP servers stand in tools.mcp_servers, such a file can be put there whole",
}
"""What became of settings that were known once, or are known elsewhere."""

_OF_OTHERS: Final = {
    **dict.fromkeys(
        ("autoApprove", "alwaysAllow", "trust"),
        "; what runs unasked is said by tools.policy: {mcp__SERVER__TOOL: allow}",
    ),
    **dict.fromkeys(("disabled", "enabled"), "; leave out a server that is not to be used"),
    **dict.fromkeys(("timeout", "timeoutMs"), "; the limit of a call is tools.timeout"),
    **dict.fromkeys(
        ("disabledTools", "enabledTools", "includeTools", "excludeTools", "tools"),
        "; which tools there are is said by tools.policy: {mcp__SERVER__TOOL: deny}",
    ),
    **dict.fromkeys(("serverUrl", "httpUrl"), "; write url"),
    "envFile": "; name the variables in env, as ${NAME}",
}
"""Keys that other programs have for an MCP server."""


class SettingsError(DarumaError):
    """Raised when settings can not be used; says which key, why, and the nearest known one."""


def explain(error: ValidationError, model: type[BaseModel], given: object) -> str:
    """Say what is wrong with the first key that is, and how many others there are."""
    problems = error.errors(include_url=False)
    problems.sort(key=lambda problem: problem["type"] != "extra_forbidden")
    paths = list(dict.fromkeys(_written(problem["loc"], given) for problem in problems))
    first, key = problems[0], ".".join(paths[0]) or "the settings"
    of_server = first["loc"][:2] == _SERVERS
    if first["type"] == "extra_forbidden":
        known = _MOVED.get(key) or (_OF_OTHERS.get(paths[0][-1]) if of_server else None)
        text = f"unknown setting {key!r}{known or _nearest(paths[0], model)}"
    elif first["type"] in _OF_SECTIONS:
        keys = f"keys such as {', '.join([*section_at(paths[0], model).model_fields][:3])}"
        below = "names with values" if first["type"] == "dict_type" else keys
        text = f"setting {key!r} holds {below}: write them below it, or leave it out"
        text += "" if of_server else f" (given: {first['input']!r:.100})"
    else:
        wrong = first["msg"].removeprefix("Value error, ")
        holds_keys = of_server or "extra" in first["loc"]  # not to be quoted (SE-08)
        given_as = "" if holds_keys else f" (given: {first['input']!r})"
        text = f"setting {key!r}: {wrong}{given_as}{_meant(first)}"
    return text if len(paths) == 1 else f"{text}; and {len(paths) - 1} more"


def _meant(problem: ErrorDetails) -> str:
    """Name the nearest of the words that a setting can be, or that its keys can be."""
    known = re.findall(r"'([^']+)'", problem.get("ctx", {}).get("expected", ""))
    close = get_close_matches(str(problem["input"]), known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""


def _written(path: Sequence[int | str], given: object) -> tuple[str, ...]:
    """Return a path as the user wrote it, without the names of the types that were tried."""
    keys: list[str] = []
    for part in path:
        if keys[-2:] == [*_SERVERS]:
            given = unpacked_servers(given)
        if isinstance(given, Mapping) and part in given:
            given = given[part]
            keys.append(str(part))
    return tuple(keys)


def _nearest(path: Sequence[str], model: type[BaseModel]) -> str:
    """Name the key that was probably meant: the same word elsewhere, or one like it here."""
    if "." in path[-1]:
        sections = path[-1].split(".")
        return f"; write it as {': {'.join(sections)}: ...{'}' * (len(sections) - 1)}"
    known = {name.casefold(): name for name in section_at(path[:-1], model).model_fields}
    name = path[-1].casefold().replace("-", "_")
    elsewhere = "" if name in known else _elsewhere(name, model)
    close = [known[each] for each in get_close_matches(name, known, n=1, cutoff=0.6)]
    if meant := elsewhere or next(iter(close), ""):
        return f"; did you mean {meant!r}?"
    return f"; known here: {', '.join(known.values())}"


def _elsewhere(name: str, model: type[BaseModel]) -> str:
    """Return the path of the one key, of those least deep, that ends so; empty for none."""
    paths = [key.path for key in settings_keys(model) if f".{key.path}".endswith(f".{name}")]
    least = min((path.count(".") for path in paths), default=0)
    found = [path for path in paths if path.count(".") == least]
    return found[0] if len(found) == 1 else ""


def section_at(path: Sequence[str], model: type[BaseModel]) -> type[BaseModel]:
    """Return the section of the settings that a path of keys leads to."""
    for part in path:
        if part in model.model_fields:  # else it is a name that the user gave, such as a tool's
            model = section_in(model.model_fields[part].annotation) or model
    return model
