"""What is shown of a run while it goes on: its goal, phases, budget, and what it is doing."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.text import Text

from daruma.graph.command_line.going_on import Activity
from daruma.graph.command_line.printable import one_line
from daruma.graph.durations import duration

PHASES: Final = 5
ACTIVITIES: Final = 4
OUTPUT: Final = 3
"""Lines of each kind: the panel stays small."""

LOW: Final = 12
"""Rows; a terminal with fewer gets one line about the phases and no output."""

_UTF8 = {"completed": "✓", "failed": "✗", "running": "▶", "pending": "·", "bar": "│"}
_ASCII = {"completed": "+", "failed": "x", "running": ">", "pending": "-", "bar": "|"}
_STYLES = {"completed": "green", "failed": "bold red", "running": "bold", "pending": "dim"}
_SPINNER, _ASCII_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "-\\|/"
_MOVES: Final = 5
"""Pictures of the spinner in a second."""


@dataclass(frozen=True)
class Now:
    """A run at one moment. ``phases`` are titles with their status, ``seconds`` how long it runs.

    ``clock`` is the time that activities began on.
    """

    goal: str = ""
    mode: str = ""
    seconds: float = 0.0
    phases: Sequence[tuple[str, str]] = ()
    budget: Text | None = None
    activities: Sequence[Activity] = ()
    clock: float = 0.0


def phases_of(plan: Mapping[str, Any], busy: Collection[str]) -> list[tuple[str, str]]:
    """Return a plan's phases as a panel shows them; those that members are ``busy`` with run."""
    return [
        (phase["title"], "running" if phase["id"] in busy else phase["status"])
        for phase in plan.get("phases", ())
    ]


def panel(now: Now, columns: int, rows: int, *, ascii_only: bool = False) -> list[Text]:
    """Return the lines that fit; texts come from anywhere, and nothing in them is obeyed."""
    symbols = _ASCII if ascii_only else _UTF8
    parts = [
        *_head(now, symbols),
        *_phases(now.phases, symbols, PHASES if rows >= LOW else 1),
        *([now.budget] if now.budget else []),
        *_activities(now, symbols, columns, OUTPUT if rows >= LOW else 0),
    ]
    return parts[-rows:]


def _head(now: Now, symbols: Mapping[str, str]) -> Iterator[Text]:
    if not now.goal:
        return
    said = f" {symbols['pending']} ".join(
        each for each in (duration(now.seconds, whole=True), now.mode, now.goal) if each
    )
    yield Text(f"  {one_line(said)}", style="dim")


def _phases(
    phases: Sequence[tuple[str, str]], symbols: Mapping[str, str], most: int
) -> Iterator[Text]:
    """Yield those around the first that runs; with room for one line only, what comes of all."""
    if len(phases) < 2:
        return
    at = next((i for i, (_, status) in enumerate(phases) if status == "running"), 0)
    first = max(0, min(at - most // 2, len(phases) - most))
    for number, (title, status) in enumerate(phases[first : first + most], first + 1):
        text = f"  {symbols.get(status, ' ')} {number} of {len(phases)}  {one_line(title)}"
        yield Text(text, style=_STYLES.get(status, ""))


def _activities(now: Now, symbols: Mapping[str, str], columns: int, output: int) -> Iterator[Text]:
    spinner = _ASCII_SPINNER if symbols is _ASCII else _SPINNER
    move = spinner[int(now.clock * _MOVES) % len(spinner)]
    shown = now.activities[-ACTIVITIES:]
    if more := len(now.activities) - len(shown):
        yield Text(f"  {move} and {more} more", style="dim")
    for activity in shown:
        seconds = now.clock - activity.since
        tail = f"  {duration(seconds, whole=True)}" if seconds >= 1 else ""
        title = Text(f"  {move} {one_line(activity.title)}")
        title.truncate(max(8, columns - len(tail)), overflow="ellipsis")
        yield title.append(tail, style="dim")
        said = activity.lines[-output:] if output else ()
        for line in said[-1:] if len(shown) > 1 else said:
            yield Text(f"    {symbols['bar']} {one_line(line, 300)}", style="dim")
