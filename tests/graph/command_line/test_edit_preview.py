"""The diff of an edit that waits for a yes, made of the file as it is now."""

from pathlib import Path
from typing import Any

from daruma.graph.command_line.output import Line
from daruma.graph.command_line.questions import diff_lines, edit_preview, shown_approval


def asked(folder: Path, tool: str = "str_replace_editor", **args: Any) -> dict[str, Any]:
    ids = {"approval_id": "c1", "digest": "d" * 64, "tool": tool, "args": args}
    other = {"reason": "", "required": False, "deny_effect": "block", "sandbox": "none"}
    return {**ids, **other, "cwd": str(folder)}


def replacing(folder: Path, old: str, new: str) -> dict[str, Any]:
    return asked(folder, command="str_replace", path="a.py", old_str=old, new_str=new)


def signs(lines: list[Line]) -> list[str]:
    return [f"{line.mark} {line.text}" for line in lines]


def test_a_replacement_is_a_diff(tmp_path: Path) -> None:
    """With the lines around it, and where in the file it is."""
    (tmp_path / "a.py").write_text("one\ntwo\nthree\n")

    lines = edit_preview(replacing(tmp_path, "two", "2"))

    assert signs(lines) == [
        "note -1,4 +1,4",
        "same one",
        "minus two",
        "plus 2",
        "same three",
        "same ",
    ]
    assert shown_approval(replacing(tmp_path, "two", "2"))[-len(lines) :] == lines


def test_a_new_file_and_an_insertion_are_diffs(tmp_path: Path) -> None:
    """All of a new file is new."""
    (tmp_path / "a.py").write_text("one\n")
    new = asked(tmp_path, command="create", path="b.py", file_text="x\ny\n")
    more = asked(tmp_path, command="insert_at_line", path="a.py", insert_line=1, insert_text="two")

    assert {"plus x", "plus y"} <= {*signs(edit_preview(new))}
    assert "plus two" in signs(edit_preview(more))


def test_what_hides_in_a_diff_is_spelled(tmp_path: Path) -> None:
    """Bidirectional marks and escape sequences, in what goes and in what comes."""
    (tmp_path / "a.py").write_text("a \x1b[2J\nb\n")

    text = "\n".join(signs(edit_preview(replacing(tmp_path, "b", "c\u202e"))))

    assert r"\x1b[2J" in text
    assert r"plus c\u202e" in text


def test_windows_line_ends_are_no_change(tmp_path: Path) -> None:
    """A file keeps its own; lines that stay the same show them, spelled."""
    (tmp_path / "a.py").write_bytes(b"one\r\ntwo\r\n")

    lines = signs(edit_preview(replacing(tmp_path, "two", "2")))

    assert [line for line in lines if line.startswith(("plus", "minus"))] == [
        r"minus two\x0d",
        r"plus 2\x0d",
    ]


def test_an_edit_that_would_be_refused_says_so(tmp_path: Path) -> None:
    """As the file is now; a file that is not there, and a path that leads out."""
    (tmp_path / "a.py").write_text("one\n")
    out = asked(tmp_path, command="str_replace", path="../a", old_str="a", new_str="b")

    for refused in (replacing(tmp_path, "two", "2"), replacing(tmp_path / "no", "a", "b"), out):
        (line,) = edit_preview(refused)
        assert (line.mark, line.text[:39]) == (
            "bad",
            "as the file is now, this would be refused"[:39],
        )


def test_other_calls_have_no_diff(tmp_path: Path) -> None:
    """Nor have those whose arguments make no edit, or whose folder is not known."""
    unknown = replacing(tmp_path, "a", "b") | {"cwd": None}
    odd = asked(tmp_path, command="str_replace", path=3, old_str="a", new_str="b")
    view = asked(tmp_path, command="view", path="a.py")

    for call in (asked(tmp_path, "pay", amount=3), unknown, odd, view, asked(tmp_path)):
        assert edit_preview(call) == []


def test_no_difference_is_said() -> None:
    """Rather than shown as nothing."""
    assert signs([*diff_lines("a\n", "a\n")]) == ["note this changes nothing"]
