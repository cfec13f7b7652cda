"""A real terminal with a command in it, as tests read it and type into it."""

import fcntl
import os
import pty
import select
import struct
import termios
import time

from tests.daruma_command import Daruma
from tests.screen import Screen

SECONDS = 60


class Terminal:
    """A terminal of some columns and rows, with a command running in it."""

    def __init__(
        self,
        daruma: Daruma,
        *args: str,
        columns: int = 60,
        rows: int = 24,
        kind: str = "xterm-256color",
    ) -> None:
        self._screen, inside = pty.openpty()
        self.resize(columns, rows)
        daruma.setenv("TERM", kind)
        size = {"COLUMNS", "LINES"}  # readline, and xdist's workers, give children one of theirs
        own = {name: value for name, value in os.environ.items() if name not in size}
        self.process = daruma.start(
            *args,
            stdin=inside,
            stdout=inside,
            stderr=inside,
            env=own,
            start_new_session=True,
        )
        os.close(inside)
        self._shown, self._typed_at = b"", 0

    @property
    def seen(self) -> str:
        """All that was shown so far, with the sequences that draw it."""
        return self._shown.decode(errors="replace")

    @property
    def screen(self) -> Screen:
        """What stands there now, lines that scrolled away included."""
        return Screen().write(self.seen)

    def resize(self, columns: int, rows: int) -> None:
        """Change the terminal's size."""
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self._screen, termios.TIOCSWINSZ, size)

    def wait_for(self, text: str, *, anew: bool = False) -> None:
        """Read until a text appears; ``anew``: since something was typed."""
        until = time.monotonic() + SECONDS  # what is drawn anew has something to read always
        while text not in self._shown[self._typed_at if anew else 0 :].decode(errors="replace"):
            assert time.monotonic() < until, self.seen
            assert select.select([self._screen], [], [], SECONDS)[0], self.seen
            self._shown += os.read(self._screen, 65536)

    def type(self, text: str) -> None:
        """Type a line."""
        self.press(f"{text}\n")

    def press(self, keys: str) -> None:
        """Press keys: Ctrl-C is ``\\x03``."""
        self._typed_at = len(self._shown)
        os.write(self._screen, keys.encode())

    def end(self) -> int:
        """Read to the end and return the exit code."""
        try:
            while True:
                assert select.select([self._screen], [], [], SECONDS)[0], self.seen
                self._shown += os.read(self._screen, 65536)
        except OSError:
            pass  # a terminal without a process left in it can not be read
        os.close(self._screen)
        return self.process.wait(SECONDS)
