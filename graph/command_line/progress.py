"""Live progress of a run: a line for all that happened, and below it what is going on now."""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, Self, TypeVar

from rich.text import Text

from daruma.graph.command_line.budget_bar import Spent, bar, in_words, spent_of
from daruma.graph.command_line.call_lines import change_lines
from daruma.graph.command_line.event_lines import lines_of
from daruma.graph.command_line.going_on import OPENS, GoingOn
from daruma.graph.command_line.live_region import LiveRegion
from daruma.graph.command_line.panel import Now, panel, phases_of
from daruma.graph.command_line.paper import Line, Paper
from daruma.graph.command_line.printable import beginning, one_line
from daruma.graph.pictures.call_title import call_title
from daruma.state.task import Task

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
        self._live = LiveRegion(paper.console, self._panel)

    def __enter__(self) -> Self:
        self._began = self._going_on.now() - self._ran
        if self._paper.terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ran = self._going_on.now() - self._began  # a person's time is not the run's
        self._going_on.clear()
        self._live.stop()

    async def over(self, work: Coroutine[Any, Any, T]) -> T:
        """Await work while the picture below moves on."""
        moving = asyncio.create_task(self._move())
        try:
            return await work
        finally:
            moving.cancel()

    async def _move(self) -> None:
        while self._live.is_open:
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

    def _panel(self, columns: int, rows: int) -> list[Text]:
        if self._over:
            return []
        ascii_only, clock = self._paper.console.options.ascii_only, self._going_on.now()
        shown = Now(
            goal=self._task.goal if self._task else "",
            mode=self._task.mode if self._task else "",
            phases=phases_of(self._plan, {name for name, busy in self._busy.items() if busy}),
            seconds=clock - self._began,
            budget=bar(self._spent, ascii_only=ascii_only),
            activities=self._going_on.activities,
            clock=clock,
        )
        return panel(shown, columns, rows, ascii_only=ascii_only)

    def _title(self, event: Mapping[str, Any]) -> str:
        if event["type"] == "model_call_started":
            return f"{event['node']} asks {event['model']}"
        if event["type"] == "tool_started":
            args = self._calls.get(event["call_id"])  # unknown where another process asked
            known = call_title(event["tool"], args) if args else ""
            return one_line(known or f"{event['tool']} {event['summary']}", 100)
        commands = event.get("commands") or [event.get("command", "")]
        return f"running {', '.join(commands)}"
