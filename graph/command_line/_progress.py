"""What is shown of a run while it goes on."""

import asyncio
import time
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Self, TypeVar, cast, get_args

from rich.console import Group
from rich.live import Live
from rich.text import Text

from daruma.graph.command_line._messages import beginning, one_line
from daruma.graph.command_line._moment_lines import lines_of
from daruma.graph.command_line._output import Line, Paper
from daruma.graph.timeline import Call, call_title, render_duration
from daruma.state.channels import State
from daruma.state.spending import format_amount, standing
from daruma.state.steps import StepKind
from daruma.state.task import Measure, Task

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
                format_amount(measure, each).removesuffix(" tokens")
                for each in (self.spent, self.of)
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
        """Note what an event of ``OPENS`` begins, before it the member who does it."""
        self._open[event["type"], _name(event)] = Activity(_who(event) + title, self.now())

    def close(self, event: Event) -> str:
        """Return the title of what an event ends; empty when it ends nothing that is known."""
        ended = self._open.pop((_CLOSES.get(event["type"], ""), _name(event)), None)
        return ended.title.removeprefix(_who(event)) if ended else ""

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


def _who(event: Event) -> str:
    return f"{event['member']}: " if event.get("member") else ""


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
    """A run at one moment. ``phases`` are titles with their status, ``todo`` the model's own steps
    in the same way, ``seconds`` is how long it runs.

    ``clock`` is the time that activities began on.
    """

    goal: str = ""
    mode: str = ""
    seconds: float = 0.0
    phases: Sequence[tuple[str, str]] = ()
    budget: Text | None = None
    activities: Sequence[Activity] = ()
    clock: float = 0.0
    todo: Sequence[tuple[str, str]] = ()


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
        *_phases(now.todo, symbols, PHASES if rows >= LOW else 1),
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


# --- Live progress of a run: a line for all that happened, and below it what is going on now.

T = TypeVar("T")

_MOVE_SECONDS = 0.2
_STATUSES = {"pending": "pending", "in_progress": "running", "done": "completed"}
"""How the steps of the model's own list stand, in the words of phases."""
_MEMBER = {"member_started": True, "member_completed": False}


class Progress:
    """Watches the parts of a stream and prints them, inside of ``with``, any number of times.

    ``asides`` are remarks by event type; each is made once, before its event. What goes on now
    stands below, unless somebody else shows the ``picture``, who leaves ``free`` rows of the
    terminal to other things.
    """

    def __init__(
        self,
        paper: Paper,
        asides: Mapping[str, str] | None = None,
        *,
        below: bool = True,
        free: int = 1,
    ) -> None:
        self._paper = paper
        self._below, self._free = below, free
        self._asides = dict(asides or {})
        self.plan_shown = False
        self._thread = ""
        self._going_on = GoingOn()
        self._calls: dict[tuple[str, str], Call] = {}
        self._spent: tuple[Spent, ...] = ()
        self._task: Task | None = None
        self._plan: Mapping[str, Any] = {}
        self._todo: list[tuple[str, str]] = []
        self._busy: dict[str, bool] = {}
        self._over = False
        self._ran, self._began = 0.0, self._going_on.now()
        self._live: Live | None = None

    def __enter__(self) -> Self:
        self._began = self._going_on.now() - self._ran
        if self._below and self._paper.terminal:
            # What is printed meanwhile goes above it; `_move` draws it anew, on the run's own loop.
            self._live = Live(
                console=self._paper.console,
                get_renderable=lambda: Group(*self.picture()),
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
                vertical_overflow="crop",
            )
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ran = self._going_on.now() - self._began  # a person's time is not the run's
        self._going_on.clear()
        if self._live:
            self._live.stop()
            self._live = None

    async def over(self, work: Coroutine[Any, Any, T]) -> T:
        """Await work while the picture below moves on."""
        moving = asyncio.create_task(self._move())
        try:
            return await work
        finally:
            moving.cancel()

    async def _move(self) -> None:
        while self._live:
            self._live.refresh()
            await asyncio.sleep(_MOVE_SECONDS)

    def begin(self, thread: str, model: str) -> None:
        """Say which thread runs, and with which model; once."""
        if not self._thread:
            self._paper.put(Line("head", f"thread {thread}", model))
        self._thread = thread

    def see(self, mode: str, part: Mapping[str, Any]) -> None:
        """Take one part of a stream with the modes ``custom``, ``updates`` and ``values``."""
        if mode == "custom":
            self._event(part)
        elif mode == "values":
            self._state(part)
        else:
            self._words(part.get("main"))

    def _event(self, event: Mapping[str, Any]) -> None:
        kind = event["type"]
        if kind == "command_output":
            self._going_on.heard(event)
            return
        if kind in _MEMBER:
            self._busy[event["phase_id"]] = _MEMBER[kind]
        if kind == "todo_changed" and not event.get("member"):
            self._todo = [(each["text"], _STATUSES[each["status"]]) for each in event["items"]]
        self._over = kind == "task_completed"
        if aside := self._asides.pop(kind, ""):
            self._paper.put(Line("aside", aside))
        title = self._going_on.close(event)
        if kind == "approval_request":
            who, asked = event.get("member", ""), event["question"]["approvals"]
            self._calls |= {(who, a["approval_id"]): (a["tool"], a["args"]) for a in asked}
        call = self._call(event)
        self._paper.put(*lines_of({"thread": self._thread, **event}, call, title))
        self.plan_shown |= kind == "plan_proposed"
        if kind in OPENS:
            self._going_on.open(event, self._title(event))

    def _state(self, values: Mapping[str, Any]) -> None:
        before, self._spent = self._spent, spent_of(values)
        self._calls |= {("", call.id): (call.name, call.args) for call in values.get("calls", ())}
        self._task, plan = values.get("task"), values.get("plan")
        self._plan = plan.to_dict() if plan else {}
        verified = [each for each in self._spent if each.kind == "verify" and each.spent]
        if verified and not self._paper.terminal and set(verified) - set(before):
            self._paper.put(Line("note", f"spent: {in_words(self._spent)}"))

    def _call(self, event: Event) -> Call | None:
        id_ = event.get("call_id") or event.get("approval_id", "")
        return self._calls.get((event.get("member", ""), id_))

    def _words(self, update: Mapping[str, Any] | None) -> None:
        verified = len(self._spent) > 1  # else the answer is the result, which is shown whole
        for message in (update or {}).get("messages", ()):
            if message.type == "ai" and message.text.strip() and (message.tool_calls or verified):
                self._paper.put(Line("words", beginning(message.text, 4)))

    def picture(self) -> list[Text]:
        """Return the lines that say what goes on now, as wide and as high as the terminal is."""
        if self._over:
            return []
        console = self._paper.console
        columns, rows = console.width - 1, max(1, console.height - self._free)
        ascii_only, clock = console.options.ascii_only, self._going_on.now()
        shown = Now(
            goal=self._task.goal if self._task else "",
            mode=self._task.mode if self._task else "",
            phases=phases_of(self._plan, {name for name, busy in self._busy.items() if busy}),
            todo=self._todo,
            seconds=clock - self._began,
            budget=bar(self._spent, ascii_only=ascii_only),
            activities=self._going_on.activities,
            clock=clock,
        )
        lines = panel(shown, columns, rows, ascii_only=ascii_only)
        for line in lines:
            line.truncate(columns, overflow="ellipsis")
        return lines

    def _title(self, event: Mapping[str, Any]) -> str:
        if event["type"] == "model_call_started":
            return f"{event['node']} asks {event['model']}"
        if event["type"] == "tool_started":
            call = self._call(event)  # unknown where another process asked
            known = call_title(event["tool"], call[1]) if call else ""
            return one_line(known or f"{event['tool']} {event['summary']}", 100)
        commands = event.get("commands") or [event.get("command", "")]
        return f"running {', '.join(commands)}"
