"""Every key of the settings with its type, default, range and meaning, read off the models."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

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
        if inner[name] is None or _named(field.annotation)
    )
    about = (model.__doc__ or "").split("\n\n")[0].split(" Raises ")[0].strip()
    yield Heading(path.removesuffix("."), about, own)
    for name, section in inner.items():
        if section:
            named = f".{NAME}" if _named(model.model_fields[name].annotation) else ""
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


def _named(annotation: Any) -> bool:
    return get_origin(annotation) is dict
