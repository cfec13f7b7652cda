"""The settings as a page to read, and as a JSON Schema for editors; both generated."""

from typing import Any, Final

from daruma.state.settings import Settings
from daruma.state.settings_keys import Heading, Key, sections

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
    return "\n".join([_TOP, *(_section(each) for each in sections() if each.keys)])


def schema() -> dict[str, Any]:
    """Return the JSON Schema of ``daruma.yaml``."""
    plain = Settings.model_json_schema()
    top = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": ID}
    return top | plain | {"title": "daruma.yaml"}


def _section(section: Heading) -> str:
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
