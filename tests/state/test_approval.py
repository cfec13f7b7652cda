"""An approval shows exactly what will run, and its digest changes with any of that."""

from dataclasses import replace
from typing import Any

import pytest
from tests.parts import a_call

from daruma.state.approval import approval_of

CALL = a_call("c1", name="run_command", args={"command": "make", "timeout": 5})


@pytest.mark.parametrize(
    "other",
    [
        replace(CALL, args={"command": "make all", "timeout": 5}),
        replace(CALL, args={"command": "make", "timeout": 6}),
        replace(CALL, args={"command": "make", "timeout": 5, "cwd": "sub"}),
        replace(CALL, name="other"),
    ],
)
def test_another_call_has_another_digest(other: Any) -> None:
    """TL-13: what was shown is what runs."""
    assert approval_of(other, "/w").digest != approval_of(CALL, "/w").digest


def test_the_digest_covers_the_place() -> None:
    """The same line in another workspace is another thing."""
    assert approval_of(CALL, "/other").digest != approval_of(CALL, "/w").digest


def test_the_digest_does_not_depend_on_the_order_of_arguments() -> None:
    """Nor on how Python happens to hold them, so that it is the same after a restart."""
    turned = replace(CALL, args={"timeout": 5, "command": "make"})

    assert approval_of(turned, "/w").digest == approval_of(CALL, "/w").digest
    assert len(approval_of(CALL, "/w").digest) == 64


def test_odd_text_has_a_digest_too() -> None:
    """Models write lone surrogates."""
    assert approval_of(replace(CALL, args={"command": "\ud800"}), None).digest


def test_a_command_shows_the_directory_it_runs_in() -> None:
    """TL-13: the exact line and working directory, also when the call names its own."""
    inside = replace(CALL, args={"command": "make", "cwd": "sub"})

    assert approval_of(CALL, "/w").cwd == "/w"
    assert approval_of(inside, "/w").cwd == "/w/sub"


def test_only_commands_show_a_line() -> None:
    """Another tool may well have an argument of that name."""
    approval = approval_of(replace(CALL, name="editor"), "/w")

    assert (approval.command, approval.cwd) == (None, None)


def test_arguments_of_a_wrong_type_are_shown_as_they_are() -> None:
    """What a model wrote must not break the question that a person is asked about it."""
    approval = approval_of(replace(CALL, args={"command": ["rm", "-rf"]}), "/w")

    assert approval.args == {"command": ["rm", "-rf"]}


def test_another_level_has_another_digest() -> None:
    """What a person allows in a sandbox is not allowed without one."""
    confined = approval_of(CALL, "/w", sandbox="namespace")

    assert confined.sandbox == "namespace"
    assert confined.digest != approval_of(CALL, "/w").digest
