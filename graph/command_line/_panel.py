"""What is shown of a run while it goes on."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, cast, get_args

from rich.text import Text

from daruma.graph.command_line._printable import one_line
from daruma.graph.timeline import render_duration
from daruma.state.channels import State
from daruma.state.spending import shown, standing
from daruma.state.steps import StepKind
from daruma.state.task import Measure

# --- How much of its budget a task has spent, as a bar of blocks and as words.

_WIDEST = 10
_KNOWN = frozenset(field.name for field in fields(State))


@dataclass(frozen=True)
class Spent:
    """Steps of one kind, or a measure: how much was spent, and how much may be."""

    kind: StepKind | Measure
    spent: float
    of: float

    @property
    def amounts(self) -> tuple[str, str]:
        """What was spent and what may be, as people write it."""
        if self.kind in get_args(Measure):
            measure = cast(Measure, self.kind)
            spent, of = (
                shown(measure, each).removesuffix(" tokens") for each in (self.spent, self.of)
            )
            return spent, of
        return f"{self.spent:g}", f"{self.of:g}"


def spent_of(values: Mapping[str, Any]) -> tuple[Spent, ...]:
    """Count what a state has spent against the limits of its current phase, or without one its own.

    Tokens, money and time are those of the whole task, where it has a limit of them.
    """
    state = State(**{key: value for key, value in values.items() if key in _KNOWN})
    if state.task is None:
        return ()
    hidden = () if state.task.verify else ("verify", "reflect")
    return tuple(
        Spent(cast("StepKind | Measure", kind), *amounts)
        for kind, amounts in standing(state).items()
        if kind not in hidden
    )


def in_words(spent: tuple[Spent, ...]) -> str:
    """Return ``think 3 of 7, verify 1 of 2``."""
    return ", ".join(f"{each.kind} {' of '.join(each.amounts)}" for each in spent)


def bar(spent: tuple[Spent, ...], *, ascii_only: bool = False) -> Text:
    """Draw the budget: one block for each step, or ten blocks for more than ten."""
    full, empty = ("#", ".") if ascii_only else ("▰", "▱")
    text = Text()
    for each in spent:
        blocks = int(min(each.of, _WIDEST)) if each.kind not in get_args(Measure) else _WIDEST
        filled = int(min(blocks, -(-each.spent * blocks // each.of))) if each.of else 0
        text.append(f"  {each.kind} ", style="dim")
        text.append(full * filled, style="yellow" if filled == blocks else "green")
        text.append(empty * (blocks - filled), style="dim")
        text.append(f" {'/'.join(each.amounts)}", style="dim")
    return text


# --- What is going on in a run at the moment: opened by one event, closed by another.

Event = Mapping[str, Any]

OPENS = frozenset(
    {"model_call_started", "tool_started", "verification_started", "phase_rollback_started"}
)
_CLOSES = {
    "model_call_completed": "model_call_started",
    "tool_completed": "tool_started",
    "verification_completed": "verification_started",
    "phase_rollback_completed": "phase_rollback_started",
    "phase_rollback_failed": "phase_rollback_started",
}
_RUNS = {"tool": "tool_started", "verification": "verification_started"}
"""What a command's output belongs to, by its purpose; other commands are of a rollback."""


@dataclass(frozen=True)
class Activity:
    """Something that goes on: since when, on the clock of ``GoingOn``, and what it wrote last."""

    title: str
    since: float
    lines: tuple[str, ...] = ()


class GoingOn:
    """The activities that are open, the newest last. ``now`` gives seconds of any clock."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self._open: dict[tuple[str, str], Activity] = {}

    def open(self, event: Event, title: str) -> None:
        """Note what an event of ``OPENS`` begins."""
        self._open[event["type"], _name(event)] = Activity(title, self.now())

    def close(self, event: Event) -> str:
        """Return the title of what an event ends; empty when it ends nothing that is known."""
        ended = self._open.pop((_CLOSES.get(event["type"], ""), _name(event)), None)
        return ended.title if ended else ""

    def heard(self, event: Event) -> None:
        """Note what a command wrote, with what it runs for."""
        kind = _RUNS.get(event["purpose"], "phase_rollback_started")
        if found := self._open.get((kind, _name(event))):
            said = replace(found, lines=tuple(event["lines"]))
            if kind == "verification_started":
                said = replace(said, title=f"$ {event['command']}")
            self._open[kind, _name(event)] = said

    def clear(self) -> None:
        """Forget everything: the run has stopped."""
        self._open.clear()

    @property
    def activities(self) -> tuple[Activity, ...]:
        """All that goes on, what began first before the rest."""
        return tuple(self._open.values())


def _name(event: Event) -> str:
    name = str(event.get("call_id") or event.get("node") or "")
    return f"{event.get('member', '')} {name}"


# --- What is shown of a run while it goes on: its goal, phases, budget, and what it is doing.

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
        each for each in (render_duration(now.seconds, whole=True), now.mode, now.goal) if each
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
        tail = f"  {render_duration(seconds, whole=True)}" if seconds >= 1 else ""
        title = Text(f"  {move} {one_line(activity.title)}")
        title.truncate(max(8, columns - len(tail)), overflow="ellipsis")
        yield title.append(tail, style="dim")
        said = activity.lines[-output:] if output else ()
        for line in said[-1:] if len(shown) > 1 else said:
            yield Text(f"    {symbols['bar']} {one_line(line, 300)}", style="dim")
