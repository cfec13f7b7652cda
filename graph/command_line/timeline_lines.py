"""A timeline on a terminal: a line for each thing that happened, phases as sections."""

import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final

from daruma.graph.command_line.paper import Line, Mark
from daruma.graph.command_line.printable import beginning, one_line
from daruma.graph.durations import ago, duration, duration_if_any
from daruma.graph.pictures.moment import Moment
from daruma.graph.pictures.timeline import Timeline

_MARKS: Final[Mapping[bool | None, Mark]] = {True: "ok", False: "bad", None: "note"}
_DIFF: Final[Mapping[str, Mark]] = {"+": "plus", "-": "minus"}
_ELSEWHERE: Final = frozenset({"savepoint"})
"""Kinds of moments that have a place of their own in a thread's story."""

DIFF_LINES: Final = 12
OUTPUT_LINES: Final = 4


def when_lines(timeline: Timeline, now: float | None = None) -> Iterator[Line]:
    """Yield when it began and how long that is ago, how long it took, and what it cost."""
    if not timeline.started_at:
        return
    since = max(0.0, (time.time() if now is None else now) - timeline.started_at)
    began = _clock(timeline.started_at, "%Y-%m-%d %H:%M:%S")
    took = max(0.0, timeline.updated_at - timeline.started_at)
    yield Line("note", f"began {began}, {ago(since)}; took {duration(took)}{_cost(timeline)}")


def timeline_lines(timeline: Timeline, tail: int | None = None) -> Iterator[Line]:
    """Yield all moments, or the last ``tail`` of them and how many came before."""
    told = [each for each in timeline.moments if each.kind not in _ELSEWHERE]
    shown = told if tail is None else told[max(0, len(told) - tail) :]
    yield Line("head", "Timeline", _left_out(len(told) - len(shown), whole=timeline.whole))
    for moment in shown:
        yield from moment_lines(moment, timeline.started_at)


def moment_lines(moment: Moment, start: float = 0.0) -> Iterator[Line]:
    """Yield one moment: its time and how long after ``start`` that is, and what came of it."""
    at = f"{_clock(moment.at, '%H:%M:%S')} +{_offset(moment.at - start)}"
    if moment.kind == "phase" and moment.ok is None:
        yield Line("head", one_line(moment.title), at)
        return
    who = f"{moment.member}: " if moment.member else ""
    words = moment.kind in ("model", "reflection") and moment.detail
    said = beginning(moment.detail, OUTPUT_LINES) if words else one_line(moment.title, 300)
    mark: Mark = "words" if words and moment.ok is not False else _MARKS[moment.ok]
    yield Line(mark, f"{at}  {who}{said}", _tail(moment))
    if moment.ok is False and moment.output.strip():
        yield from (Line("same", line) for line in _ending(moment.output))
    yield from _diff(moment.diff.splitlines())


def _diff(lines: Iterable[str]) -> Iterator[Line]:
    changed = [line for line in lines if not line.startswith(("+++", "---", "@@", "\\"))]
    for line in changed[:DIFF_LINES]:
        yield Line(_DIFF.get(line[:1], "same"), line[1:])
    if len(changed) > DIFF_LINES:
        more = len(changed) - DIFF_LINES
        yield Line("same", f"… {more} more lines of this change: --json holds them")


def _ending(output: str) -> list[str]:
    """Return what an output ends with: that is where commands say what went wrong."""
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    more = [f"… {len(lines) - OUTPUT_LINES} lines before: --json holds them"]
    return [*(more if len(lines) > OUTPUT_LINES else []), *lines[-OUTPUT_LINES:]]


def _tail(moment: Moment) -> str:
    told = (
        duration_if_any(moment.seconds),
        f"{moment.tokens:,} tokens" if moment.tokens else "",
        f"${moment.usd:.4f}" if moment.usd else "",
        one_line(moment.note, 200),
    )
    return " · ".join(each for each in told if each)


def _cost(timeline: Timeline) -> str:
    tokens = f" · {timeline.tokens:,} tokens" if timeline.tokens else ""
    return tokens + (f" · ${timeline.usd:.4f}" if timeline.usd else "")


def _left_out(number: int, *, whole: bool) -> str:
    before = f"{number} moments before are left out" if number else ""
    thinned = "" if whole else "what came first was thinned away"
    return "; ".join(each for each in (before, thinned) if each)


def _clock(at: float, form: str) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime(form)


def _offset(seconds: float) -> str:
    minutes, rest = divmod(int(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
