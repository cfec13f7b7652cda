"""Live progress of a run, and how it ended."""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, Self, TypeVar

from rich.console import Group
from rich.live import Live

from daruma.graph.command_line._event_lines import change_lines, lines_of
from daruma.graph.command_line._output import Line, Paper
from daruma.graph.command_line._panel import (
    OPENS,
    GoingOn,
    Now,
    Spent,
    bar,
    in_words,
    panel,
    phases_of,
    spent_of,
)
from daruma.graph.command_line._printable import beginning, one_line
from daruma.graph.timeline import call_title
from daruma.state.task import Task

# --- Live progress of a run: a line for all that happened, and below it what is going on now.

T = TypeVar("T")

_MOVE_SECONDS = 0.2
_MEMBER = {"member_started": True, "member_completed": False}


class Progress:
    """Watches the parts of a stream and prints them, inside of ``with``, any number of times.

    ``asides`` are remarks by event type; each is made once, before its event.
    """

    def __init__(self, paper: Paper, asides: Mapping[str, str] | None = None) -> None:
        self._paper = paper
        self._asides = dict(asides or {})
        self.plan_shown = False
        self._thread = ""
        self._going_on = GoingOn()
        self._calls: dict[str, Mapping[str, Any]] = {}
        self._spent: tuple[Spent, ...] = ()
        self._task: Task | None = None
        self._plan: Mapping[str, Any] = {}
        self._busy: dict[str, bool] = {}
        self._over = False
        self._ran, self._began = 0.0, self._going_on.now()
        self._live: Live | None = None

    def __enter__(self) -> Self:
        self._began = self._going_on.now() - self._ran
        if self._paper.terminal:
            # What is printed meanwhile goes above it; `_move` draws it anew, on the run's own loop.
            self._live = Live(
                console=self._paper.console,
                get_renderable=self._panel,
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
        self._over = kind == "task_completed"
        if aside := self._asides.pop(kind, ""):
            self._paper.put(Line("aside", aside))
        self._paper.put(*lines_of({"thread": self._thread, **event}, self._going_on.close(event)))
        self.plan_shown |= kind == "plan_proposed"
        if kind == "tool_completed" and event["ok"]:
            self._paper.put(*change_lines(self._calls.get(event["call_id"], {})))
        if kind in OPENS:
            member = f"{event['member']}: " if event.get("member") else ""
            self._going_on.open(event, member + self._title(event))

    def _state(self, values: Mapping[str, Any]) -> None:
        before, self._spent = self._spent, spent_of(values)
        self._task, plan = values.get("task"), values.get("plan")
        self._plan = plan.to_dict() if plan else {}
        verified = [each for each in self._spent if each.kind == "verify" and each.spent]
        if verified and not self._paper.terminal and set(verified) - set(before):
            self._paper.put(Line("note", f"spent: {in_words(self._spent)}"))

    def _words(self, update: Mapping[str, Any] | None) -> None:
        verified = len(self._spent) > 1  # else the answer is the result, which is shown whole
        for message in (update or {}).get("messages", ()):
            if message.type == "ai" and message.text.strip() and (message.tool_calls or verified):
                self._paper.put(Line("words", beginning(message.text, 4)))
            self._calls |= {call["id"]: call["args"] for call in getattr(message, "tool_calls", ())}

    def _panel(self) -> Group:
        if self._over:
            return Group()
        console = self._paper.console
        columns, rows = console.width - 1, max(1, console.height - 1)
        ascii_only, clock = console.options.ascii_only, self._going_on.now()
        shown = Now(
            goal=self._task.goal if self._task else "",
            mode=self._task.mode if self._task else "",
            phases=phases_of(self._plan, {name for name, busy in self._busy.items() if busy}),
            seconds=clock - self._began,
            budget=bar(self._spent, ascii_only=ascii_only),
            activities=self._going_on.activities,
            clock=clock,
        )
        lines = panel(shown, columns, rows, ascii_only=ascii_only)
        for line in lines:
            line.truncate(columns, overflow="ellipsis")
        return Group(*lines)

    def _title(self, event: Mapping[str, Any]) -> str:
        if event["type"] == "model_call_started":
            return f"{event['node']} asks {event['model']}"
        if event["type"] == "tool_started":
            args = self._calls.get(event["call_id"])  # unknown where another process asked
            known = call_title(event["tool"], args) if args else ""
            return one_line(known or f"{event['tool']} {event['summary']}", 100)
        commands = event.get("commands") or [event.get("command", "")]
        return f"running {', '.join(commands)}"
