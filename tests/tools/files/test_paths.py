"""A path's text is judged before anything is opened."""

from pathlib import Path

import pytest

from daruma.tools.errors import PathRefused
from daruma.tools.files.paths import parts_beneath, shown

ROOT = Path("/ws")


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("a/b.py", ("a", "b.py")),
        ("./a//b.py/", ("a", "b.py")),
        (".", ()),
        ("/ws", ()),
        ("/ws/a/b.py", ("a", "b.py")),
        (".gitignore", (".gitignore",)),
        ("x.git/.github/file", ("x.git", ".github", "file")),
        ("..a/b..", ("..a", "b..")),
    ],
)
def test_a_path_inside_is_made_relative(path: str, parts: tuple[str, ...]) -> None:
    """Relative paths, and absolute ones that lie inside by their pieces, are accepted (ED-02)."""
    assert parts_beneath(path, [ROOT]) == parts


@pytest.mark.parametrize(
    "path",
    [
        "",
        "..",
        "a/../b",
        "a/../../etc/passwd",
        "/etc/passwd",
        "/",
        "/ws_evil/a",
        "/ws/../etc/passwd",
        "//ws/a",
        "a\0b",
        "a\udc80b",
        ".git",
        ".git/config",
        "a/.git/hooks/pre-commit",
        ".GIT/config",
        ".g\u200cit/config",
        "\uff0egit/config",
        ".git./config",
    ],
)
def test_a_path_that_may_not_be_used_is_refused(path: str) -> None:
    """Traversal, absolute paths, prefix twins, unusable names and git's files (ED-02)."""
    with pytest.raises(PathRefused):
        parts_beneath(path, [ROOT])


def test_every_name_of_the_root_is_accepted() -> None:
    """A root reached through a link is known by both of its names."""
    assert parts_beneath("/link/a", [ROOT, Path("/link")]) == ("a",)


def test_an_error_shows_a_path_as_one_line() -> None:
    """Control characters are escaped and long paths cut, so that an error stays one line."""
    assert shown("a\nb") == r"'a\nb'"
    assert len(shown("a" * 5000)) < 300
