"""What happened, on a terminal: each moment as a line or some, while it happens and afterwards."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from daruma.graph.command_line._messages import beginning, one_line
from daruma.graph.command_line._output import Line, Mark
from daruma.graph.command_line._questions import plan_lines
from daruma.graph.timeline import Call, Moment, Timeline, event_moment, render_duration_if_any

DIFF_LINES: Final = 12
OUTPUT_LINES: Final = 4

_MARKS: Final[Mapping[bool | None, Mark]] = {True: "ok", False: "bad", None: "note"}
_DIFF: Final[Mapping[str, Mark]] = {"+": "plus", "-": "minus"}


def lines_of(event: Mapping[str, Any], call: Call | None = None, title: str = "") -> list[Line]:
    """Return an event as lines, with what ``event_moment`` takes; a plan is told whole."""
    moment = event_moment(event, call, title)
    if moment is None:
        return []
    plan = plan_lines(event["plan"]["phases"]) if event["type"] == "plan_proposed" else []
    return [*moment_lines(moment), *plan]


def moment_lines(moment: Moment, start: float | None = None) -> Iterator[Line]:
    """Yield one moment, and what came of it.

    With ``start``, its time stands before it, and how long after ``start`` that is.
    """
    who = f"{moment.member}: " if moment.member else ""
    at = "" if start is None or not moment.at else _when(moment.at, start)
    if moment.begins:
        tail = one_line(moment.note, 200)
        yield Line("head", who + one_line(moment.title), " · ".join(filter(None, (at, tail))))
        return
    words = moment.kind in ("model", "reflection") and moment.detail
    said = beginning(moment.detail, OUTPUT_LINES) if words else one_line(moment.title, 300)
    if moment.kind == "question" and moment.output:
        said += f' "{one_line(moment.output, 200)}"'
    mark: Mark = "words" if words and moment.ok is not False else _MARKS[moment.ok]
    yield Line(mark, f"{at}{at and '  '}{who}{said}", _tail(moment))
    if moment.reasoning:
        yield Line("same", f"reasoning: {one_line(moment.reasoning, 150)}")
    if moment.kind == "recovery" and moment.detail:
        yield Line("words", one_line(moment.detail))
    if moment.ok is False and moment.output.strip():
        yield from (Line("same", line) for line in _ending(moment.output))
    yield from (Line("note", one_line(e, 300), whole=": daruma undo " in e) for e in moment.lines)
    if moment.ok is not False:  # else the file is as it was
        yield from _diff(moment.diff.splitlines())


def _when(at: float, start: float) -> str:
    minutes, seconds = divmod(int(max(0.0, at - start)), 60)
    hours, minutes = divmod(minutes, 60)
    offset = f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
    return f"{clock(at, '%H:%M:%S')} +{offset}"


def _diff(lines: Iterable[str]) -> Iterator[Line]:
    changed = [line for line in lines if not line.startswith(("+++", "---", "@@", "\\"))]
    for line in changed[:DIFF_LINES]:
        yield Line(_DIFF.get(line[:1], "same"), line[1:])
    if len(changed) > DIFF_LINES:
        yield Line("same", f"… {len(changed) - DIFF_LINES} more lines of this change{_WHOLE}")


def _ending(output: str) -> list[str]:
    """Return what an output ends with: that is where commands say what went wrong."""
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    more = [f"… {len(lines) - OUTPUT_LINES} lines before{_WHOLE}"]
    return [*(more if len(lines) > OUTPUT_LINES else []), *lines[-OUTPUT_LINES:]]


_WHOLE: Final = ": `daruma show --json` holds them"


def _tail(moment: Moment) -> str:
    told = (render_duration_if_any(moment.seconds), *cost_of(moment), one_line(moment.note, 200))
    return " · ".join(filter(None, told))


def cost_of(of: Timeline | Moment) -> tuple[str, str]:
    """Return how many tokens it took, and how much money, as far as they are known."""
    return f"{of.tokens:,} tokens" if of.tokens else "", f"${of.usd:.4f}" if of.usd else ""


def clock(at: float, form: str) -> str:
    """Return a time as this machine's clock shows it."""
    return datetime.fromtimestamp(at).astimezone().strftime(form)
