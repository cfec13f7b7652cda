"""Where settings come from: a file in the current folder, and the environment above it."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from functools import cached_property
from hashlib import sha256
from itertools import islice
from pathlib import Path
from stat import S_ISREG
from typing import Any, Final, Self

from pydantic import BaseModel

from daruma.state.settings._keys import PREFIX, SettingsError, settings_keys
from daruma.state.text import NotYaml, read_yaml

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
            raise SettingsError(f"unknown environment variable {variable}{_meant(variable, model)}")
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


def _meant(variable: str, model: type[BaseModel]) -> str:
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
