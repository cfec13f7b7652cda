"""What goes on: output finds the call that it is of."""

from daruma.graph.command_line.panel import GoingOn
from daruma.state.events import CommandOutput, Event, ToolStarted, VerificationStarted


def opened(*events: Event) -> GoingOn:
    going_on = GoingOn(lambda: 5.0)
    for event in events:
        going_on.open(event.to_dict(), event.type)
    return going_on


def test_output_stands_with_its_own_call() -> None:
    """Of two calls at once, and of two members that use the same ids."""
    going_on = opened(
        *(ToolStarted(call_id=call, tool="run_command", summary="", member=member)
          for call, member in (("c1", ""), ("c2", ""), ("c1", "p1")))
    )  # fmt: skip

    for call, member in (("c1", "p1"), ("c2", "")):
        said = (f"{call} of {member}",)
        event = CommandOutput(purpose="tool", command="x", lines=said, call_id=call, member=member)
        going_on.heard(event.to_dict())

    assert [each.lines for each in going_on.activities] == [(), ("c2 of ",), ("c1 of p1",)]


def test_a_check_that_writes_is_named() -> None:
    """Of several checks it is known which one runs."""
    going_on = opened(VerificationStarted(commands=("pytest", "ruff check")))

    event = CommandOutput(purpose="verification", command="ruff check", lines=("a",))
    going_on.heard(event.to_dict())

    (activity,) = going_on.activities
    assert (activity.title, activity.since, activity.lines) == ("$ ruff check", 5.0, ("a",))


def test_output_of_what_has_ended_is_left_out() -> None:
    """An event may come late."""
    going_on = opened()

    going_on.heard(CommandOutput(purpose="validation", command="x", lines=("a",)).to_dict())

    assert going_on.activities == ()
