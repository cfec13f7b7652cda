"""Models that keep failing are left alone for a while, by all calls of this process."""

import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass

from daruma.graph.models.faults import Fault

FAILURES = 3
"""In a row: what one call at most asks of a model."""
OPEN_SECONDS = 30.0


@dataclass
class _Circuit:
    failures: int = 0
    opened_at: float = 0.0

    @property
    def is_open(self) -> bool:
        return self.failures >= FAILURES


class Circuits:
    """The circuits of models, by key; thread-safe. A key that is None has none.

    After `FAILURES` failures in a row a circuit is open for `OPEN_SECONDS`. Then one request is let
    through as a trial: an answer closes it, else it stays open for as long again.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._circuits: dict[str, _Circuit] = {}
        self._objects: set[str] = set()

    def key_of(self, model: object) -> str:
        """Return the key of a model by its identity; it is forgotten together with the object."""
        key = f"{type(model).__name__} at {id(model)}"
        with self._lock:
            if key not in self._objects:
                self._objects.add(key)
                weakref.finalize(model, self.forget, key).atexit = False
        return key

    def allows(self, key: str | None) -> bool:
        """Say whether the model should be asked; whoever is told so while it is open is a trial."""
        with self._lock:
            circuit = self._circuits.get(key or "")
            if circuit is None or not circuit.is_open:
                return True
            if self._clock() - circuit.opened_at < OPEN_SECONDS:
                return False
            # For the others it opens anew, so that a trial that is cancelled leaves nothing behind.
            circuit.opened_at = self._clock()
            return True

    def is_open(self, key: str | None) -> bool:
        """Say whether the last requests to the model failed, trials included."""
        with self._lock:
            circuit = self._circuits.get(key or "")
            return circuit is not None and circuit.is_open

    def count(self, key: str | None, fault: Fault) -> None:
        """Count a failure that another request might not meet; a refusal is an answer too."""
        if fault.kind != "again":
            if fault.status is not None:
                self.answered(key)
        elif key is not None:
            with self._lock:
                circuit = self._circuits.setdefault(key, _Circuit())
                circuit.failures += 1
                circuit.opened_at = self._clock()

    def answered(self, key: str | None) -> None:
        """Close the circuit."""
        with self._lock:
            self._circuits.pop(key or "", None)

    def forget(self, key: str) -> None:
        """Forget a model that is gone."""
        with self._lock:
            self._objects.discard(key)
            self._circuits.pop(key, None)

    def close_all(self) -> None:
        """Forget every failure."""
        with self._lock:
            self._circuits.clear()


CIRCUITS = Circuits()
"""Those of this process."""
