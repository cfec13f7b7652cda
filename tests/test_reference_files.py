"""The files that are generated from the code are those in the repository."""

import json
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from jsonschema import Draft202012Validator
from tests.pages import blocks

ROOT = Path(__file__).parents[1]
WRITER = SimpleNamespace(**runpy.run_path(str(ROOT / "docs" / "write_reference.py")))
FILES = WRITER.reference_files()


@pytest.mark.parametrize("name", FILES)
def test_the_file_is_what_the_code_says(name: str) -> None:
    """Else: ``python docs/write_reference.py``."""
    assert (ROOT / name).read_text(encoding="utf-8") == FILES[name]


def test_they_are_written_where_one_says(tmp_path: Path) -> None:
    """All of them, each whole."""
    WRITER.write(tmp_path)

    assert {name: (tmp_path / name).read_text() for name in FILES} == FILES


def test_editors_accept_what_the_docs_show() -> None:
    """The schema takes good settings, and refuses an unknown key."""
    schema = json.loads(FILES["state/settings.schema.json"])
    shown = [yaml.safe_load(block) for block in blocks("yaml")]

    Draft202012Validator.check_schema(schema)
    assert all(map(Draft202012Validator(schema).is_valid, shown))
    assert shown
    assert not Draft202012Validator(schema).is_valid({"budgets": {"thnk": 1}})


def test_what_the_items_of_a_list_hold_is_told() -> None:
    """Not only that there is a list."""
    assert "| `items[].text` | text | required |" in FILES["docs/reference/tools.md"]
