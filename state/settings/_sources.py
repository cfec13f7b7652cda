"""Every key of the settings, read off the models; where their values come from: a file in the
current folder, and the environment above it; and what is said of one that can not be used.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from functools import cached_property
from hashlib import sha256
from itertools import islice
from pathlib import Path
from stat import S_ISREG
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Self, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticUndefined

from daruma.state.errors import DarumaError
from daruma.state.settings._tools import unpacked_servers
from daruma.state.text import NotYaml, read_yaml

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
    said, of_keys = str(first["input"]), not {"extra", "webhook"}.isdisjoint(first["loc"])
    holds_keys = of_server or of_keys or "@" in said or "https://" in said  # not quoted (SE-08)
    if first["type"] == "extra_forbidden":
        known = _MOVED.get(key) or (_OF_OTHERS.get(paths[0][-1]) if of_server else None)
        text = f"unknown setting {key!r}{known or _nearest(paths[0], model)}"
    elif first["type"] in _OF_SECTIONS:
        keys = f"keys such as {', '.join([*section_at(paths[0], model).model_fields][:3])}"
        below = "names with values" if first["type"] == "dict_type" else keys
        text = f"setting {key!r} holds {below}: write them below it, or leave it out"
        text += "" if holds_keys else f" (given: {first['input']!r:.100})"
    else:
        wrong = first["msg"].removeprefix("Value error, ")
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


# --- Where values come from: a file in the current folder, and the environment above it.

NOT_SETTINGS = frozenset(
    {"DARUMA_POSTGRES_URL", "DARUMA_POSTGRES_KEY", "DARUMA_POSTGRES_OUTAGE_SECONDS"}
    | {"DARUMA_DATA_DIR"}
)
"""Variables that say where things are, not how a task runs; other modules read them."""

SETTINGS_FILE: Final = "daruma.yaml"

LARGEST: Final = 1024 * 1024
"""Bytes of a settings file; one with every key has a few thousand."""


def read_plain(path: Path, most: int, flags: int = 0) -> bytes:
    """Read a plain file of at most so many bytes; a pipe is not waited for. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    with os.fdopen(handle, "rb") as file:
        data = file.read(most + 1) if S_ISREG(os.fstat(handle).st_mode) else None
    if data is None or len(data) > most:
        raise OSError(f"it is no plain file of at most {most} bytes")
    return data


@dataclass(frozen=True)
class SettingsFile:
    """A settings file as it was read once, so that what is checked is what is used."""

    path: Path
    data: bytes = b""

    @classmethod
    def of(cls, path: Path) -> Self:
        """Read it; one that is not there says nothing. Raises :class:`SettingsError`."""
        try:
            return cls(path, read_plain(path, LARGEST))
        except FileNotFoundError:
            refuse_misnamed(path)
            return cls(path)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else None
            raise cls(path)._refused(why or str(error)) from None

    @property
    def digest(self) -> str:
        """The digest of what it holds."""
        return sha256(self.data).hexdigest()

    @cached_property
    def text(self) -> str:
        """What it holds, as text."""
        try:
            return self.data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = self.data[: error.start].count(b"\n") + 1
            raise self._refused(f"line {line} is no UTF-8: save it as that") from None

    @cached_property
    def values(self) -> dict[str, Any]:
        """What it says."""
        try:
            content = read_yaml(self.text)
        except NotYaml as error:
            raise self._refused(str(error)) from None
        if content is not None and not isinstance(content, dict):
            kind = type(content).__name__
            raise SettingsError(f"{self.path} has to hold keys and values, not {kind}")
        return content or {}

    def _refused(self, why: str) -> SettingsError:
        return SettingsError(f"{self.path} can not be read: {' '.join(why.split())}")


_FORMATS: Final = frozenset({"yaml", "yml", "toml", "json", "ini", "cfg", "conf", "txt"})
_LOOKED_AT: Final = 1_000


def refuse_misnamed(path: Path) -> None:
    """Refuse a folder whose settings have another name: nobody would read them.

    Raises :class:`SettingsError`.
    """
    try:
        with os.scandir(path.parent) as found:
            names = [each.name for each in islice(found, _LOOKED_AT) if _is_like(each.name, path)]
    except OSError:
        return
    if path.name == SETTINGS_FILE and names:
        raise SettingsError(
            f"{path.parent / min(names)} is not read: settings are YAML in "
            f"{SETTINGS_FILE}; rename it"
        )


def _is_like(name: str, path: Path) -> bool:
    stem, _, rest = name.casefold().lstrip(".").partition(".")
    likely = rest.rpartition(".")[2] in _FORMATS and len(stem) < 2 * len(path.stem)
    return likely and bool(get_close_matches(stem, [path.stem], cutoff=0.8))


def sources(model: type[BaseModel], path: str) -> tuple[SettingsFile, dict[str, Any]]:
    """Return the file, and what the environment says; the latter wins."""
    return SettingsFile.of(Path(path)), _from_environment(model)


def _from_environment(model: type[BaseModel]) -> dict[str, Any]:
    known = {PREFIX + name.upper() for name in model.model_fields}
    sections = {name: name.split("__")[0].upper() for name in sorted(os.environ)}
    given = {n: s for n, s in sections.items() if s.startswith(PREFIX) and s not in NOT_SETTINGS}
    for variable, section in given.items():
        if section not in known:
            raise SettingsError(
                f"unknown environment variable {variable}{_variable_meant(variable, model)}"
            )
    if not given:  # most graphs are built so: it spares a tenth of that, and the import
        return {}
    from pydantic_settings import EnvSettingsSource
    from pydantic_settings.exceptions import SettingsError as SourceError

    source = EnvSettingsSource(
        _with_sections_of(model), env_prefix=PREFIX, env_nested_delimiter="__"
    )
    try:
        return source()
    except SourceError as error:
        section = PREFIX + str(error).split('"')[1].upper()
        raise SettingsError(_not_json(section, model)) from None


def _not_json(section: str, model: type[BaseModel]) -> str:
    """Say which variable of a section has to be JSON and is not."""
    for key in settings_keys(model):
        below = key.variable != section and key.variable.startswith(section)
        given = below and key.is_json and key.variable in os.environ
        if given and not _is_json(key.variable):
            form = '["...", "..."]' if key.type.startswith("list") else '{"NAME": ...}'
            return f"{key.variable} is not JSON: it holds a {key.type}, written as {form}"
    return f"{section} is not JSON; to set one key write {section}__KEY"


def _is_json(variable: str) -> bool:
    try:
        json.loads(os.environ[variable])
    except ValueError:
        return False
    return True


def _variable_meant(variable: str, model: type[BaseModel]) -> str:
    """Name the variable that was probably meant: by its words, then by its letters."""
    given = variable.upper().removeprefix(PREFIX)
    if given.endswith("API_KEY"):
        return "; a provider's key has the provider's own name, such as OPENAI_API_KEY"
    known = [*NOT_SETTINGS, *(key.variable for key in settings_keys(model) if key.variable)]
    near = max(sorted(known), key=lambda name: _likeness(given, name.removeprefix(PREFIX)))
    if _likeness(given, near.removeprefix(PREFIX)) < _LIKE:
        return "; `daruma settings` lists those that there are"
    return f"; did you mean {near}?"


_LIKE: Final = 0.8


def _likeness(one: str, other: str) -> float:
    words, others = ({*name.split("_")} - {""} for name in (one, other))
    return len(words & others) / len(words | others) + SequenceMatcher(None, one, other).ratio()


def _with_sections_of(model: type[BaseModel]) -> Any:
    from pydantic_settings import BaseSettings

    annotations = {name: field.annotation for name, field in model.model_fields.items()}
    fields = {name: field.default for name, field in model.model_fields.items()}
    return type("Environment", (BaseSettings,), {"__annotations__": annotations, **fields})


def merge_settings(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of both, section by section; those above win."""
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        nested = isinstance(under, Mapping) and isinstance(value, Mapping)
        merged[key] = merge_settings(under or {}, value) if nested else value
    return merged
