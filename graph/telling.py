"""Telling of one call to a model: that it began, which requests failed, how it ended."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Self

from daruma.state.events import Event, ModelAttemptFailed, ModelCallCompleted, ModelCallStarted
from daruma.state.usage import Attempt, Usage


class Told(AbstractContextManager["Told"]):
    """Emits the events of a call; it ends with ``usage`` if that was set, else with an error."""

    def __init__(self, emit: Callable[[Event], None], node: str, call: int, model: str) -> None:
        self._emit, self._node, self._call, self._model = emit, node, call, model
        self.usage: Usage | None = None

    def __enter__(self) -> Self:
        self._started = time.monotonic()
        self._emit(ModelCallStarted(node=self._node, model=self._model))
        return self

    def failed(self, attempt: Attempt, number: int, wait: float) -> None:
        """Tell of a request that brought no answer; ``number`` is 0 if it was not even made."""
        self._emit(attempt_failed(self._node, self._call, attempt, number, wait))

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        usage = self.usage
        self._emit(
            ModelCallCompleted(
                node=self._node,
                model=usage.model if usage else self._model,
                seconds=time.monotonic() - self._started,
                input_tokens=usage.input_tokens if usage else 0,
                output_tokens=usage.output_tokens if usage else 0,
                error=None if error is None else str(error) or type(error).__name__,
            )
        )


def attempt_failed(
    node: str, call: int, attempt: Attempt, number: int, wait: float
) -> ModelAttemptFailed:
    """Return the event of a request that brought no answer; ``number`` is 0 for one not made."""
    return ModelAttemptFailed(
        node=node,
        call=call,
        model=attempt.model,
        attempt=number,
        error=attempt.error,
        then=attempt.then,
        status=attempt.status,
        wait=wait,
    )
