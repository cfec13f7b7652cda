"""Writes the files that are generated from the code: ``python docs/write_reference.py``."""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from daruma.graph.build import SHIPPED_TOOLS
from daruma.state import events_schema
from daruma.state.settings import SCHEMA, Settings, sections, settings_schema
from daruma.tools.calls._registry import READ_OUTPUT

ROOT: Final = Path(__file__).resolve().parents[1]
"""The checkout that the files lie in."""


def reference_files() -> dict[str, str]:
    """Return the text of each generated file by its path in a checkout."""
    return {
        f"state/{events_schema.SCHEMA}": _json(events_schema.events_schema()),
        f"state/{SCHEMA}": _json(settings_schema()),
        "docs/reference/all_settings.md": "\n".join(_settings_page()),
        "docs/reference/tools.md": "\n".join(_tools_page()),
    }


def write(root: Path = ROOT) -> None:
    """Write them all."""
    for name, text in reference_files().items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


def _json(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _table(heads: str, rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield a table's lines; ``heads`` are divided by commas."""
    names = heads.split(", ")
    yield from (f"| {' | '.join(names)} |", "|---" * len(names) + "|")
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
    yield ""


# --- Every key of the settings.

_SETTINGS: Final = """# All settings

Every key of `daruma.yaml`, generated from the settings themselves by
`python docs/write_reference.py`. `daruma settings` prints the same, `daruma settings KEY`
one key, and `daruma settings --effective` what is in force and where it comes from.

An environment variable wins over the file. One for a list or for names holds JSON. Editors check
the file, and complete its keys, with this first line:

```
# yaml-language-server: $schema=PATH/settings.schema.json
```
"""


def _settings_page() -> Iterator[str]:
    yield _SETTINGS
    for section in sections(Settings):
        if section.keys:
            about = " ".join(section.description.split())
            yield from (f"## {section.path or 'daruma.yaml'}", "", about, "")
            rows = (
                (
                    f"`{key.path}`",
                    key.type,
                    f"`{key.default}`" if key.default else "required",
                    key.range,
                    key.description,
                    f"`{key.variable}`" if key.variable else "",
                )
                for key in section.keys
            )
            yield from _table("key, type, default, range, what it is, variable", rows)


# --- The tools that ship: their effects and arguments, as a model is told of them.

_TOOLS: Final = """# Built-in tools

What a model can call, generated from the tools themselves by `python docs/write_reference.py`. The
texts are those that the model reads. An effect says what a call changes: nothing (`none`), files of
the workspace (`workspace`), or the world outside (`external`).

A [policy](../guides/approvals.md#write-a-policy) names tools as they are named here. A
[tool of yours](../guides/tools.md) takes the place of a built-in one of the same name, but for
those of the workspace.
"""
_SHOWN_WHERE: Final = {
    "workspace": "Shown to a task that has a workspace.",
    "memory": "Shown where the graph has a store, unless `memory.enabled` is false.",
    "skills": "Shown where `skills.folders` names a folder.",
    "assistant": "Shown where `tools.toolsets` names them, and the graph has a store.",
    "knowledge": "Shown where `tools.toolsets` names them, and the graph has a store.",
    "planning": "`todo` is shown in a workspace or a plan, `revise_plan` in a phase of a plan.",
    "team": "Shown where `team.delegate` is true.",
    "results": "Shown once a result was too long to be shown whole.",
}
_WORDS: Final = {"string": "text", "array": "list", "boolean": "true or false"}


def _tools_page() -> Iterator[str]:
    yield _TOOLS
    every = (*SHIPPED_TOOLS, READ_OUTPUT)
    for name, tools in groupby(every, lambda it: "results" if it is READ_OUTPUT else it.toolset):
        yield from (f"## {str(name).capitalize()}", "", _SHOWN_WHERE[str(name)], "")
        for tool in tools:
            yield from (f"### `{tool.name}`", "", f"Effect: {tool.effect}. {tool.description}", "")
            if tool.parameters["properties"]:
                yield from _table("argument, type, default, what it is", _rows(tool.parameters))


def _rows(parameters: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, ...]]:
    """Yield a row for each argument, and below a list one for each part of its items."""
    required = parameters.get("required", ())
    for name, schema in parameters["properties"].items():
        default = "required" if name in required else f"`{json.dumps(schema.get('default'))}`"
        yield f"`{within}{name}`", _type(schema), default, schema.get("description", "")
        if ref := schema.get("items", {}).get("$ref"):
            yield from _rows(parameters["$defs"][ref.rpartition("/")[2]], f"{within}{name}[].")


def _type(schema: Mapping[str, Any]) -> str:
    """Return a type in words: ``text or null``, ``view or create``, ``list``."""
    if "enum" in schema:
        return " or ".join(schema["enum"])
    if "anyOf" in schema:
        return " or ".join(map(_type, schema["anyOf"]))
    return _WORDS.get(schema["type"], schema["type"])


if __name__ == "__main__":
    write()
