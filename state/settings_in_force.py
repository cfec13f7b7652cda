"""What is in force here, and where each value comes from."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from daruma.state.settings import Settings
from daruma.state.settings_keys import NAME, Key
from daruma.state.settings_sources import sources

FILE = "daruma.yaml"


@dataclass(frozen=True)
class InForce:
    """A key's value as JSON, and its source: default, daruma.yaml, or the variable's name."""

    key: Key
    value: str
    source: str


def in_force(keys: Iterable[Key], path: str = FILE) -> list[InForce]:
    """Return what holds for keys in the current folder; of those under a name, nothing.

    Raises :class:`~daruma.state.settings_errors.SettingsError` for what can not be used.
    """
    settings = Settings.load(path)
    file, environment = sources(Settings, path)
    return [
        InForce(key, json.dumps(_plain(settings, key), ensure_ascii=False), source)
        for key in keys
        if NAME not in key.path.split(".")
        for source in [_source(key, file, environment)]
    ]


def _source(key: Key, file: Mapping[str, Any], environment: Mapping[str, Any]) -> str:
    if _holds(environment, key.path):
        return key.variable
    return FILE if _holds(file, key.path) else "default"


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
