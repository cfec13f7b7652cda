"""The ways in which the tasks are carried out, beside each other."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.learning.student import Deaf, Student


@dataclass(frozen=True)
class Arm:
    """One way: under which settings of evolution, and by which model."""

    name: str
    evolution: Mapping[str, Any] = field(default_factory=dict)
    model: type[Student] = Student


ON = Arm("on", {"observe_only": False})
CUT_OUT = Arm("cut out", {"observe_only": False}, Deaf)
OBSERVING = Arm("observing")
OFF = Arm("off", {"enabled": False, "observe_only": False})

ARMS = (ON, CUT_OUT, OBSERVING, OFF)
