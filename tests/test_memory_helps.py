"""What one task found out, the next need not look for."""

from pathlib import Path

import pytest
from tests.memory_helps import steps


@pytest.mark.long
def test_later_tasks_take_fewer_steps(tmp_path: Path) -> None:
    """CX-05: the first pays one call to remember; the others know at once."""
    assert steps(tmp_path / "without", enabled=False) == [3, 3, 3, 3]
    assert steps(tmp_path / "with", enabled=True) == [4, 1, 1, 1]
