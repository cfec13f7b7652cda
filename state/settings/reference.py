"""Every key of the settings: what it means, what is in force, and the page of it."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from daruma.state.settings import PRESETS, Settings
from daruma.state.settings.sources import FILE, PREFIX, sources

# --- Every key of the settings with its type, default, range and meaning, read off the models.

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
class Key:
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
    keys: tuple[Key, ...]


def sections(model: type[BaseModel] = Settings, path: str = "") -> Iterator[Heading]:
    """Yield all sections in their order, each before those within it; the first has no path."""
    inner = {name: _section(field.annotation) for name, field in model.model_fields.items()}
    own = tuple(
        _key(f"{path}{name}", field)
        for name, field in model.model_fields.items()
        if inner[name] is None or _named(field.annotation)
    )
    yield Heading(path.removesuffix("."), _first_line(model), own)
    for name, section in inner.items():
        if section:
            named = f".{NAME}" if _named(model.model_fields[name].annotation) else ""
            yield from sections(section, f"{path}{name}{named}.")


def keys() -> list[Key]:
    """Return all keys of the settings."""
    return [key for section in sections() for key in section.keys]


def _key(path: str, field: FieldInfo) -> Key:
    kind = _type(field.annotation)
    return Key(
        path=path,
        type=kind,
        default=_default(field),
        range=_range(field),
        description=field.description or "",
        variable="" if NAME in path.split(".") else PREFIX + path.upper().replace(".", "__"),
        is_json=kind.startswith(("list", "names")),
    )


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True, validated_data={})
    return "" if value is PydanticUndefined else json.dumps(value, ensure_ascii=False)


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


def _section(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_section(argument) for argument in get_args(annotation))
    return next((section for section in found if section), None)


def _named(annotation: Any) -> bool:
    return get_origin(annotation) is dict


def _first_line(model: type[BaseModel]) -> str:
    return (model.__doc__ or "").split("\n\n")[0].split(" Raises ")[0].strip()


# --- What is in force here, and where each value comes from.


@dataclass(frozen=True)
class InForce:
    """A key's value as JSON, and its source: default, budgets.preset, daruma.yaml, a variable."""

    key: Key
    value: str
    source: str


def in_force(keys: Iterable[Key], path: str = FILE) -> list[InForce]:
    """Return what holds for keys in the current folder; of those under a name, nothing.

    Raises :class:`~daruma.state.settings.errors.SettingsError` for what can not be used.
    """
    settings = Settings.load(path)
    file, environment = sources(Settings, path)
    return [
        InForce(key, json.dumps(_plain(settings, key), ensure_ascii=False), source)
        for key in keys
        if NAME not in key.path.split(".")
        for source in [_source(key, file.values, environment, settings.budgets.preset)]
    ]


def _source(key: Key, file: Mapping[str, Any], environment: Mapping[str, Any], preset: str) -> str:
    if _holds(environment, key.path):
        return key.variable
    if _holds(file, key.path):
        return FILE
    return "budgets.preset" if tuple(key.path.split(".")) in PRESETS[preset] else "default"


def _holds(values: Any, path: str) -> bool:
    for part in path.split("."):
        if not isinstance(values, Mapping) or part not in values:
            return False
        values = values[part]
    return True


def _plain(settings: Any, key: Key) -> Any:
    for part in key.path.split("."):
        settings = getattr(settings, part)
    return _dumped(settings)


def _dumped(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {str(name): _dumped(each) for name, each in value.items()}
    return [_dumped(each) for each in value] if isinstance(value, tuple) else value


# --- The settings as a page to read, and as a JSON Schema for editors; both generated.

PAGE: Final = "settings.md"
SCHEMA: Final = "settings.schema.json"
ID: Final = "urn:daruma-agent:settings:1"

_TOP: Final = """# Settings

Every key of `daruma.yaml`, generated from the settings themselves by
`python -m daruma.graph.reference_files`. `daruma settings` prints the same, `daruma settings KEY`
one key, and `daruma settings --effective` what is in force and where it comes from.

An environment variable wins over the file. One for a list or for names holds JSON. Editors check
the file, and complete its keys, with this first line:

```
# yaml-language-server: $schema=PATH/settings.schema.json
```
"""


def page() -> str:
    """Return the page in Markdown."""
    return "\n".join([_TOP, *(_page_section(each) for each in sections() if each.keys)])


def schema() -> dict[str, Any]:
    """Return the JSON Schema of ``daruma.yaml``."""
    plain = Settings.model_json_schema()
    top = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": ID}
    return top | plain | {"title": "daruma.yaml"}


def _page_section(section: Heading) -> str:
    rows = [_row(key) for key in section.keys]
    head = ["| key | type | default | range | what it is | variable |", "|---|---|---|---|---|---|"]
    text = " ".join(section.description.split())
    return "\n".join([f"## {section.path or 'daruma.yaml'}", "", text, "", *head, *rows, ""])


def _row(key: Key) -> str:
    cells = (
        f"`{key.path}`",
        key.type,
        f"`{key.default}`" if key.default else "required",
        key.range,
        key.description,
        f"`{key.variable}`" if key.variable else "",
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
