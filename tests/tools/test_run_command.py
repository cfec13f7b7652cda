"""The model is told how its command went, and can not leave the workspace by its directory."""

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.parts import unconfined

from daruma.state.events import Event
from daruma.tools.commands.process import Limits
from daruma.tools.commands_tool import RunCommandArgs, run_command
from daruma.tools.errors import PathRefused, ToolError
from daruma.tools.files.workspace import Workspace


@pytest.fixture
def work(tmp_path: Path) -> Workspace:
    """A workspace with a directory in it and a link that leads out."""
    (tmp_path / "work" / "sub").mkdir(parents=True)
    (tmp_path / "work" / "out").symlink_to("..")
    return Workspace(tmp_path / "work")


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("echo hi", "exit code: 0\nstdout:\nhi"),
        ("echo no >&2; exit 2", "exit code: 2\nstderr:\nno"),
        ("echo a; echo b >&2", "exit code: 0\nstdout:\na\nstderr:\nb"),
        ("true", "exit code: 0\n(no output)"),
        ("kill -SEGV $$", "killed by signal 11 (SIGSEGV)\n(no output)"),
    ],
)
async def test_the_outcome_is_told(work: Workspace, command: str, text: str) -> None:
    """Code or signal first, then what there is of both streams; a failure is no error."""
    assert await run_command(RunCommandArgs(command=command), work, 10, await unconfined()) == text


async def test_a_timeout_is_told_with_the_output(work: Workspace) -> None:
    """The default time holds where the model names none."""
    said = await run_command(
        RunCommandArgs(command="echo begun; sleep 600"), work, 0.2, await unconfined()
    )

    assert said.startswith("timed out after 0.")
    assert said.endswith("stdout:\nbegun")


async def test_the_models_own_time_is_used(work: Workspace) -> None:
    """A shorter time than the default ends the command earlier."""
    said = await run_command(
        RunCommandArgs(command="sleep 600", timeout=0.1), work, 600, await unconfined()
    )

    assert said.startswith("timed out")


async def test_a_cut_is_seen(work: Workspace) -> None:
    """Long output has a line where its middle was left out."""
    said = await run_command(RunCommandArgs(command="seq 100000"), work, 10, await unconfined())

    assert "bytes left out]" in said
    assert said.endswith("\n100000")


async def test_a_directory_beneath_the_workspace_is_used(work: Workspace) -> None:
    """The workspace itself by default, else what is named."""
    assert await run_command(RunCommandArgs(command="pwd"), work, 10, await unconfined()) == (
        f"exit code: 0\nstdout:\n{work.root}"
    )
    assert await run_command(
        RunCommandArgs(command="pwd", cwd="sub"), work, 10, await unconfined()
    ) == (f"exit code: 0\nstdout:\n{work.root}/sub")


@pytest.mark.parametrize("cwd", ["..", "/", "out", "out/work", "sub/../.."])
async def test_a_directory_outside_is_refused(work: Workspace, cwd: str) -> None:
    """Traversal, absolute paths and links that lead out (ED-02)."""
    with pytest.raises(PathRefused):
        await run_command(
            RunCommandArgs(command="touch hit", cwd=cwd), work, 10, await unconfined()
        )


async def test_a_missing_directory_is_one_line(work: Workspace) -> None:
    """The model learns that it is not there."""
    with pytest.raises(ToolError, match="gone: no such file or directory"):
        await run_command(RunCommandArgs(command="true", cwd="gone"), work, 10, await unconfined())


@pytest.mark.parametrize("timeout", [0, -1, 601])
def test_a_time_beyond_ten_minutes_is_refused(timeout: float) -> None:
    """The schema allows more than 0 and at most 600 seconds."""
    with pytest.raises(ValidationError):
        RunCommandArgs(command="true", timeout=timeout)


async def test_a_limit_is_told_as_a_violation(work: Workspace) -> None:
    """SA-02: structured, with the setting that would change it."""
    sandbox = replace(await unconfined(), limits=Limits(1 << 40, 0))
    events: list[Event] = []
    line = "echo begun; sleep 60"
    said = r"(?s)^sandbox_violation: killed, it had more processes than sandbox\.proc.*begun"
    with pytest.raises(ToolError, match=said):
        await run_command(RunCommandArgs(command=line), work, 10, sandbox, events.append)

    (told,) = [event.to_dict() for event in events if event.type == "command_run"]
    assert told["violation"].startswith("killed, it had more processes")


@pytest.mark.parametrize(("network", "told"), [(False, True), (True, False)])
async def test_a_blocked_network_is_told_beside_a_success(
    work: Workspace, *, network: bool, told: bool
) -> None:
    """SA-02: the exit code stays what it was, the result says what was blocked, as the event."""
    left = ("the network, which the settings allow",) if network else ()
    sandbox = replace(await unconfined(), level="namespace", not_covered=left)
    events: list[Event] = []
    line = "echo 'curl: (6) Could not resolve host: x' >&2; true"
    said = await run_command(RunCommandArgs(command=line), work, 10, sandbox, events.append)

    assert said.startswith("exit code: 0\n")
    assert ("\nsandbox_violation: the network is blocked" in said) is told
    (event,) = [event.to_dict() for event in events if event.type == "command_run"]
    assert bool(event["violation"]) is told
