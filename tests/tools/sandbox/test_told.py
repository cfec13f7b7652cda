"""The model is told of the sandbox when that may be what was in the way, and only then."""

from dataclasses import replace
from typing import Any

import pytest

from daruma.tools.commands.command import CommandResult, command_run, killed_for
from daruma.tools.sandbox.sandbox import hint

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


MISSED = [
    "curl: (6) Could not resolve host: example.org",
    "wget: unable to resolve host address 'example.org'",
    "<urlopen error [Errno -3] Temporary failure in name resolution>",
    "OSError: [Errno 101] Network is unreachable",
    "connect: network is unreachable",
    "getaddrinfo EAI_AGAIN registry.npmjs.org",
    "dial tcp: lookup proxy.golang.org on 10.0.0.1:53: no such host",
    "failed to lookup address information: Try again",
    "ssh: Could not resolve hostname x: Name or service not known",
    "NameResolutionError(\"HTTPSConnection(host='pypi.org')\")",
]


@pytest.mark.parametrize("exit_code", [0, 1, 6])
@pytest.mark.parametrize("said", MISSED)
def test_a_blocked_network_is_a_violation_whatever_the_exit_code(said: str, exit_code: int) -> None:
    """SA-02: told to the model and audited, as far as the command's own words tell."""
    for result in (
        replace(RESULT, exit_code=exit_code, stderr=f"x\n{said}\n"),
        replace(RESULT, exit_code=exit_code, stderr="", stdout=said, sandbox="landlock"),
    ):
        assert hint(result).startswith("sandbox_violation: the network is blocked (sandbox.network")
        assert command_run("tool", result).violation == hint(result).partition(": ")[2]


@pytest.mark.parametrize(
    "changes",
    [
        {"sandbox": "none"},
        {"not_covered": ("the network, which the settings allow",)},
        {"stderr": "curl: (22) The requested URL returned error: 404"},
        {"stderr": "1 failed: test_network"},
    ],
)
def test_what_the_sandbox_did_not_stop_is_no_violation(changes: dict[str, Any]) -> None:
    """Without a sandbox, or with the network open, a missing host is nobody's doing."""
    for exit_code in (0, 1):
        result = replace(RESULT, stderr=MISSED[0], exit_code=exit_code)
        result = replace(result, **changes)
        assert "sandbox_violation" not in hint(result)
        assert command_run("tool", result).violation == ""


@pytest.mark.parametrize("exit_code", [-31, 159])
def test_a_forbidden_system_call_is_a_violation(exit_code: int) -> None:
    """SA-02: a filter ends what makes one; without a sandbox it was something else."""
    result = replace(RESULT, exit_code=exit_code, stderr="")

    assert "system call" in killed_for(result)
    assert killed_for(replace(result, sandbox="none")) == ""


def test_a_limit_is_named_by_its_setting() -> None:
    """So that a person knows what to change."""
    assert killed_for(RESULT) == ""
    assert "sandbox.memory_mb" in killed_for(replace(RESULT, stopped_by="memory"))
    assert "sandbox.processes" in killed_for(replace(RESULT, stopped_by="processes"))
