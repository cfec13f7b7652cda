"""A tool call of the model on its way to execution, and the approval of it by a person."""

from dataclasses import replace
from typing import Any

import pytest
from tests.parts import a_call

from daruma.state.calls import Grounds, approval_of, reduce_calls, set_status, with_status

# --- Tool tasks are replaced as a whole for a new turn, and one by one as they end.


def test_a_tuple_begins_a_new_turn() -> None:
    """Nothing of the turn before is left."""
    assert reduce_calls((a_call("a"),), (a_call("b"),)) == (a_call("b"),)
    assert reduce_calls((a_call("a"),), ()) == ()
    assert reduce_calls((a_call("a"),), a_call("z")) == (a_call("a"),)  # a late result


def test_a_single_call_updates_its_own() -> None:
    """TL-02: calls that end at the same time do not undo each other, in either order."""
    turn = (a_call("a"), a_call("b"))
    a, b = set_status(turn[0], "done"), set_status(turn[1], "failed")

    assert reduce_calls(reduce_calls(turn, a), b) == (a, b)
    assert reduce_calls(reduce_calls(turn, b), a) == (a, b)


def test_calls_are_picked_by_status_in_order() -> None:
    """The order is that of the model's answer."""
    calls = (a_call("a"), a_call("b", "awaiting"), a_call("c"))

    assert [call.id for call in with_status(calls, "ready")] == ["a", "c"]


# --- An approval shows exactly what will run, and its digest changes with any of that.

CALL = a_call("c1", name="run_command", args={"command": "make", "timeout": 5})


GROUNDS = Grounds(sandbox="landlock", environment={"PATH": "/bin"}, tree="a", definition="a")


@pytest.mark.parametrize(
    ("call", "place", "grounds"),
    [
        ({"args": {"command": "make all", "timeout": 5}}, "/w", {}),
        ({"args": {"command": "make", "timeout": 6}}, "/w", {}),
        ({"args": {"command": "make", "timeout": 5, "cwd": "sub"}}, "/w", {}),
        ({"name": "other"}, "/w", {}),
        ({"message_id": "m2"}, "/w", {}),  # models repeat ids: a yes is for one call
        ({}, "/other", {}),
        ({}, "/w", {"sandbox": "namespace"}),
        ({}, "/w", {"environment": {"PATH": "/evil"}}),
        ({}, "/w", {"tree": "b"}),
        ({}, "/w", {"definition": "b"}),
    ],
)
def test_another_call_has_another_digest(call: Any, place: str, grounds: Any) -> None:
    """TL-13, TL-13a, SE-06: what was shown is what runs, where, with what, and by whose word."""
    other = approval_of(replace(CALL, **call), place, replace(GROUNDS, **grounds))

    assert other.digest != approval_of(CALL, "/w", GROUNDS).digest
    assert other.sandbox == grounds.get("sandbox", "landlock")


def test_the_digest_does_not_depend_on_the_order_of_arguments() -> None:
    """Nor on how Python happens to hold them, so that it is the same after a restart."""
    turned = replace(CALL, args={"timeout": 5, "command": "make"})

    assert approval_of(turned, "/w").digest == approval_of(CALL, "/w").digest
    assert len(approval_of(CALL, "/w").digest) == 64
    assert approval_of(replace(CALL, args={"command": "\ud800"}), None).digest


def test_a_command_shows_the_directory_it_runs_in() -> None:
    """TL-13: the exact line and working directory, also when the call names its own."""
    inside = replace(CALL, args={"command": "make", "cwd": "sub"})

    assert approval_of(CALL, "/w").cwd == "/w"
    assert approval_of(inside, "/w").cwd == "/w/sub"


def test_only_commands_show_a_line() -> None:
    """Another tool may have an argument of that name, and what a model wrote breaks no question."""
    approval = approval_of(replace(CALL, name="editor"), "/w")
    odd = approval_of(replace(CALL, args={"command": ["rm", "-rf"]}), "/w")

    assert (approval.command, approval.cwd) == (None, "/w")
    assert odd.args == {"command": ["rm", "-rf"]}


def test_what_has_changed_is_told_with_the_question() -> None:
    """TL-13a: before anything else that there is to look at."""
    asked = approval_of(replace(CALL, changes=("a.txt (new)",)), "/w")

    assert asked.warnings[0] == "a.txt (new)"
    assert asked.digest == approval_of(CALL, "/w").digest


def test_hidden_characters_are_shown_and_warned_of() -> None:
    """The command itself stays exactly what would run."""
    tricky = replace(CALL, args={"command": "rm \u202egnp.exe"})

    approval = approval_of(tricky, "/w")

    assert approval.command == "rm \u202egnp.exe"
    assert "\\u202e" in approval.shown
    assert [warning.partition(":")[0] for warning in approval.warnings] == ["command"]


@pytest.mark.parametrize(
    "args", [{"a": [{"b\u200b": "c"}]}, {"a\u200b": 1}, {"a": {"b": ["\u202e"]}}]
)
def test_arguments_of_all_depths_are_warned_of(args: dict[str, Any]) -> None:
    """In keys and lists too, and in the name of the argument itself."""
    assert approval_of(replace(CALL, name="other", args=args), "/w").warnings
