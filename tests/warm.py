"""Processes that start warm: ``start(["-m", "daruma"])`` is a ``Popen`` of a fork that has imported
the command line and the engine, which takes a second in each process otherwise.

The forks are made by a server of this process's own, without threads, that ends with it. Each has
the arguments, environment, folder and streams that it is given, is a child of this process, and
ends as an interpreter does. Where the start itself is tried, a test uses ``Popen``.
"""

import atexit
import ctypes
import fcntl
import gc
import importlib
import os
import pickle
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import termios
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
_SECONDS: Final = 180
_BIGGEST: Final = 1 << 17
_SUBREAPER: Final = 36
"""``PR_SET_CHILD_SUBREAPER``: children of children that end become children of this process."""
_LOCK: Final = threading.Lock()


def start(argv: Sequence[str], *, imports: str = "", **options: Any) -> "subprocess.Popen[Any]":
    """Start Python with ``-m MODULE`` or ``-c CODE`` and what follows; ``options`` of ``Popen``.

    ``imports`` are modules that the server is to have imported. On a terminal a new session has it
    as its own: Ctrl-C is a signal. What the interpreter itself reads of ``env`` has no effect.
    """
    if sys.platform == "linux":
        return _Warm([sys.executable, *argv], **{"imports": imports} | options)
    return subprocess.Popen([sys.executable, *argv], **options)


def run(
    argv: Sequence[str], *, seconds: float = _SECONDS, **options: Any
) -> "subprocess.CompletedProcess[Any]":
    """Start it, and return what it said and how it ended, within so many seconds."""
    with start(argv, **options) as process:
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return subprocess.CompletedProcess(argv, process.returncode, out, err)


class _Warm(subprocess.Popen[Any]):
    def __init__(self, argv: Sequence[str], *, imports: str, **options: Any) -> None:
        self._imports = imports
        super().__init__(argv, **options)

    def _execute_child(self, args: Any, *more: Any) -> None:
        _, before, _, others, cwd, env, _, _, _, *pipes, _, _, _, _, _, session, _ = more
        assert (before, others) == (None, ()), "it is given neither code to run nor more files"
        theirs = [pipe if pipe >= 0 else n for n, pipe in enumerate((pipes[0], pipes[3], pipes[5]))]
        place, environment = str(cwd or Path.cwd()), dict(os.environ if env is None else env)
        request = (args[1:], self._imports.split(), place, environment, session)
        with _LOCK:
            channel, system = _server(), ctypes.CDLL(None)
            system.prctl(_SUBREAPER, 1, 0, 0, 0)
            socket.send_fds(channel, [pickle.dumps(request)], theirs)
            self.pid = int(channel.recv(_BIGGEST))
            system.prctl(_SUBREAPER, 0, 0, 0, 0)
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]  # of `Popen`, as what it is in


@cache
def _server() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    argv = [sys.executable, "-m", "tests.warm", str(theirs.fileno())]
    server = subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
    theirs.close()
    atexit.register(server.wait)
    atexit.register(ours.close)
    atexit.register(ours.shutdown, socket.SHUT_RDWR)
    return ours


# --- In the server, and in its forks.


def _serve(channel: socket.socket) -> Any:
    """Fork for each request; return in the forks, with what each has to become."""
    import daruma.graph.command_line as commands

    for module in pkgutil.iter_modules(commands.__path__, f"{commands.__name__}."):
        importlib.import_module(module.name)
    importlib.import_module("daruma.graph.build")
    while True:
        packet, fds, _, _ = socket.recv_fds(channel, _BIGGEST, 3)
        if not packet:
            os._exit(0)
        argv, imports, *rest = pickle.loads(packet)  # noqa: S301 - of the process that started it
        for name in imports:
            importlib.import_module(name)
        gc.freeze()
        waiting, gone = os.pipe()
        if not (between := os.fork()):
            if os.fork():
                os._exit(0)
            os.close(gone)
            os.read(waiting, 1)  # from here on it is a child of the process that asked
            os.close(waiting)
            channel.send(str(os.getpid()).encode())
            channel.close()
            return argv, fds, *rest
        os.waitpid(between, 0)
        for each in (waiting, gone, *fds):
            os.close(each)


def _become(
    argv: list[str], fds: list[int], place: str, environment: dict[str, str], session: bool
) -> None:
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    os.chdir(place)
    os.environ.clear()
    os.environ.update(environment)
    if session:
        os.setsid()
        if os.isatty(0):
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        old, line = getattr(sys, name), 1 if name == "stderr" else -1
        new = open(old.fileno(), mode, line, old.encoding, old.errors, closefd=False)  # noqa: SIM115
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)
    how, what, *args = argv
    sys.argv = [how, *args]
    sys.path[0] = "" if how == "-c" else place
    if how == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        sys.modules["__main__"] = main = ModuleType("__main__")
        exec(compile(what, "<string>", "exec"), vars(main))  # noqa: S102


if __name__ == "__main__":
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _become(*_serve(socket.socket(fileno=int(sys.argv[1]))))
