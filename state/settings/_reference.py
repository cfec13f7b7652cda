"""What is in force of the settings, and the page of every key."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

from pydantic import BaseModel

from daruma.state.settings._keys import NAME, Heading, SettingsKey, sections
from daruma.state.settings._settings import PRESETS, Settings
from daruma.state.settings._sources import SETTINGS_FILE, sources

# --- What is in force here, and where each value comes from.


@dataclass(frozen=True)
class InForce:
    """A key's value as JSON, and its source: default, budgets.preset, daruma.yaml, a variable."""

    key: SettingsKey
    value: str
    source: str


def values_in_force(keys: Iterable[SettingsKey], path: str = SETTINGS_FILE) -> list[InForce]:
    """Return what holds for keys in the current folder; of those under a name, nothing.

    Raises :class:`~daruma.state.settings.SettingsError` for what can not be used.
    """
    settings: Any = Settings.load(path)
    file, environment = sources(Settings, path)
    found = []
    for key in keys:
        parts = key.path.split(".")
        if NAME not in parts:
            value = json.dumps(_dumped(reduce(getattr, parts, settings)), ensure_ascii=False)
            source = _source(key, file.values, environment, settings.budgets.preset)
            found.append(InForce(key, value, source))
    return found


def _source(
    key: SettingsKey, file: Mapping[str, Any], environment: Mapping[str, Any], preset: str
) -> str:
    if _holds(environment, key.path):
        return key.variable
    if _holds(file, key.path):
        return SETTINGS_FILE
    return "budgets.preset" if tuple(key.path.split(".")) in PRESETS[preset] else "default"


def _holds(values: Any, path: str) -> bool:
    for part in path.split("."):
        if not isinstance(values, Mapping) or part not in values:
            return False
        values = values[part]
    return True


def _dumped(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {str(name): _dumped(each) for name, each in value.items()}
    return [_dumped(each) for each in value] if isinstance(value, tuple) else value


# --- The settings as a page to read, and as a JSON Schema for editors; both generated.

PAGE: Final = "docs/reference/all_settings.md"
"""Where a checkout has the page."""

SCHEMA: Final = "settings.schema.json"
ID: Final = "urn:daruma-agent:settings:1"

_TOP: Final = """# All settings

Every key of `daruma.yaml`, generated from the settings themselves by
`python -m daruma.graph.reference_files`. `daruma settings` prints the same, `daruma settings KEY`
one key, and `daruma settings --effective` what is in force and where it comes from.

An environment variable wins over the file. One for a list or for names holds JSON. Editors check
the file, and complete its keys, with this first line:

```
# yaml-language-server: $schema=PATH/settings.schema.json
```
"""


def render_page() -> str:
    """Return the page in Markdown."""
    return "\n".join([_TOP, *(_page_section(each) for each in sections(Settings) if each.keys)])


def settings_schema() -> dict[str, Any]:
    """Return the JSON Schema of ``daruma.yaml``."""
    plain = Settings.model_json_schema()
    top = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": ID}
    return top | plain | {"title": "daruma.yaml"}


def _page_section(section: Heading) -> str:
    rows = [_row(key) for key in section.keys]
    head = ["| key | type | default | range | what it is | variable |", "|---|---|---|---|---|---|"]
    text = " ".join(section.description.split())
    return "\n".join([f"## {section.path or 'daruma.yaml'}", "", text, "", *head, *rows, ""])


def _row(key: SettingsKey) -> str:
    cells = (
        f"`{key.path}`",
        key.type,
        f"`{key.default}`" if key.default else "required",
        key.range,
        key.description,
        f"`{key.variable}`" if key.variable else "",
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
