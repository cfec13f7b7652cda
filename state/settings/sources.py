"""Where settings come from: a file in the current folder, and the environment above it."""

import os
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic_settings import BaseSettings, EnvSettingsSource
from pydantic_settings.exceptions import SettingsError as SourceError

from daruma.state.settings.errors import SettingsError

PREFIX = "DARUMA_"
NOT_SETTINGS = frozenset(
    {
        "DARUMA_POSTGRES_URL",
        "DARUMA_POSTGRES_KEY",
        "DARUMA_POSTGRES_OUTAGE_SECONDS",
        "DARUMA_DATA_DIR",
    }
)
"""Variables that say where things are, not how a task runs; other modules read them."""


def merged_sources(model: type[BaseModel], path: str) -> dict[str, Any]:
    """Return the file's values with the environment's over them, section by section."""
    return _merge(*sources(model, path))


def sources(model: type[BaseModel], path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the file says, and what the environment says; the latter wins."""
    return _from_file(Path(path)), _from_environment(model)


def _from_file(path: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SettingsError(f"{path} can not be read: {' '.join(str(error).split())}") from None
    if content is not None and not isinstance(content, dict):
        raise SettingsError(f"{path} has to hold keys and values, not {type(content).__name__}")
    return content or {}


def _from_environment(model: type[BaseModel]) -> dict[str, Any]:
    known = [PREFIX + name.upper() for name in model.model_fields]
    for variable in sorted(os.environ):
        section = variable.split("__")[0].upper()
        if section.startswith(PREFIX) and section not in {*known, *NOT_SETTINGS}:
            close = get_close_matches(section, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise SettingsError(f"unknown environment variable {variable}{hint}")
    source = EnvSettingsSource(
        _with_sections_of(model), env_prefix=PREFIX, env_nested_delimiter="__"
    )
    try:
        return source()
    except SourceError as error:
        section = str(error).split('"')[1].upper()
        raise SettingsError(
            f"{PREFIX}{section} is not JSON; to set one key write {PREFIX}{section}__KEY"
        ) from None


def _with_sections_of(model: type[BaseModel]) -> type[BaseSettings]:
    annotations = {name: field.annotation for name, field in model.model_fields.items()}
    fields = {name: field.default for name, field in model.model_fields.items()}
    return type("Environment", (BaseSettings,), {"__annotations__": annotations, **fields})


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        nested = isinstance(under, Mapping) and isinstance(value, Mapping)
        merged[key] = _merge(under or {}, value) if nested else value
    return merged
