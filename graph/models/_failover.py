"""One answer that is asked for: the chain of models, retries, and what it took (TL-17)."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Self, TypeVar

from langchain_core.messages import AIMessage

from daruma.graph.models._calls import Request
from daruma.graph.models._faults import CircuitOpen, Fault, ModelUnavailable, fault_of, keys_of
from daruma.graph.models._provider_errors import MAX_MESSAGE
from daruma.graph.models._providers import key_hint
from daruma.state.events import Event, ModelAttemptFailed, ModelCallCompleted, ModelCallStarted
from daruma.state.failure import ModelFailed
from daruma.state.settings import Requests
from daruma.state.text import storable_text
from daruma.state.usage import Attempt, Failover, Role, Usage, sound_usage
from daruma.tools.context import Answer
from daruma.tools.text import without_keys
from daruma.tools.tokens import ESTIMATE

# --- A model's answer as nodes get it: with what it cost and what it took.


def answer_of(message: AIMessage, usage: Usage, failover: Failover | None) -> Answer:
    """Return the answer; what it took stands on its message too."""
    message = message if failover is None else with_failover(message, failover)
    return Answer(message=message, usage=usage, failover=failover)


def with_failover(message: AIMessage, failover: Failover) -> AIMessage:
    """Return an answer that says what it took."""
    told = message.response_metadata | {"failover": failover.to_dict()}
    return message.model_copy(update={"response_metadata": told})


AGENTS: Final = {"compress": ("compressor", "summarization")}
"""Who asks in a node, and for what, where that is not the agent and its own work (CX-04)."""


def usage_of(message: AIMessage, this: "Pursuit") -> Usage:
    """Read what a call cost out of its answer, for whoever is asked just now.

    What the provider does not say is counted here, and marked (BU-05).
    """
    agent, task = AGENTS.get(this.node, ("", ""))
    told = sound_usage(message.usage_metadata)
    read, written, estimated = _tokens_of(message, told, this.request)
    cached = (told.get("input_token_details") or {}).get("cache_read", 0)
    return Usage(
        role=this.used,
        model=this.model,
        input_tokens=read,
        output_tokens=written,
        agent=agent,
        task=task,
        cached_tokens=min(cached, read),
        estimated=estimated,
    )


def _tokens_of(
    message: AIMessage, told: Mapping[str, Any], request: Request
) -> tuple[int, int, bool]:
    """Return what was read and written, and whether any of it is an estimate.

    0 is what clients make of what was not told. A total tells the part that is missing.
    """
    read, written, total = (told.get(f"{each}_tokens", 0) for each in ("input", "output", "total"))
    rest = max(total - read - written, 0)
    said_nothing = not (message.content or message.tool_calls or message.invalid_tool_calls)
    if read and (written or rest or said_nothing):
        return read, written or rest, False
    if written and rest:
        return rest, written, False
    if rest:
        written = min(ESTIMATE.of_message(message), rest)
        return rest - written, written, True
    return read or request.tokens, written or ESTIMATE.of_message(message), True


# --- Waiting for something so long and no longer.

Value = TypeVar("Value")


async def answer_within(seconds: float, answer: Awaitable[Value]) -> Value:
    """Wait for an answer so long. Raises ``TimeoutError``, which says how long that was.

    Whatever becomes of the answer, a cancellation while it was awaited is raised.
    """
    seconds = max(seconds, 0.0)
    task = asyncio.current_task()
    before = task.cancelling() if task else 0
    try:
        async with asyncio.timeout(seconds) as limit:
            return await answer
    except TimeoutError as error:
        if limit.expired():
            raise TimeoutError(f"no answer within {seconds:.3g} s") from error
        raise
    finally:
        # Clients make errors of their own of it, and Python 3.11 forgets some (`wait_for`).
        if task and task.cancelling() > before:
            raise asyncio.CancelledError


# --- What comes after a request that failed: ask again, ask the next model, or give up. Pure.

MAX_WAIT = 8.0
"""Seconds; the longest wait of our own. The official clients wait up to 8 s too."""
MAX_RETRY_AFTER = 120.0
"""Seconds; a server that is away for longer is not waited for (the official clients' limit)."""


@dataclass(frozen=True)
class FailedAttempt:
    """What failed, at which place of the chain; `asked` is false if no request was made."""

    place: int
    fault: Fault
    asked: bool = True


@dataclass(frozen=True)
class NextMove:
    """What is done next: at which place of the chain, after how many seconds."""

    then: Literal["again", "next model", "gave up"]
    place: int
    wait: float = 0.0


def next_move(
    tried: Sequence[FailedAttempt],
    *,
    chain: int,
    limits: Requests,
    elapsed: float,
    luck: float,
) -> NextMove:
    """Return what comes after the last of `tried`, none of which brought an answer.

    `chain` is the number of models, `elapsed` the seconds since the call began, `luck` a random
    number from 0 to 1, which spreads the requests of many.
    """
    last = tried[-1]
    given_up = NextMove("gave up", last.place)
    requests = sum(each.asked for each in tried)
    if last.fault.kind == "final" or requests >= limits.per_call or elapsed >= limits.total_seconds:
        return given_up
    here = sum(each.asked for each in tried if each.place == last.place)
    others = last.place + 1 < chain
    # A model that hangs would else use up the time of those that stand in for it.
    spared = min(limits.seconds, limits.total_seconds / 2)
    if last.fault.kind in {"again", "mend"} and here < limits.per_model:
        wait = _wait(last.fault, here, limits, luck)
        if wait is not None and elapsed + wait < limits.total_seconds - (spared if others else 0):
            return NextMove("again", last.place, wait)
    return NextMove("next model", last.place + 1) if others else given_up


def is_beyond(fault: Fault, limits: Requests, elapsed: float) -> bool:
    """Whether a server wants to be left alone for longer than a run waits for it (TL-17a)."""
    wait = fault.retry_after
    return wait is not None and (wait > MAX_RETRY_AFTER or elapsed + wait >= limits.total_seconds)


def _wait(fault: Fault, here: int, limits: Requests, luck: float) -> float | None:
    """Return how long to wait, None if the server wants more than anybody would wait for."""
    if fault.kind == "mend":
        return 0.0
    if fault.retry_after is None:
        return luck * min(MAX_WAIT, limits.wait_seconds * 2.0 ** (here - 1))
    return fault.retry_after if fault.retry_after <= MAX_RETRY_AFTER else None


# --- Telling of one call to a model: that it began, which requests failed, how it ended.


class CallEvents(AbstractContextManager["CallEvents"]):
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
        self._emit(attempt_event(self._node, self._call, attempt, number, wait))

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


def attempt_event(
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


# --- One answer that is asked for: where in the chain of models we are, and what failed so far.


@dataclass
class Pursuit:
    """A call under way; ``began`` is by the asker's clock. ``circuit`` is that of the model
    ``asked`` just now, ``charged`` what its last answer cost that could not be used.
    """

    node: str
    call: int
    role: Role
    chain: tuple[str, ...]
    request: Request
    began: float
    member: str = ""
    place: int = 0
    circuit: str | None = None
    asked: object = None
    tried: list[FailedAttempt] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    charged: Usage | None = None

    @property
    def model(self) -> str:
        """The name of the model that is asked just now."""
        return self.chain[self.place]

    @property
    def is_last(self) -> bool:
        """Whether no other model is left."""
        return self.place + 1 == len(self.chain)

    @property
    def requests(self) -> int:
        """How many requests have failed."""
        return sum(each.asked for each in self.tried)

    @property
    def used(self) -> Role:
        """What the model that is asked just now is asked as."""
        return self.role if self.place == 0 else "fallback"

    @property
    def metadata(self) -> dict[str, Any]:
        """What traces and streamed chunks show of the request that is made just now."""
        agent, task = AGENTS.get(self.node, ("", ""))
        return {
            "daruma_role": self.node,
            "daruma_call": self.call,
            "daruma_model": self.model,
            "daruma_attempt": self.requests + 1,
            "daruma_model_role": self.used,
            **({"daruma_failover": self._failover()} if self.tried else {}),
            **({"daruma_member": self.member} if self.member else {}),
            **({"daruma_agent": agent, "daruma_task": task} if agent else {}),
        }

    def _failover(self) -> dict[str, Any]:
        """Say what this request makes up for: which one failed last, and why."""
        last = self.tried[-1]
        return {
            "attempt": self.requests + 1,
            "from": self.chain[last.place],
            "to": self.model,
            "why": last.fault.message,
        }

    def failed(self, error: Exception, limits: Requests, elapsed: float) -> FailedAttempt:
        """Take down what failed; a request without an option that was refused comes next."""
        fault = fault_of(error)
        fault = replace(fault, hopeless=fault.hopeless or is_beyond(fault, limits, elapsed))
        said = storable_text(without_keys(fault.message, keys_of(self.asked))[:MAX_MESSAGE])
        said += key_hint(self.model) if fault.reason == "auth" else ""
        fault = replace(fault, message=said)
        request = self.request.without_refused(fault)
        if request is not self.request:
            self.request, fault = request, replace(fault, kind="mend")
        asked = not isinstance(error, CircuitOpen | ModelUnavailable)
        self.tried.append(FailedAttempt(self.place, fault, asked))
        return self.tried[-1]

    def moved(self, move: NextMove, seconds: float) -> Attempt:
        """Take down what was done about the last failure, and go on from there."""
        fault = self.tried[-1].fault
        attempt = Attempt(
            model=self.model,
            error=fault.message,
            then=move.then,
            status=fault.status,
            seconds=round(seconds, 3),
            usage=self.charged,
        )
        self.charged = None
        self.attempts.append(attempt)
        self.place = move.place
        return attempt

    def failover(self, used: str = "") -> Failover | None:
        """Return what it took, None if the first request brought the answer."""
        if not self.attempts:
            return None
        return Failover(requested=self.chain[0], used=used, attempts=tuple(self.attempts))

    def given_up(self) -> ModelFailed:
        """Return the failure of the call: what its one model said, or what each one did.

        It is final if each model would say the same at any later time.
        """
        last: dict[int, Fault] = {each.place: each.fault for each in self.tried}
        fault = self.tried[-1].fault
        said = [f"{self.chain[place]}: {each.message}" for place, each in last.items()]
        alone = len(last) == 1 and fault.reason == "unknown"
        return ModelFailed(
            fault.message if alone else "; ".join(said),
            code=fault.code,
            cause=fault.cause,
            final=all(each.hopeless for each in last.values()),
            failover=self.failover(),
            too_long=fault.too_long,
            reason=fault.reason,
        )
