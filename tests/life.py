"""Who of a command is still alive: a FIFO's reader sees the end when its last writer is gone."""

import os
import select
from pathlib import Path


class Life:
    """The reading end of a FIFO that the processes of a test hold open for writing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)
        self.fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def said(self) -> bytes:
        """What was written next; empty when nobody is left to write, or after ten seconds."""
        select.select([self.fd], [], [], 10)
        return os.read(self.fd, 100)
