"""Programs of a person's own that have the terminal for a while: an editor, a pager."""

import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager


def in_foreground(
    command: Sequence[str], data: bytes | None = None, env: Mapping[str, str] | None = None
) -> int:
    """Run a program, give it ``data`` to read, and return its exit code.

    Ctrl-C is meant for it alone meanwhile: what it does with that is its own matter. Raises
    :class:`OSError` where it can not be started.
    """
    with _interrupts_left_alone():
        return subprocess.run(command, input=data, check=False, env=env).returncode


@contextmanager
def _interrupts_left_alone() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are none of this thread's
        return
    before = signal.signal(signal.SIGINT, lambda *_: None)  # ignored, it would be for programs too
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
