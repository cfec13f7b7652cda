"""What tests of commands have in common."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.life import Life


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    """A FIFO named `life` in the directory that commands run in."""
    life = Life(tmp_path / "life")
    yield life
    os.close(life.fd)
