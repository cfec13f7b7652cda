"""``daruma chat``: one thread in a talk. A line is a task; a line while it works is told to it."""

import asyncio
import io
import os
import select
import signal
import sys
import termios
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent import futures
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, TypeVar

import typer
from langgraph.types import StateSnapshot
from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app_or_none, run_in_terminal
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_focus
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.output import create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from rich.console import Console
from rich.text import Text
from typing_extensions import override

from daruma.graph.command_line._messages import UsageMistake, complaint, kept, one_line, usage_line
from daruma.graph.command_line._output import Line, Paper, Pasted, context_table
from daruma.graph.command_line._progress import Progress, spent_of
from daruma.graph.command_line._questions import plan_lines
from daruma.graph.command_line._session import (
    Conversation,
    Go,
    Replies,
    Session,
    Start,
    unfinished,
    usable_model,
)
from daruma.graph.command_line._settings import agreed
from daruma.graph.command_line._thread_view import Stop
from daruma.graph.command_line._threads import show, threads, undo
from daruma.graph.storage import aopen_postgres
from daruma.graph.sync import Cancelled, run_interruptible
from daruma.graph.timeline import event_moment, read_snapshot
from daruma.state.errors import DarumaError
from daruma.state.mode import MODES, Mode
from daruma.state.settings import UntrustedSettings
from daruma.state.text import on_thread, pasted

T = TypeVar("T")

# --- The line that is typed on, and what is printed above it.


class Above(io.StringIO):
    """Standard output, written above an open prompt: that is taken away, and drawn anew below."""

    def __init__(self) -> None:
        super().__init__()
        self._parts, self._scheduled = deque[str](), False

    @override
    def write(self, text: str) -> int:
        self._parts += [text] if text else []  # drawing the prompt writes nothing, and draws none
        return len(text)

    @property
    @override
    def encoding(self) -> str:  # type: ignore[override]
        return sys.stdout.encoding

    @override
    def isatty(self) -> bool:
        return sys.stdout.isatty()

    @override
    def flush(self) -> None:
        app = get_app_or_none()
        if app is None or not app.is_running:
            self._write()
        elif self._parts and not self._scheduled:
            self._scheduled = True
            run_in_terminal(self._write)

    def _write(self) -> None:
        self._scheduled = False
        with suppress(IndexError):  # of several threads each writes what it finds
            while True:
                sys.stdout.write(self._parts.popleft())
        sys.stdout.flush()


@contextmanager
def unread() -> Iterator[None]:
    """Let keys wait, unseen, for the next line to type on; Ctrl-C alone is a signal.

    Otherwise a terminal would echo them meanwhile, and take a Ctrl-D for itself.
    """
    before, mode = termios.tcgetattr(sys.stdin), termios.tcgetattr(sys.stdin)
    mode[0] &= ~termios.ICRNL
    mode[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(sys.stdin, termios.TCSANOW, mode)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSANOW, before)


def typed_ahead() -> str:
    """Return what was typed while there was no line to type on: it stands there, and is not sent.

    Otherwise each line of a paste would be one.
    """
    found = b""
    with unread():
        while select.select([sys.stdin], [], [], 0)[0] and (more := os.read(0, 65536)):
            found += more
    text = found.decode(errors="ignore").replace("\r", "\n")
    return "" if "\x1b" in text else "".join(c for c in text if c.isprintable() or c == "\n")


class Keys(Vt100Input):
    """Keys, which wait also while something is printed above the line."""

    @override
    def cooked_mode(self) -> AbstractContextManager[None]:
        return unread()


class Prompt:
    """The line that a person types on, below the ``picture`` of what goes on.

    ``kept`` is text that was typed and not sent: the next line begins with it. ``names`` are
    completed.
    """

    def __init__(self, paper: Paper, names: list[str]) -> None:
        self.kept = ""
        self._paper, self._working = paper, False
        self._names = names
        self._picture: Callable[[], list[Text]] = list

    @cached_property
    def _session(self) -> PromptSession[str]:
        """What reads; it draws on the terminal at once when it is made."""
        output = create_output()
        if isinstance(output, Vt100_Output):
            output.enable_cpr = False  # a terminal that does not answer would be waited for
        return PromptSession[str](
            message=self._message,
            multiline=True,
            prompt_continuation="  ",
            key_bindings=self._keys(),
            completer=WordCompleter(self._names, sentence=True),
            complete_while_typing=False,
            reserve_space_for_menu=4,
            erase_when_done=True,  # what was sent is printed as all else is
            input=Keys(sys.stdin),
            output=output,
        )

    @property
    def text(self) -> str:
        """What is typed so far."""
        return self._session.default_buffer.text

    async def read(self, picture: Callable[[], list[Text]], *, working: bool) -> str:
        """Return what is sent. Raises :class:`EOFError` for Ctrl-D on an empty line.

        While something is ``working``, Ctrl-C is the signal that it is elsewhere.
        """
        self._picture, self._working = picture, working
        kept, self.kept = self.kept, ""
        try:
            return await self._session.prompt_async(
                default=kept,
                refresh_interval=0.2 if working else 0,
                handle_sigint=False,
                set_exception_handler=False,
            )
        except asyncio.CancelledError:
            self.kept = self.text or self.kept
            raise

    def _message(self) -> ANSI:
        console = self._paper.console
        with console.capture() as drawn:
            for line in self._picture():
                line.truncate(console.width - 1, overflow="ellipsis")
                console.print(line)
        return ANSI(f"{drawn.get()}{self._paper.symbol('given')} ")

    def _keys(self) -> KeyBindings:
        keys, typing = KeyBindings(), has_focus(DEFAULT_BUFFER)
        keys.add("enter", filter=typing)(lambda event: event.current_buffer.validate_and_handle())
        keys.add("escape", "enter", filter=typing)(
            lambda event: event.current_buffer.insert_text("\n")
        )

        @keys.add("c-c")
        def _(event: Any) -> None:
            if self._working:
                signal.raise_signal(signal.SIGINT)
            elif event.current_buffer.text:
                event.current_buffer.reset()
            else:
                self._paper.put(Line("note", "Ctrl-D or /quit leaves; the thread stays"))

        return keys


# --- One thread in a talk.

_LINES: Final = typer.Typer()
for _each in (show, threads, undo):
    _LINES.command()(_each)


class Interrupted(Exception):
    """Raised where a new task meets one that is not done."""


@dataclass
class Chat:
    """One thread in a talk, until its person leaves. ``yes`` agrees as ``--yes`` does.

    The model and the mode are those of the next tasks; it is ``left`` at its end, and a line
    ``taken`` once its task has begun. What ``/NAME`` does is done by ``do_NAME``, and told by its
    docstring. Where a terminal can not be drawn on, lines are read plainly, and nothing can be
    typed while a task is at work.
    """

    session: Session
    mode: Mode | None = None
    yes: bool = False

    def __post_init__(self) -> None:
        self.paper = Paper(Console(file=Above(), highlight=False))
        self._names = [each[3:] for each in vars(Chat) if each.startswith("do_")]
        names = [f"/{each}" for each in self._names]
        self._prompt = Prompt(self.paper, names) if self.paper.terminal else None
        self._model, self._next, self._code = "", list[str](), 0
        self.left = self.taken = self._warned = self._asked = False
        self._talk: Talk | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def hold(self) -> int:
        """Talk, and return the exit code: 0, or that of the signal that ended it."""
        try:
            snapshot = run_interruptible(self._settle())
        except Cancelled as end:
            return end.exit_code
        task = snapshot.values.get("task") if snapshot else None
        place = self.session.workspace or (task.workspace if task else None)
        self.paper.put(
            Line("head", f"thread {self.session.thread}", self._model),
            Line("note", place or "without a workspace: no file tools"),
            Line("note", "a line is a task; /help lists what else there is; Ctrl-D leaves"),
        )
        if snapshot:
            self._safely(partial(self._take_up, snapshot))
        while not self.left:
            self._safely(self._obey_next)
        if self.session.reached:
            again = f"daruma chat --thread {pasted(self.session.thread)}"
            self.paper.put(Pasted("note", f"go on with {again}"))
        return self._code

    async def _settle(self, model: str | None = None) -> StateSnapshot | None:
        """Read the thread, and make its model, so that what can not be used is said at once."""
        async with aopen_postgres() as postgres:
            snapshot = await read_snapshot(postgres.checkpointer, self.session.thread)
            if snapshot is None:
                self.session.folder = Path.cwd()
            found = await self.session.keepsake(postgres)
            model = model or self.session.model or found.model
            self._model = usable_model(model, found.settings())
            return snapshot

    def _take_up(self, snapshot: StateSnapshot) -> None:
        termios.tcflush(sys.stdin, termios.TCIFLUSH)  # nothing is answered before it is asked
        going = "  The last task was interrupted. Go on with it? [y]es, [n]o: "
        if snapshot.interrupts:
            self._hold(lambda _: None)
        elif not snapshot.values.get("result") and input(going).strip().lower()[:1] == "y":
            self._hold(unfinished)

    def _obey_next(self) -> None:
        try:
            if self._next:
                line = self._next.pop(0)
            elif self._prompt:
                self._prompt.kept += typed_ahead()
                line = run_interruptible(self._prompt.read(self._status, working=False))
            else:
                line = input("> ")
        except EOFError:
            line = "/quit"
        self._safely(partial(self._obey, line))

    def _status(self) -> list[Text]:
        known = (self.session.thread, self.mode or "auto", "/help", self._model)
        return [Text(f"  {' · '.join(map(one_line, known))}", style="dim")]

    def _safely(self, work: Callable[[], None]) -> None:
        """Say what goes wrong on one line; untrusted settings are asked about first (SE-02)."""
        try:
            work()
        except UntrustedSettings as error:
            if self._loop:  # nothing is asked while keys go to the line below
                self.paper.put(Line("bad", one_line(complaint(error) or str(error), 1000)))
            elif agreed(error.path):
                self._safely(work)
        except (KeyboardInterrupt, EOFError, typer.Abort):
            self.paper.put(Line("note", "cancelled; /quit leaves"))
        except Cancelled as end:
            self._signalled(end.exit_code)
        except Exception as error:  # noqa: BLE001  # a bug is told in one line too, and kept
            mistake = isinstance(error, UsageMistake)
            said = usage_line(error) if mistake else complaint(error) or kept(error)
            self.paper.put(Line("bad", one_line(said, 1000)))

    def _signalled(self, code: int) -> None:
        """Leave for a signal that asks for it; Ctrl-C ends what runs, not the talk."""
        if code == 128 + signal.SIGTERM:
            self.left, self._code = True, code

    # --- What a line does.

    def _obey(self, line: str) -> None:
        text = line.strip()
        name, _, words = text[1:].partition(" ")
        self._warned &= text == "/quit"
        if text and self._prompt:  # else the terminal itself shows what is typed
            self.paper.put(Line("given", text))
        if text.startswith("/") and name in self._names:
            getattr(self, f"do_{name}")(words.strip())
        elif text.startswith("/") and not name.startswith("/"):
            near = get_close_matches(name, self._names, n=1, cutoff=0.4)
            hint = f"did you mean /{near[0]}?" if near else "/help lists what there is"
            raise DarumaError(f"there is no /{name}: {hint}; // begins a line with a slash")
        elif text:
            said = text.removeprefix("/")
            self._steer(said, text) if self._loop else self._task(said, self.mode, text)

    def _task(self, text: str, mode: Mode | None, typed: str) -> None:
        """Begin a task; one that was interrupted goes on instead, and is told the text.

        The line that was ``typed`` is kept where nothing has begun.
        """
        given = {"messages": [("user", text)], "mode": mode, "workspace": self.session.workspace}

        def begin(snapshot: StateSnapshot) -> Go | None:
            if snapshot.interrupts:  # what is open is asked first, and the line waits
                self._keep(typed)
                return None
            if snapshot.tasks:
                raise Interrupted
            return Go(given)

        self.taken = False
        self._keep("")  # it may have been kept while settings were asked about
        try:
            self._hold(begin)
        except Interrupted:
            self._steer(text, typed)
            self._hold(unfinished)
        except DarumaError:
            self._keep("" if self.taken else typed)
            raise

    def _steer(self, text: str, typed: str = "", **how: Any) -> None:
        try:
            if self._loop and not self.session.running:
                raise DarumaError("the task has not begun yet: Enter sends it again")
            self._await(self.session.steer(text, **how))
            stands = "it stops before its next request, and asks you"
            said = stands if how.get("stop") else "it is told with its next request"
            self.paper.put(Line("note", said))
        except DarumaError:
            self._keep(typed)
            raise

    def _await(self, work: Coroutine[Any, Any, T]) -> T:
        """Await it on the loop of the task that is at work, or on one of its own."""
        if self._loop:
            try:
                return asyncio.run_coroutine_threadsafe(work, self._loop).result()
            except futures.CancelledError as error:
                raise DarumaError("what was at work has ended meanwhile") from error
        return run_interruptible(work)

    def _keep(self, line: str) -> None:
        if self._prompt:
            self._prompt.kept = line

    def _hold(self, start: Start) -> None:
        """Run the thread as ``daruma run`` does, with a line to type on."""
        if self._loop:
            raise DarumaError("that waits until nothing is at work: /stop or Ctrl-C")
        self._talk, self._warned = Talk(chat=self, yes=self.yes), False
        self._signalled(self._talk.hold(self.session, start))

    async def listen(self, progress: Progress) -> None:
        """Obey lines while a task is at work."""
        if not self._prompt:
            return
        self._loop, self._asked = asyncio.get_running_loop(), False
        try:
            with unread():
                while not self._asked:
                    await self._listen(self._prompt, progress)
        finally:
            self._loop = None

    async def _listen(self, prompt: Prompt, progress: Progress) -> None:
        try:
            line = await prompt.read(progress.picture, working=True)
        except EOFError:
            line = "/quit"
        if self._asked:
            prompt.kept = line
        elif self._talk and self._talk.ended:
            self._next.append(line)
        else:
            await asyncio.to_thread(self._safely, partial(self._obey, line))

    async def finish_line(self, typing: "asyncio.Task[None]") -> None:
        """Let a person end the line that is half typed: it answers no question by chance."""
        if self._prompt and self._prompt.text.strip():
            self._asked = True
            self.paper.put(Line("alarm", "it asks something: Enter keeps your line for afterwards"))
            await typing

    # --- What can be said beside tasks: each a call of what the command line has.

    def do_help(self, _: str) -> None:
        """List what there is beside tasks."""
        told = [(each, str(getattr(self, f"do_{each}").__doc__)) for each in self._names]
        self.paper.put(*(Line("line", f"/{each}", says) for each, says in told))
        self.paper.put(Line("note", "Alt-Enter begins a new line; Ctrl-C stops what is at work"))

    def do_plan(self, goal: str) -> None:
        """Show the plan as it stands; with a GOAL: plan that first."""
        if goal:
            return self._task(goal, "plan_exec", f"/plan {goal}")
        plan = self._values().get("plan")
        lines = plan_lines([each.to_dict() for each in plan.phases]) if plan else []
        return self.paper.put(*lines or [Line("note", "there is no plan")])

    def do_budget(self, _: str) -> None:
        """Say what is spent of the budget."""
        values = self._values()
        spent = spent_of(values) if values else ()
        lines = [Line("note", f"{each.kind} {' of '.join(each.amounts)}") for each in spent]
        self.paper.put(*lines or [Line("note", "nothing is spent yet")])

    def do_context(self, _: str) -> None:
        """Show what the window is spent on."""
        if not self.session.reached:
            raise DarumaError("nothing has begun on this thread yet")
        context_table(self._await(self.session.context_cost())).show(self.paper)

    def do_show(self, options: str) -> None:
        """Show what happened on the thread; as --tail 5."""
        self._as_typed("show", self.session.thread, options)

    def do_undo(self, options: str) -> None:
        """Put the files back as before the newest task; as --list, --to ID."""
        if self._loop:
            raise DarumaError("an undo waits until nothing is at work: /stop or Ctrl-C")
        self._as_typed("undo", self.session.thread, options)

    def do_threads(self, _: str) -> None:
        """List all threads."""
        self._as_typed("threads")

    def do_model(self, name: str) -> None:
        """Say the model; with a NAME: that of the next tasks."""
        if name:
            asyncio.run(self._settle(name))
            self.session.model = self._model
        self.paper.put(Line("note", f"model {self._model}"))

    def do_mode(self, name: str) -> None:
        """Say the mode; with a NAME: that of the next tasks, or auto."""
        named: Mapping[str, Mode | None] = {"auto": None, **{each: each for each in MODES}}
        if name and name not in named:
            raise DarumaError(f"there is no mode {name!r}: {', '.join(named)}")
        self.mode = named[name] if name else self.mode
        self.paper.put(Line("note", f"mode {self.mode or 'auto'}"))

    def do_goal(self, text: str) -> None:
        """Change the goal of the task that is at work to a TEXT."""
        self._steer(text, goal=text)

    def do_stop(self, text: str) -> None:
        """Stop the task that is at work after this step, and be asked what to do."""
        self._steer(text or "Stop here, and ask me.", stop=True)

    def do_resume(self, _: str) -> None:
        """Go on with what was interrupted, or left open."""
        if not self.session.reached:
            raise DarumaError("nothing has begun on this thread yet")
        self._hold(unfinished)

    def do_quit(self, _: str) -> None:
        """Leave; the thread stays."""
        self.left = self._warned or not self._loop
        later = on_thread("resume", self.session.thread)
        if not self.left:
            said = f"a task is at work: again stops it and leaves; {later} goes on with it"
            self.paper.put(Pasted("note", said))
        elif self._loop:
            signal.raise_signal(signal.SIGINT)
        self._warned = True

    def _as_typed(self, *words: str) -> None:
        _LINES([*words[:2], *" ".join(words[2:]).split()], "daruma", standalone_mode=False)

    def _values(self) -> Mapping[str, Any]:
        snapshot = asyncio.run(self._settle())
        return snapshot.values if snapshot else {}


# --- How a task is talked about: as `daruma run` does on a terminal, above the line to type on.


@dataclass(kw_only=True)
class Talk(Conversation):
    """A task's talk within a chat."""

    chat: Chat

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        self.paper = self.chat.paper

    @override
    def _ask(self, stop: Stop) -> Replies:
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
        return super()._ask(stop)

    @override
    def progress(self) -> Progress:
        return _Beside(self.chat)

    @override
    def tell_cancelled(self, session: Session) -> None:
        again = "" if self.chat.left else "/resume goes on with it; or say what it is to do"
        self.paper.put(Line("head", "Cancelled", again if session.reached else "nothing had begun"))


class _Beside(Progress):
    """Shows a run above the line that is typed on."""

    def __init__(self, chat: Chat) -> None:
        super().__init__(chat.paper, below=False, free=4)
        self._chat = chat

    @override
    def begin(self, thread: str, model: str) -> None:
        self._thread = thread  # the chat has said it

    @override
    def see(self, mode: str, part: Mapping[str, Any]) -> None:
        if mode == "custom" and part["type"] == "task_started" and not part.get("member"):
            self._chat.taken = True
            task = event_moment(part)
            self._paper.put(Line("note", task.note if task else ""))  # the goal stands as typed
        else:
            super().see(mode, part)

    @override
    async def over(self, work: Coroutine[Any, Any, T]) -> T:
        typing = asyncio.create_task(self._chat.listen(self))
        try:
            stop = await work
            if isinstance(stop, Stop) and stop.questions:
                await self._chat.finish_line(typing)
            return stop
        finally:
            typing.cancel()
            await asyncio.wait([typing])
            if not typing.cancelled() and (error := typing.exception()):
                raise error
