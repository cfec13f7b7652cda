"""What became of the tasks that were to be learned from: counted, and said where it went wrong."""

import logging
import threading
from collections import Counter
from dataclasses import dataclass
from typing import Final, Literal

from daruma.tools.text.secrets import without_keys

LOG: Final = logging.getLogger("daruma.evolution")

_LONGEST: Final = 300
"""Characters of a reason that are logged."""


class NotSampled(Exception):
    """Raised for a task that is not learned from: it simply went well, as most do."""


class NotTaken(Exception):
    """Raised where too much waits already: the task is dropped, and counted."""


@dataclass(frozen=True)
class Counts:
    """How many ended tasks were ``accepted``, and what became of them.

    ``learned`` from, ``skipped`` as successes that are not sampled, ``failed``; or ``dropped``, as
    too many were pending.
    """

    accepted: int = 0
    learned: int = 0
    skipped: int = 0
    failed: int = 0
    dropped: int = 0


_Outcome = Literal["accepted", "learned", "skipped", "failed", "dropped"]


class Tally:
    """Counts outcomes, on any thread. Of tasks that are dropped in a row it says one line."""

    def __init__(self) -> None:
        self._counted: Counter[str] = Counter()
        self._dropping = False
        self._lock = threading.RLock()  # as that of jobs

    @property
    def counts(self) -> Counts:
        """All that was counted up to now."""
        with self._lock:
            return Counts(**self._counted)

    def accept(self) -> None:
        """Count a task that was taken on."""
        self._count("accepted")
        self._dropping = False

    def drop(self, reason: str) -> None:
        """Count a task that was not."""
        self._count("dropped")
        if not self._dropping:
            self._dropping = True
            LOG.warning("tasks are not learned from: %s", reason)

    def end(self, task_id: str, error: BaseException | None) -> None:
        """Count how learning from a task has ended: what was raised, or None."""
        if error is None:
            self._count("learned")
        elif isinstance(error, NotSampled):
            self._count("skipped")
        elif isinstance(error, NotTaken):
            self.drop(_line_of(error))
        else:
            self._count("failed")
            told = f"{type(error).__name__}: {_line_of(error)}"
            LOG.warning("nothing was learned from task %r: %s", task_id, told)

    def _count(self, outcome: _Outcome) -> None:
        with self._lock:
            self._counted[outcome] += 1


def _line_of(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - anybody's class
        return "it can not be told"
    return " ".join(without_keys(text).split())[:_LONGEST]
