"""A command's whole talk with a person, here or after it is left to a worker."""

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import typer
from langgraph.types import Command
from rich.console import Console

from daruma.graph.command_line._asking import ask, yes_to
from daruma.graph.command_line._output import Line, Paper
from daruma.graph.command_line._printable import resume_command
from daruma.graph.command_line._progress import Progress
from daruma.graph.command_line._session import Go, Replies, Session, Start, Submitting
from daruma.graph.command_line._thread_story import print_questions, print_summary
from daruma.graph.command_line._thread_view import Stop
from daruma.graph.sync import Cancelled, run_interruptible
from daruma.state.result import TaskResult

# --- A command's whole talk with a person: run, ask, run on, and say how it ended.

WAITING = 3
_EXIT_CODES = {"completed": 0, "parked": WAITING, "cancelled": 130}


def exit_code(stop: Stop) -> int:
    """Return 0 for a completed task, 1 for one that ended otherwise, 3 while a person is needed."""
    if stop.result is None:
        return WAITING if stop.questions else 1
    return _EXIT_CODES.get(stop.result.status, 1)


@dataclass
class Conversation:
    """How a command talks: ``yes`` agrees by itself, ``json`` leaves standard output to programs.

    ``automatic`` answers open questions before anybody is asked; ``asides`` are told as events
    happen.
    """

    yes: bool = False
    json: bool = False
    automatic: Callable[[Stop], Replies] | None = None
    asides: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.paper = Paper(Console(stderr=self.json, highlight=False))
        self._plan_known = self._asked = False
        self._told: TaskResult | None = None
        self._ended: Stop | None = None

    @property
    def ended(self) -> bool:
        """Whether the answer is told, and only what is learned of it is waited for."""
        return self._ended is not None

    @property
    def asks(self) -> bool:
        """Whether a person can be asked: somebody who types, and who sees what is said."""
        typing = sys.stdin is not None and sys.stdin.isatty()
        return typing and not self.json and self.paper.console.is_terminal

    def hold(self, session: Session, start: Start) -> int:
        """Run a thread until it ends or waits, and return the exit code."""
        try:
            stop = self._until_waiting(session, start)
        except (Cancelled, KeyboardInterrupt) as end:
            if self._ended:  # only what is learned of it was called off
                return exit_code(self._ended)
            self.tell_cancelled(session)
            return end.exit_code if isinstance(end, Cancelled) else 130
        if not self._ended:
            self._tell(stop)
        return exit_code(stop)

    def progress(self) -> Progress:
        """Return what shows a run while it goes on."""
        return Progress(self.paper, self.asides)

    def _until_waiting(self, session: Session, start: Start) -> Stop:
        progress = self.progress()
        automatic = self.automatic or (lambda stop: yes_to(stop.questions) if self.yes else {})
        session.person = self.asks and self.automatic is None
        while True:
            with progress:
                advance = session.advance(start, progress, automatic, self._end)
                stop = run_interruptible(progress.over(advance))
            self._plan_known |= progress.plan_shown
            replies = self._ask(stop)
            if not replies:
                return stop
            start = _going(replies)

    def _end(self, stop: Stop) -> None:
        """Tell an answer at once; what is learned of it comes after (EV-01)."""
        if stop.result and not stop.questions:
            self._ended = stop
            self._tell(stop)

    def _ask(self, stop: Stop) -> Replies:
        self._asked = self.asks
        if not self._asked:
            return {}
        if stop.questions:
            self._sum_up(stop)  # of a thread that is parked or held
        return ask(stop, self.paper, known=self._plan_known)

    def _tell(self, stop: Stop) -> None:
        if self.json:
            asked = [{"id": each.id, "value": each.value} for each in stop.questions]
            waiting = {"interrupts": asked} if asked or not stop.result else {}
            ended = stop.result.to_dict() if stop.result else {}
            typer.echo(json.dumps({"thread": stop.thread, **ended, **waiting}))
        self._sum_up(stop)
        if stop.questions:
            print_questions(self.paper, stop, known=self._plan_known, asked=self._asked)
        elif not stop.result:
            self.paper.put(Line("bad", f"unfinished: go on with {resume_command(stop.thread)}"))

    def _sum_up(self, stop: Stop) -> None:
        if stop.result and stop.result is not self._told:
            print_summary(self.paper, stop.thread, stop.result, stop.savepoints)
        self._told = stop.result

    def tell_cancelled(self, session: Session) -> None:
        """Say that a run was cancelled, and how to go on with it."""
        again = f"go on with {resume_command(session.thread)}"
        self.paper.put(Line("head", "Cancelled", again if session.reached else "nothing had begun"))


def _going(replies: Replies) -> Start:
    return lambda _: Go(Command(resume=dict(replies)))


# --- How a command talks: it runs the work here, or leaves it to a worker.


def talk_of(*, submit: bool, yes: bool, json: bool) -> Conversation | Submitting:
    """Return how to talk. Raises a usage error for ``--submit`` with ``--yes``."""
    if not submit:
        return Conversation(yes=yes, json=json)
    if yes:
        raise typer.BadParameter("a worker agrees to nothing: answer with `daruma answer`")
    return Submitting(json)
