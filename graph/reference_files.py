"""Writes the files that are generated from the code: ``python -m daruma.graph.reference_files``."""

import json
from pathlib import Path
from typing import Any, Final

import daruma.state
from daruma.state import events_schema
from daruma.state.settings import PAGE, SCHEMA, render_page, settings_schema

ROOT: Final = Path(daruma.state.__file__).resolve().parents[1]
"""The checkout that the files lie in."""


def reference_files() -> dict[str, str]:
    """Return the text of each generated file by its path in a checkout."""
    return {
        f"state/{events_schema.SCHEMA}": _json(events_schema.events_schema()),
        f"state/{SCHEMA}": _json(settings_schema()),
        PAGE: render_page(),
    }


def write(root: Path = ROOT) -> None:
    """Write them all."""
    for name, text in reference_files().items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


def _json(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    write()
