"""Texts are merged by git, without a repository and whatever its configuration."""

from pathlib import Path

import pytest

from daruma.tools.team.merging import NotMerged, TextMerge, is_text, merge_text

BASE = b"1\n2\n3\n4\n5\n"


def test_different_lines_are_put_together() -> None:
    """With both sides' changes, to the byte: also without a newline at the end."""
    done = merge_text(BASE, b"0\n" + BASE, b"1\r\n".join([b"", BASE[2:]]) + b"6")

    assert merge_text(BASE, b"0\n" + BASE, BASE + b"6") == TextMerge(
        b"0\n" + BASE + b"6", clean=True
    )
    assert not done.clean


def test_lines_that_touch_are_in_conflict() -> None:
    """Each side is there whole, between markers with the labels, whatever these are."""
    done = merge_text(b"a\nb\n", b"a1\nb\n", b"a\nb2\n", ("-q", "phase --x"))

    assert done == TextMerge(b"<<<<<<< -q\na1\nb\n=======\na\nb2\n>>>>>>> phase --x\n", clean=False)


def test_many_conflicts_are_no_error() -> None:
    """Git says their number, up to 127, by its exit code."""
    lines = [b"".join(b"%d %d\n" % (number, at) for at in range(9)) for number in range(300)]
    mine, theirs = (b"".join(side + line for line in lines) for side in (b"m", b"t"))
    done = merge_text(b"".join(lines), mine, theirs)

    assert not done.clean
    assert done.text.count(b"<<<<<<<") == 300


def test_no_configuration_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the user's, nor that of a repository which this process's variables name."""
    (tmp_path / "config").write_text("[merge]\nconflictStyle = diff3\n[core\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path))
    done = merge_text(b"x\n", b"y\n", b"z\n")

    assert b"|||||||" not in done.text
    assert b"<<<<<<<" in done.text


@pytest.mark.parametrize(
    ("data", "text"),
    [(b"", True), (b"\xff\xfe", True), (b"a\0", False), (b"a" * 8000 + b"\0", True)],
)
def test_a_zero_says_that_it_is_no_text(data: bytes, text: bool) -> None:
    """Looked for where git looks for it."""
    assert is_text(data) is text


def test_what_git_takes_for_no_text_is_not_merged() -> None:
    """Then it says so, and nothing is made up."""
    with pytest.raises(NotMerged, match="Cannot merge binary"):
        merge_text(b"\0", b"\0a", b"\0b")
