"""A missing file is said with the path that was meant, if it is there."""

from pathlib import Path

import pytest

from daruma.tools.calls.path_advice import advised
from daruma.tools.errors import FileMissing, FileUnavailable, ToolError

MISSING = FileMissing("a.py: no such file or directory: list the directory to see what is there")


@pytest.fixture
def workspace(tmp_path: Path) -> str:
    for at in ("src", "lib", *map(str, range(9))):
        (tmp_path / at).mkdir()
        (tmp_path / at / "a.py").touch()
    (tmp_path / "out").symlink_to("/etc")
    return str(tmp_path)


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        (["src/a.py"], "a.py: no such file or directory; it was shown as src/a.py: use it whole"),
        (
            ["src/a.py", "gone/a.py", "lib/a.py"],
            (
                "a.py: no such file or directory; shown before were src/a.py, lib/a.py: "
                "use one of them whole"
            ),
        ),
        (["gone/a.py", "out/hostname", "/etc/hostname", "../a.py"], str(MISSING)),
        ([], str(MISSING)),
    ],
)
async def test_those_that_are_there_are_named(workspace: str, paths: list[str], said: str) -> None:
    """CX-06: one as the path, several as a choice."""
    assert await advised(MISSING, paths, workspace) == said


async def test_at_most_five_are_named(workspace: str) -> None:
    """More would be no help."""
    said = await advised(MISSING, [f"{n}/a.py" for n in range(9)], workspace)

    assert "0/a.py, 1/a.py, 2/a.py, 3/a.py, 4/a.py: use" in said


async def test_an_absolute_path_is_named_as_the_workspace_has_it(workspace: str) -> None:
    """Once, however often it was shown."""
    said = await advised(MISSING, [f"{workspace}/src/a.py", "src/a.py"], workspace)

    assert "it was shown as src/a.py: use it whole" in said


@pytest.mark.parametrize("error", [ToolError("no"), FileUnavailable("a.py: is a directory")])
async def test_other_errors_are_left_as_they_are(workspace: str, error: ToolError) -> None:
    """Only a path that leads nowhere was perhaps cut."""
    assert await advised(error, ["src/a.py"], workspace) == str(error)


async def test_without_a_workspace_there_is_nothing_to_look_in() -> None:
    """The error stands for itself."""
    assert await advised(MISSING, ["src/a.py"], None) == str(MISSING)
