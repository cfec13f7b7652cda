"""What the probe reaches from each level is what that level is known not to stop."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import landlockpy
import pytest
from tests.sandboxes import CONFINED, LEVELS, reached_at, sandbox_at

from daruma.tools.commands.process import Asked, Launch
from daruma.tools.sandbox.opening import NETWORK, WORDS, NotProved, proved, reached, unconfined
from daruma.tools.sandbox.sandbox import Level

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
