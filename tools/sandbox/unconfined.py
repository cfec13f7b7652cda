"""The level *none*: nothing but limits, and the end of the process group."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from daruma.tools.commands.launch import Asked, Launch, limited


@contextmanager
def unconfined(_: Path, asked: Asked) -> Iterator[Launch]:
    """Prepare one command."""
    yield Launch(limited(asked.argv), asked.env)
