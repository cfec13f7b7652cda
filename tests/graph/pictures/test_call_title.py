"""Calls on one line, and edits as differences."""

from typing import Any

import pytest

from daruma.graph.timeline.moments import MOST_LINES, arguments_text, call_title, edit_diff


@pytest.mark.parametrize(
    ("tool", "args", "title"),
    [
        ("run_command", {"command": "pytest -x"}, "$ pytest -x"),
        ("str_replace_editor", {"command": "view", "path": "a.py"}, "view a.py"),
        ("shout", {"text": "hi", "times": 2}, "shout hi 2"),
        ("shout", {"text": "x" * 81}, "shout"),
    ],
)
def test_a_call_is_one_line(tool: str, args: dict[str, Any], title: str) -> None:
    """What it does to what; long arguments are left to the details."""
    assert call_title(tool, args) == title


def test_an_edit_is_a_unified_diff() -> None:
    """Of its own two texts."""
    diff = edit_diff({"path": "a.py", "old_str": "a\nb\n", "new_str": "a\nc\n"})

    assert diff == "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n a\n-b\n+c"


def test_a_huge_edit_is_not_compared_line_by_line() -> None:
    """Comparing would take minutes; what was cut is counted."""
    diff = edit_diff({"path": "a", "old_str": "x\n" * 5000, "new_str": "y\n" * 5000})

    assert diff.count("\n") < 2 * MOST_LINES + 10
    assert diff.endswith(f"{10_000 - 2 * MOST_LINES} more lines")


def test_other_calls_have_no_diff() -> None:
    """Nor do their arguments lose anything."""
    assert edit_diff({"text": "a"}) == ""
    assert arguments_text({"text": "a", "n": 1}) == "text: a\nn: 1"
