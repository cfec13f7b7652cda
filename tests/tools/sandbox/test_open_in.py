"""What one workspace leaves open beyond its level is said, not guessed (SA-01)."""

import sys
from pathlib import Path

import pytest
from tests.sandboxes import CONFINED, sandbox_at

from daruma.tools.sandbox.sandbox import OWN_PROGRAM, PROGRAM, SECRETS, Level, open_in


@pytest.mark.parametrize("level", CONFINED)
def test_an_ordinary_workspace_leaves_nothing_more_open(level: Level, tmp_path: Path) -> None:
    """Neither a program of ours nor a secret lies in it."""
    assert open_in(tmp_path, level) == ()


@pytest.mark.parametrize("level", CONFINED)
def test_a_workspace_that_holds_our_program_is_told(level: Level) -> None:
    """Commands can change what is run outside later: all of a checkout."""
    assert OWN_PROGRAM in open_in(PROGRAM, level)


def test_the_interpreter_is_kept_by_namespaces_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An environment in the workspace is mounted to be read only; Landlock can not do that."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))

    assert open_in(tmp_path, "namespace") == ()
    assert open_in(tmp_path, "landlock") == (OWN_PROGRAM,)
    assert open_in(tmp_path / ".venv", "namespace") == (OWN_PROGRAM,)


def test_a_home_folder_as_workspace_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Landlock lets be written it lets be read, keys and all."""
    (tmp_path / ".ssh").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))

    assert open_in(tmp_path, "landlock") == (SECRETS,)
    assert open_in(tmp_path, "namespace") == ()


async def test_every_result_says_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside what the level leaves open anywhere."""
    sandbox = sandbox_at("landlock")
    monkeypatch.setenv("HOME", str(tmp_path))
    done = await sandbox.run("true", workspace=tmp_path, timeout=10)

    assert done.not_covered == (*sandbox.not_covered, SECRETS)
