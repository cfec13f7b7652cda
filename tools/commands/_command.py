"""The one door through which commands are run: bounded, ended as a whole, never in the way."""

import asyncio
import codecs
import os
import re
import selectors
import shlex
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from contextvars import copy_context
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from daruma.state.events import CommandOutput, CommandRun, Event, unheard
from daruma.state.verification import Check
from daruma.tools.commands._process import (
    NO_GROUP,
    THREADS_EACH,
    UNCONFINED,
    CommandRequest,
    Confinement,
    Excess,
    ProcessGroup,
    Watchdog,
    control_group,
)
from daruma.tools.errors import CommandRefused
from daruma.tools.text import without_keys
from daruma.tools.threads import wait_for_end

# --- What is kept of a command's output, however much there is: its beginning and its end.


class BoundedOutput:
    """The first and the last half of `limit` bytes of a stream; memory stays bounded."""

    def __init__(self, limit: int, heard: Callable[[bytes], None] | None = None) -> None:
        self._heard = heard
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._head_limit = limit - limit // 2
        self._tail_limit = limit // 2
        self._left_out = 0

    def add(self, data: bytes) -> None:
        """Take the next piece of the stream; whoever hears it too gets it."""
        if self._heard:
            self._heard(data)
        room = self._head_limit - len(self._head)
        self._head += data[:room]
        if rest := data[room:]:
            self._tail.append(rest)
            self._tail_size += len(rest)
        while self._tail and self._tail_size - len(self._tail[0]) >= self._tail_limit:
            first = self._tail.popleft()
            self._tail_size -= len(first)
            self._left_out += len(first)

    @property
    def truncated(self) -> bool:
        """Whether something is missing from `text`."""
        return self._left_out + self._tail_size > self._tail_limit

    def text(self) -> str:
        """The stream as text, what is not UTF-8 or is NUL replaced, and a line where it was cut."""
        tail = b"".join(self._tail)
        if not self.truncated:
            return _cleaned((bytes(self._head) + tail).decode(errors="replace"))
        end = tail[len(tail) - self._tail_limit :]
        missing = self._left_out + len(tail) - len(end)
        # A character that was cut in two is dropped, of either part.
        begun = codecs.getincrementaldecoder("utf-8")("replace").decode(self._head, final=False)
        partial = re.match(rb"[\x80-\xbf]{0,3}", end)
        ended = end[partial.end() if partial else 0 :].decode(errors="replace")
        return f"{_cleaned(begun)}\n[{missing} bytes left out]\n{_cleaned(ended)}"


def _cleaned(text: str) -> str:
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


# --- The last lines of a command's output while it runs, for those who watch.

EVERY: Final = 0.5
"""Seconds before the first telling, and between two: a command that is quicker is not told of."""

LINES: Final = 5
LONGEST: Final = 200
"""Characters of a line that are told."""

_KEPT: Final = 8 * 1024
"""Bytes; a private key in PEM has half as many, and is masked as a whole."""

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")
_LINE_ENDS = re.compile(r"[\r\n]+")
_UNFINISHED_WORD = re.compile(r"(?<!\S)[^\w\s]*+\w\S*+\Z")

Tell = Callable[[tuple[str, ...]], None]


class LiveOutput:
    """Takes a command's output piece by piece, and tells its last lines every now and then.

    All methods are called by the thread that watches the command, and ``tell`` is called there.
    """

    def __init__(self, tell: Tell, now: Callable[[], float] = time.monotonic) -> None:
        self._tell, self._now = tell, now
        self._end, self._whole = bytearray(), True
        self._untold = False
        self._next = now() + EVERY
        self._over = False
        self.until: bytes | None = None
        """What stands between the output and what is not for those who watch, if anything is."""

    def add(self, data: bytes) -> None:
        """Take the next piece."""
        if self._over:
            return
        if self.until and (at := data.find(self.until)) >= 0:
            data, self._over = data[:at], True
        self._end += data
        if len(self._end) > _KEPT:
            del self._end[:-_KEPT]
            self._whole = False
        self._untold = True

    def wait(self) -> float:
        """Return the seconds until there is something to tell."""
        return max(0.0, self._next - self._now()) if self._untold else float("inf")

    def tell(self) -> None:
        """Tell what is new, if it is time to."""
        if self.wait() > 0:
            return
        self._untold, self._next = False, self._now() + EVERY
        if lines := last_lines(bytes(self._end), whole=self._whole):
            self._tell(lines)


def last_lines(data: bytes, *, whole: bool) -> tuple[str, ...]:
    """Return the last lines of an output's end, keys masked; ``whole`` says that it is all of it.

    What may be the part of a key is left out: the last word of a line that is not ended, and what
    stands before the first line's end where something is missing.
    """
    text = data.decode(errors="replace")
    if not whole:
        text = _LINE_ENDS.split(text, maxsplit=1)[-1] if _LINE_ENDS.search(text) else ""
    masked = without_keys(_UNFINISHED_WORD.sub("", _ESCAPES.sub("", text)))
    lines = [line.rstrip() for line in _LINE_ENDS.split(masked) if line.strip()]
    return tuple(line[:LONGEST] for line in lines[-LINES:])


def live_output(
    emit: Callable[[Event], None], purpose: str, command: str, call_id: str = ""
) -> LiveOutput | None:
    """Return what tells of a command in ``command_output`` events; None where nobody listens.

    It is made on the event loop that the events are emitted on.
    """
    if emit is unheard:
        return None
    loop = asyncio.get_running_loop()
    around = copy_context()  # a run's writer finds its place in the graph in there

    def tell(lines: tuple[str, ...]) -> None:
        event = CommandOutput(purpose=purpose, command=command, lines=lines, call_id=call_id)
        loop.call_soon_threadsafe(emit, event, context=around)

    return LiveOutput(tell)


# --- The environment that commands get: what they need to work, and none of our secrets.

ALLOWED: Final = frozenset({
    "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "TZ", "TMPDIR",
    "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
    "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR",
    "JAVA_HOME", "GOPATH", "GOROOT", "GOCACHE", "CARGO_HOME", "RUSTUP_HOME",
    "NVM_DIR", "PYENV_ROOT",
})  # fmt: skip
"""Variables that are passed on, beside `PATH` and `LC_*`. Proxies are not: they hold passwords."""

FIXED: Final = {
    # A fix of the same size in the same second would else be hidden by stale bytecode.
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
    "NO_COLOR": "1",
    "RUFF_NO_CACHE": "true",  # a workspace that may only be read can be checked too
}


def command_environment(
    base: Mapping[str, str], workspace: Path, executable_dir: Path
) -> dict[str, str]:
    """The variables for a command in `workspace`, chosen from `base`.

    Programs are looked for in the workspace's own virtual environment, the active one,
    `executable_dir` (where Daruma's Python lies), and then on `PATH`.
    """
    kept = {name: value for name, value in base.items() if name in ALLOWED or name[:3] == "LC_"}
    candidates = (workspace / name for name in (".venv", "venv"))
    places = [str(executable_dir)]
    if base.get("VIRTUAL_ENV"):
        places.insert(0, str(Path(base["VIRTUAL_ENV"]) / "bin"))
    if own := next((each for each in candidates if (each / "bin").is_dir()), None):
        kept["VIRTUAL_ENV"] = str(own)
        places.insert(0, str(own / "bin"))
    # An empty or relative entry would run programs from the workspace under any name.
    path = (base.get("PATH") or os.defpath).split(os.pathsep)
    places += [place for place in path if Path(place).is_absolute()]
    return {**kept, **FIXED, "PATH": os.pathsep.join(dict.fromkeys(places))}


# --- Watching a command from its start to its end, its output read all the while.

DRAIN_SECONDS: Final = 0.25
"""How long the pipes are read on after the end, if someone who left the group holds them open."""

POLL_SECONDS: Final = 0.02  # only where the system does not signal a process's end
LONGEST_WAIT: Final = 3600.0  # seconds that every system's select can express
PIECE: Final = 64 * 1024

Ending = Literal["ended", "timed_out", "stopped", "memory", "processes"]
Ready = list[tuple[selectors.SelectorKey, int]]


@dataclass(frozen=True, slots=True)
class Watched:
    """How the command ended, the leader's exit code, and what it wrote."""

    ending: Ending
    exit_code: int | None
    stdout: BoundedOutput
    stderr: BoundedOutput


def watch(
    group: ProcessGroup,
    stop: int,
    deadline: float,
    limit: int,
    watchdog: Watchdog,
    live: LiveOutput | None = None,
) -> Watched:
    """Block until the command has ended and all of its group is killed.

    It is ended at `deadline` (`time.monotonic`), when the descriptor `stop` turns readable, or when
    the watchdog sees too much. ``live`` is told of the output meanwhile.
    """
    heard = live.add if live else None
    stdout, stderr = BoundedOutput(limit, heard), BoundedOutput(limit, heard)
    with selectors.DefaultSelector() as selector:
        for fd, kept in zip(group.outputs, (stdout, stderr), strict=True):
            selector.register(fd, selectors.EVENT_READ, kept)
        signals = [stop] if group.end_signal is None else [stop, group.end_signal]
        for fd in signals:
            selector.register(fd, selectors.EVENT_READ)
        ending = _until_end(group, selector, stop, deadline, watchdog, live)
        code = group.end()
        for fd in signals:
            selector.unregister(fd)
        deadline = time.monotonic() + DRAIN_SECONDS
        while selector.get_map() and (left := deadline - time.monotonic()) > 0:
            _read(selector, selector.select(left))
    return Watched(ending, code, stdout, stderr)


def _until_end(
    group: ProcessGroup,
    selector: selectors.BaseSelector,
    stop: int,
    deadline: float,
    watchdog: Watchdog,
    live: LiveOutput | None,
) -> Ending:
    longest = LONGEST_WAIT if group.end_signal is not None else POLL_SECONDS
    while not group.has_ended():
        left = deadline - time.monotonic()
        if left <= 0:
            return "timed_out"
        if excess := watchdog.excess():
            return excess
        wait = min(left, longest, watchdog.wait())
        ready = selector.select(min(wait, live.wait()) if live else wait)
        if any(key.fd == stop for key, _ in ready):
            return "stopped"
        _read(selector, ready)
        if live:
            live.tell()
    return "ended"


def _read(selector: selectors.BaseSelector, ready: Ready) -> None:
    for key, _ in ready:
        if not isinstance(key.data, BoundedOutput):
            continue
        if data := os.read(key.fd, PIECE):
            key.data.add(data)
        else:
            selector.unregister(key.fd)


# --- The one door through which commands are run: bounded, ended as a whole, never in the way.
#
# Each command is watched by a thread of its own, so that any event loop will do, in any thread, and
# minutes of waiting take no place from short work.

OUTPUT_LIMIT: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended; `exit_code` is None when it was stopped, negative for a signal.

    `stdout` and `stderr` hold the beginning and the end of the output; `truncated` if the middle
    is missing. `sandbox` names what confined the command, `not_covered` what that does not stop;
    `stopped_by` says which limit it was killed for, `notes` what it left behind in repositories.
    """

    command: str
    exit_code: int | None
    stdout: str
    stderr: str
    timed_out: bool
    truncated: bool
    seconds: float
    sandbox: str
    not_covered: tuple[str, ...] = ()
    stopped_by: Excess = ""
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the command ended by itself and with code 0."""
        return self.exit_code == 0


async def run_in_group(
    command: str | Sequence[str],
    *,
    cwd: Path,
    timeout: float,
    env: Mapping[str, str] | None = None,
    limit: int = OUTPUT_LIMIT,
    confinement: Confinement = UNCONFINED,
    live: LiveOutput | None = None,
) -> CommandResult:
    """Run shell text (a string) or an argument list, and everything it starts, to the end.

    Whatever is left of its process group after `timeout` seconds, after the command's own end, or
    on cancellation is killed, before this returns. `limit` is in bytes for each stream. Without
    `env` the command gets `command_environment`, never this process's own variables. `live` is told
    of the output while it runs.

    Raises CommandRefused if it can not be started.
    """
    text = command if isinstance(command, str) else shlex.join(command)
    if not text.strip():
        raise CommandRefused("the command is empty")
    argv = ("/bin/sh", "-c", command) if isinstance(command, str) else tuple(command)
    try:
        stopped, stop = os.pipe()  # closing `stop` ends the command
    except OSError as error:
        raise CommandRefused(f"no command can be started: {error.strerror}") from error

    def run() -> CommandResult:
        given = env
        if given is None:
            given = command_environment(os.environ, cwd, Path(sys.executable).parent)
        asked = CommandRequest(argv, cwd, given)
        return _run(text, asked, stopped, timeout, limit, confinement, live)

    future: Future[CommandResult] = Future()
    given = future, run, stopped
    watcher = threading.Thread(target=_fulfil, args=given, name="daruma-command", daemon=True)
    result = asyncio.wrap_future(future)
    try:
        start(watcher, future, stopped)
        return await asyncio.shield(result)
    finally:
        os.close(stop)
        await wait_for_end(result)


def start(watcher: threading.Thread, future: "Future[CommandResult]", stopped: int) -> None:
    """Start a thread that closes ``stopped``; without one it is closed here, and ``future`` fails.

    An interruption (Ctrl-C) can come when the thread runs already: then it is not ours to close.
    """
    try:
        watcher.start()
    except RuntimeError:
        os.close(stopped)
        future.set_exception(CommandRefused("no command can be started: there are no more threads"))


def _fulfil(
    future: "Future[CommandResult]", run: Callable[[], CommandResult], stopped: int
) -> None:
    future.set_running_or_notify_cancel()
    try:
        try:
            result = run()
        except OSError as error:
            raise CommandRefused(f"the command can not be run: {error.strerror}") from error
        finally:
            os.close(stopped)
    except BaseException as error:  # noqa: BLE001 - it is raised where the command was asked for
        future.set_exception(error)
    else:
        future.set_result(result)


def _run(
    text: str,
    asked: CommandRequest,
    stopped: int,
    timeout: float,
    limit: int,
    confinement: Confinement,
    live: LiveOutput | None,
) -> CommandResult:
    began = time.monotonic()
    with ExitStack() as stack:
        own, limits = NO_GROUP, confinement.limits
        if limits:
            own = stack.enter_context(control_group(limits.memory, limits.processes * THREADS_EACH))
        launch = stack.enter_context(confinement.launch(asked))
        argv = own.entered(launch.argv)
        group = stack.enter_context(ProcessGroup(argv, asked.cwd, launch.env, launch))
        seen = watch(group, stopped, began + timeout, limit, Watchdog(group.pid, limits, own), live)
        if own.ran_out() and seen.ending != "processes":  # whatever became of the rest
            seen = replace(seen, ending="memory")
        if seen.ending == "ended" and seen.exit_code == 1 and not launch.was_set_up():
            why = seen.stderr.text().strip().rpartition("\n")[2]
            raise CommandRefused(f"the sandbox could not be set up, and nothing was run: {why}")
    return CommandResult(
        command=text,
        exit_code=seen.exit_code if seen.ending == "ended" else None,
        stdout=seen.stdout.text(),
        stderr=seen.stderr.text(),
        timed_out=seen.ending == "timed_out",
        truncated=seen.stdout.truncated or seen.stderr.truncated,
        seconds=time.monotonic() - began,
        sandbox=confinement.level,
        not_covered=confinement.not_covered,
        stopped_by=seen.ending if seen.ending in ("memory", "processes") else "",
        notes=tuple(launch.notes),
    )


# --- Telling of a command that the agent ran for itself: each run of one is audited (RO-04).

RECORDED: Final = 8_000
"""Characters of a command's output that stay on record."""


def recorded_output(*parts: str) -> str:
    """Return a command's output as it stays on record: keys masked, and its two ends (VE-10).

    >>> recorded_output("out", "", "err\\n")
    'out\\nerr'
    """
    text = without_keys("\n".join(part.strip("\n") for part in parts if part.strip()))
    if len(text) <= RECORDED:
        return text
    half = RECORDED // 2 - 30  # room for the line between
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"


_KILLED: Final = {
    "": "",
    "memory": "killed, it used more memory than sandbox.memory_mb allows",
    "processes": "killed, it had more processes than sandbox.processes allows",
}
_BAD_CALL: Final = (-signal.SIGSYS, 128 + signal.SIGSYS)
_NO_NETWORK: Final = (
    "network is unreachable",
    "temporary failure in name resolution",
    "name or service not known",
    "name does not resolve",
    "could not resolve host",
    "unable to resolve host",
    "failed to lookup address information",
    "nameresolutionerror",
    "eai_again",
    "enetunreach",
    "dial tcp: lookup ",
)
"""What programs say, in lower case, that looked for the network where there is none."""


def kill_reason(result: CommandResult) -> str:
    """Return in words what the sandbox ended a command for; empty if it did not."""
    if result.sandbox != "none" and result.exit_code in _BAD_CALL:
        return "killed, it made a system call that the sandbox does not allow"
    return _KILLED[result.stopped_by]


def missed_network(result: CommandResult | Check) -> str:
    """Say that a command looked for the network, which its sandbox blocks; empty if it did not.

    Only its own words tell, whatever its exit code: one that says nothing is not noticed (SA-02).
    """
    if result.sandbox == "none" or any("network" in each for each in result.not_covered):
        return ""
    said = "\n".join(_said(result)).lower()
    if not any(sign in said for sign in _NO_NETWORK):
        return ""
    return "the network is blocked (sandbox.network is off), and its output says that it missed it"


def _said(result: CommandResult | Check) -> tuple[str, ...]:
    return (result.output,) if isinstance(result, Check) else (result.stdout, result.stderr)


def command_run(purpose: str, result: CommandResult | Check) -> CommandRun:
    """Build the event of a command that has ended; a tool's output stands with its call."""
    killed = _KILLED[result.stopped_by] if isinstance(result, Check) else kill_reason(result)
    return CommandRun(
        purpose=purpose,
        command=result.command,
        exit_code=result.exit_code,
        timed_out=result.timed_out,
        seconds=result.seconds,
        sandbox=result.sandbox,
        not_covered=result.not_covered,
        stopped_by=result.stopped_by,
        passed=result.passed,
        note=result.note if isinstance(result, Check) else "; ".join(result.notes),
        output="" if purpose == "tool" else recorded_output(*_said(result)),
        violation=killed or missed_network(result),
    )
