"""The model is told of the sandbox when that may be what was in the way, and only then."""

from dataclasses import replace

import pytest

from daruma.tools.commands.command import CommandResult
from daruma.tools.sandbox.sandbox import hint, killed_for

RESULT = CommandResult(
    command="x", exit_code=1, stdout="", stderr="touch: /x: Read-only file system\n",
    timed_out=False, truncated=False, seconds=0.1, sandbox="namespace",
)  # fmt: skip


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (RESULT, "level namespace"),
        (RESULT, "no network"),
        (replace(RESULT, sandbox="landlock", stderr="", stdout="Permission denied"), "$TMPDIR"),
        (replace(RESULT, stderr="curl: (6) Could not resolve host: x"), "no network"),
    ],
)
def test_a_refusal_is_explained(result: CommandResult, said: str) -> None:
    """SA-02: in one line, with the level and what it forbids."""
    assert said in hint(result)
    assert "\n" not in hint(result)


@pytest.mark.parametrize(
    "result",
    [
        replace(RESULT, exit_code=0),
        replace(RESULT, sandbox="none"),
        replace(RESULT, stderr="1 failed"),
    ],
)
def test_other_failures_are_left_alone(result: CommandResult) -> None:
    """What can not be told from the output is not guessed."""
    assert hint(result) == ""


def test_an_open_network_is_not_called_closed() -> None:
    """It is open because the settings allow it."""
    opened = replace(RESULT, not_covered=("the network, which the settings allow",))

    assert "no network" not in hint(opened)


def test_a_limit_is_named_by_its_setting() -> None:
    """So that a person knows what to change."""
    assert killed_for(RESULT) == ""
    assert "sandbox.memory_mb" in killed_for(replace(RESULT, stopped_by="memory"))
    assert "sandbox.processes" in killed_for(replace(RESULT, stopped_by="processes"))
