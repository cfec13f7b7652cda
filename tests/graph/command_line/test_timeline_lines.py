"""A timeline on a terminal: times, durations, cost, setbacks in their place."""

from typing import Any

import pytest

from daruma.graph.command_line.output import Line
from daruma.graph.command_line.thread_story import timeline_lines, when_lines
from daruma.graph.timeline.moments import Moment
from daruma.graph.timeline.timeline import Timeline

START = 1_700_000_000.0


def moment(kind: Any, title: str, after: float = 0.0, **more: Any) -> Moment:
    return Moment(kind=kind, title=title, at=START + after, timed=True, **more)


def a_timeline(*moments: Moment, **more: Any) -> Timeline:
    values = {"started_at": START, "updated_at": START + 75, "moments": moments, **more}
    return Timeline(thread="t", status="completed", **values)


def told(*moments: Moment, tail: int | None = None) -> list[Line]:
    return [*timeline_lines(a_timeline(*moments), tail)][1:]


def test_a_moment_has_its_time_and_its_cost() -> None:
    """The clock's, that since the beginning, the seconds, the tokens and the money."""
    (line,) = told(moment("tool", "$ pytest", 65, ok=True, seconds=2.34, tokens=1200, usd=0.01))

    assert line.mark == "ok"
    assert line.text.endswith(" +1:05  $ pytest")
    assert len(line.text.split()[0].split(":")) == 3
    assert line.tail == "2.3 s · 1,200 tokens · $0.0100"


def test_phases_are_sections() -> None:
    """Where one begins; its end is a line."""
    begun, ended = told(moment("phase", "Phase 1: Mend"), moment("phase", "Phase 1 done", ok=True))

    assert (begun.mark, begun.text) == ("head", "Phase 1: Mend")
    assert ended.mark == "ok"


def test_what_failed_says_why() -> None:
    """The end of its output, and how much stands before it."""
    output = "\n".join(f"line {number}" for number in range(10))

    first, *rest = told(moment("check", "$ pytest", ok=False, output=output, note="exit 1"))

    assert (first.mark, first.tail) == ("bad", "exit 1")
    assert rest[0].text == "… 6 lines before: --json holds them"
    assert rest[-1].text == "line 9"


def test_a_change_is_a_diff_and_a_long_one_is_counted() -> None:
    """Headers are left out, lines are not without a word."""
    diff = "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n" + "".join(f"+{n}\n" for n in range(20))

    _, *rest = told(moment("tool", "str_replace a.py", ok=True, diff=diff))

    assert [rest[0], rest[1]] == [Line("minus", "old"), Line("plus", "new")]
    assert rest[-1].text == "… 10 more lines of this change: --json holds them"


def test_words_are_shown_as_words() -> None:
    """Of a member, with whose they are; an answer that was none is no words."""
    said, failed = told(
        moment("model", "I look.", detail="I look.\nClosely.", member="p1", ok=True),
        moment("model", "no usable answer", ok=False),
    )

    assert said.mark == "words"
    assert said.text.endswith("p1: I look.\nClosely.")
    assert failed.mark == "bad"


def test_a_tail_is_the_end_and_says_so() -> None:
    """How many came before is in the section's head."""
    moments = [moment("note", f"n{number}") for number in range(5)]

    head, *rest = timeline_lines(a_timeline(*moments), 2)
    none, *nothing = timeline_lines(a_timeline(*moments), 0)

    assert head.tail == "3 moments before are left out"
    assert [line.text.split()[-1] for line in rest] == ["n3", "n4"]
    assert (none.tail, nothing) == ("5 moments before are left out", [])


AGO = [(5, "just now"), (120, "2 min ago"), (7200, "2 h ago"), (86400, "1 d ago")]


@pytest.mark.parametrize(("seconds", "said"), AGO)
def test_the_beginning_is_told_by_the_clock_and_by_now(seconds: float, said: str) -> None:
    """With how long it took and what it cost."""
    (line,) = when_lines(a_timeline(tokens=1200, usd=0.5), START + seconds)

    assert f", {said}; took 1 min 15 s · 1,200 tokens · $0.5000" in line.text


def test_a_thread_without_times_says_nothing_of_them() -> None:
    """Old checkpoints may lack them."""
    assert [*when_lines(Timeline(thread="t", status="unfinished"))] == []
