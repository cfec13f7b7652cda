"""The panel under a run: what it says, in how many lines, on terminals of any size."""

from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from daruma.graph.command_line._progress import Activity, GoingOn, Now, panel, phases_of
from daruma.state.events import CommandOutput, Event, ToolStarted, VerificationStarted

PHASES = [("Look", "completed"), ("Mend it", "running"), ("Tell", "pending"), ("Try", "failed")]
PYTEST = Activity("$ pytest", since=10.0, lines=("first", "second", "third", "fourth"))


def said(now: Now, columns: int = 80, rows: int = 24, *, ascii_only: bool = False) -> str:
    return "\n".join(line.plain for line in panel(now, columns, rows, ascii_only=ascii_only))


def test_it_says_what_is_done_under_which_goal() -> None:
    """Goal, mode, how long, each phase with its mark, the budget, the call and its output."""
    now = Now("Mend", "plan_exec", 75.0, PHASES, Text("  think 1/7"), [PYTEST], clock=22.0)

    text = said(now)

    assert "1 min 15 s · plan_exec · Mend" in text
    for line in ("✓ 1 of 4  Look", "▶ 2 of 4  Mend it", "· 3 of 4  Tell", "✗ 4 of 4  Try"):
        assert f"  {line}\n" in text
    assert "  think 1/7\n" in text
    assert "$ pytest  12 s\n    │ second\n    │ third\n    │ fourth" in text


def test_every_parallel_call_has_its_seconds() -> None:
    """And one line of its output; those that do not fit are counted."""
    calls = [Activity(f"$ call {n}", since=float(n), lines=("old", f"said {n}")) for n in range(6)]

    text = said(Now("Mend", activities=calls, clock=100.0))

    assert "and 2 more" in text
    assert "$ call 5  1 min 35 s\n    │ said 5" in text
    assert "old" not in text


def test_of_many_phases_those_around_the_running_one_are_shown() -> None:
    """Each with its number, so that nobody takes them for all."""
    phases = [(f"phase {n}", "running" if n == 29 else "pending") for n in range(40)]

    text = said(Now("Mend", phases=phases))

    assert "▶ 30 of 40  phase 29" in text
    assert text.count(" of 40") == 5


def test_a_low_terminal_gets_the_most_important_lines() -> None:
    """One line about the phases, none of output."""
    text = said(Now("Mend", phases=PHASES, activities=[PYTEST], clock=12.0), rows=6)

    assert text.splitlines()[1:] == ["  ▶ 2 of 4  Mend it", text.splitlines()[-1]]
    assert "$ pytest" in text


def test_an_ascii_terminal_gets_ascii() -> None:
    """Symbols, spinner and bars have a plain form."""
    now = Now("Mend", phases=PHASES, activities=[PYTEST], clock=12.0)

    assert said(now, ascii_only=True).isascii()


@given(st.text(), st.integers(10, 200), st.integers(1, 60))
def test_any_text_is_one_visible_line(text: str, columns: int, rows: int) -> None:
    """Goals, titles and output come from anywhere, and nothing in them is obeyed."""
    call = Activity(text, since=0.0, lines=(text, text))
    now = Now(text, text, 5.0, [(text, "running"), (text, text)], None, [call], 9.0)

    lines = panel(now, columns, rows)

    assert len(lines) <= rows
    assert all(char.isprintable() or char == " " for line in lines for char in line.plain)


def test_a_member_s_phase_runs() -> None:
    """The plan on record says so only when the member is back."""
    plan = {"phases": [{"id": "p1", "title": "A", "status": "pending"}]}

    assert phases_of(plan, {"p1"}) == [("A", "running")]
    assert phases_of(plan, ()) == [("A", "pending")]
    assert phases_of({}, ()) == []


# --- What goes on: output finds the call that it is of.


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
