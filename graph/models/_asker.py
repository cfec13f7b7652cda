"""Asking models: all requests for one answer, along a chain of models, are made and counted here.

No client below repeats a request, and no node above does (TL-17).
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeVar

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.errors import GraphBubbleUp

from daruma.graph.models._by_role import Models
from daruma.graph.models._calls import Request, ToolOfferingModel
from daruma.graph.models._faults import (
    MAX_MESSAGE,
    BrokenAnswer,
    Fault,
    ModelUnavailable,
    ScriptError,
    fault_of,
    keys_of,
)
from daruma.graph.models._openai_answers import ReadableAnswers, check_whole
from daruma.graph.models._providers import key_hint
from daruma.state.events import Event, ModelAttemptFailed, ModelCallCompleted, ModelCallStarted
from daruma.state.failure import Failure, ModelFailed, failure_of
from daruma.state.settings import Requests
from daruma.state.text import storable_text
from daruma.state.usage import Attempt, Failover, Role, Usage, sound_usage
from daruma.tools.calls import Tool, storable_answer, with_reasoning_apart
from daruma.tools.context import Answer, Sampling
from daruma.tools.model_requests import ESTIMATE
from daruma.tools.text import without_keys

AUXILIARY_SECONDS = 60.0
"""Seconds for one answer of an auxiliary model of its own, with all requests and waits."""

# --- A model's answer as nodes get it: with what it cost and what it took.


def with_failover(message: AIMessage, failover: Failover) -> AIMessage:
    """Return an answer that says what it took."""
    told = message.response_metadata | {"failover": failover.to_dict()}
    return message.model_copy(update={"response_metadata": told})


AGENTS: Final = {"compress": ("compressor", "summarization")}
"""Who asks in a node, and for what, where that is not the agent and its own work (CX-04)."""


_CACHE_WRITES: Final = ("cache_creation", "ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")
"""Where LangChain puts what a provider has begun to keep; of parts and their sum, one is 0."""


def usage_of(message: AIMessage, this: "Pursuit") -> Usage:
    """Read what a call cost out of its answer, for whoever is asked just now.

    What the provider does not say is counted here, and marked (BU-05).
    """
    agent, task = AGENTS.get(this.node, ("", ""))
    told = sound_usage(message.usage_metadata)
    read, written, estimated = _tokens_of(message, told, this.request)
    kept = told.get("input_token_details") or {}
    cached = min(kept.get("cache_read", 0), read)
    written_to = sum(kept.get(name, 0) for name in _CACHE_WRITES)
    return Usage(
        role=this.used,
        model=this.model,
        input_tokens=read,
        output_tokens=written,
        agent=agent,
        task=task,
        cached_tokens=cached,
        cache_write_tokens=min(written_to, read - cached),
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
    tried: Sequence[FailedAttempt], *, chain: int, limits: Requests, elapsed: float, luck: float
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


# --- One answer that is asked for: where in the chain of models we are, and what failed so far.


@dataclass
class Pursuit:
    """A call under way, within ``limits``. ``asked`` is the model of just now, ``charged``
    what its last answer cost that could not be used.

    ``luck`` gives random numbers from 0 to 1, ``clock`` seconds from any point on.
    """

    node: str
    call: int
    role: Role
    chain: tuple[str, ...]
    request: Request
    limits: Requests
    emit: Callable[[Event], None]
    luck: Callable[[], float] = random.random
    clock: Callable[[], float] = time.monotonic
    member: str = ""
    place: int = 0
    asked: object = None
    tried: list[FailedAttempt] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    charged: Usage | None = None

    def __post_init__(self) -> None:
        self.began = self.since = self.clock()

    @property
    def model(self) -> str:
        """The name of the model that is asked just now."""
        return self.chain[self.place]

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

    @property
    def seconds_left(self) -> float:
        """The seconds that are left for the whole call."""
        return self.limits.total_seconds - (self.clock() - self.began)

    def failed(self, error: Exception) -> float:
        """Take down what failed, and return the seconds to wait before the next request.

        Raises :class:`~daruma.state.failure.ModelFailed` where none is to be made.
        """
        elapsed = self.clock() - self.began
        last = self._taken_down(error, elapsed)
        move = next_move(
            self.tried, chain=len(self.chain), limits=self.limits, elapsed=elapsed, luck=self.luck()
        )
        attempt = Attempt(
            model=self.model,
            error=last.fault.message,
            then=move.then,
            status=last.fault.status,
            seconds=round(self.clock() - self.since, 3),
            usage=self.charged,
        )
        self.attempts.append(attempt)
        self.emit(
            ModelAttemptFailed(
                node=self.node,
                call=self.call,
                model=attempt.model,
                attempt=self.requests if last.asked else 0,
                error=attempt.error,
                then=attempt.then,
                status=attempt.status,
                wait=move.wait,
            )
        )
        if move.then == "gave up":
            raise self._given_up() from error
        self.charged, self.place = None, move.place
        return move.wait

    def _taken_down(self, error: Exception, elapsed: float) -> FailedAttempt:
        """Note what failed; a request without an option that was refused comes next."""
        fault = fault_of(error)
        fault = replace(fault, hopeless=fault.hopeless or is_beyond(fault, self.limits, elapsed))
        said = storable_text(without_keys(fault.message, keys_of(self.asked))[:MAX_MESSAGE])
        said += key_hint(self.model) if fault.reason == "auth" else ""
        fault = replace(fault, message=said)
        request = self.request.without_refused(fault)
        if request is not self.request:
            self.request, fault = request, replace(fault, kind="mend")
        asked = not isinstance(error, ModelUnavailable)
        self.tried.append(FailedAttempt(self.place, fault, asked))
        return self.tried[-1]

    def failover(self, used: str = "") -> Failover | None:
        """Return what it took, None if the first request brought the answer."""
        if not self.attempts:
            return None
        return Failover(requested=self.chain[0], used=used, attempts=tuple(self.attempts))

    def _given_up(self) -> ModelFailed:
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


# --- What nodes ask models with.

Note = Callable[[Failure, BaseException], None]


class Asker:
    """What nodes ask models with; an :class:`daruma.tools.context.Ask`.

    ``trace`` traces each request, and is told of its answer. ``luck`` gives random numbers from 0
    to 1, ``clock`` seconds from any point on.
    """

    def __init__(
        self,
        models: Models,
        *,
        trace: Callable[[Pursuit], AbstractContextManager[Any]] = lambda _: nullcontext(),
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        luck: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._models, self._trace = models, trace
        self._sleep, self._luck, self._clock = sleep, luck, clock
        self.own_auxiliary = models.own_auxiliary
        self._member = ""
        self._note: Note = lambda _failure, _error: None  # nobody ends with it
        self._said_no: set[str] = set()
        self._offered = ToolOfferingModel()

    async def __call__(
        self,
        node: str,
        messages: Sequence[BaseMessage],
        *,
        call: int,
        role: Role = "main",
        tools: Sequence[Tool] = (),
        sampling: Sampling | None = None,
        emit: Callable[[Event], None],
    ) -> Answer:
        """Ask for one answer and tell how it went. Raises :class:`ModelFailed`."""
        try:
            chain = self._chain(role)
            # Whoever said no for as long as the run lasts is passed over, if others are left.
            left = (at for at, model in enumerate(chain) if model not in self._said_no)
            request = Request(messages, tools, sampling, offered=self._offered)
            this = Pursuit(
                *(node, call, role, chain, request),
                limits=self._limits_of(role),
                emit=emit,
                luck=self._luck,
                clock=self._clock,
                member=self._member,
                place=next(left, 0),
            )
            try:
                return await self._told(this)
            finally:
                hopeless = (each.place for each in this.tried if each.fault.hopeless)
                self._said_no.update(chain[at] for at in hopeless)
        except ModelFailed as error:
            self._note(failure_of(error, node), error)
            raise

    @property
    def model(self) -> str:
        """The name of the main model; empty where there is none."""
        try:
            return self._models.name("main")
        except ModelUnavailable:
            return ""

    def noting(self, note: Note, said_no: set[str], member: str = "") -> "Asker":
        """Return what one run asks with, which notes the exceptions behind its failures.

        ``said_no`` are the models that will not answer in this run, as far as is known (TL-17a);
        ``member`` is the phase that a team member carries out.
        """
        asker = copy(self)
        asker._note, asker._said_no, asker._member = note, said_no, member
        return asker

    def _chain(self, role: Role) -> tuple[str, ...]:
        try:
            return self._models.chain(role)
        except ModelUnavailable as error:
            raise ModelFailed(str(error), cause=type(error).__name__, final=True) from error

    def _limits_of(self, role: Role) -> Requests:
        """Return the limits of a call; where the main model is asked next, waiting is no use."""
        limits = self._models.requests
        if role != "auxiliary" or not self.own_auxiliary:
            return limits
        most = min(limits.total_seconds, AUXILIARY_SECONDS)
        return limits.model_copy(update={"total_seconds": most})

    async def _told(self, this: Pursuit) -> Answer:
        """Ask, and tell that it began and how it ended."""
        usage, started, said = None, time.monotonic(), None
        this.emit(ModelCallStarted(node=this.node, model=this.model))
        try:
            message = await self._answered(this)
            usage = await self._models.priced(usage_of(message, this), this.role, this.place)
        except BaseException as error:
            said = str(error) or type(error).__name__
            raise
        finally:
            this.emit(
                ModelCallCompleted(
                    node=this.node,
                    model=usage.model if usage else this.chain[0],
                    seconds=time.monotonic() - started,
                    input_tokens=usage.input_tokens if usage else 0,
                    output_tokens=usage.output_tokens if usage else 0,
                    error=said,
                )
            )
        failover = this.failover(used=this.model)
        message = message if failover is None else with_failover(message, failover)
        return Answer(message=message, usage=usage, failover=failover)

    async def _answered(self, this: Pursuit) -> AIMessage:
        """Make requests until one is answered, or no other is to be made."""
        while True:
            this.since = self._clock()
            try:
                with self._trace(this) as span:
                    message = await self._requested(this)
                    if span:
                        span.answered(message)
                return message
            except (ScriptError, GraphBubbleUp):
                raise
            except Exception as error:  # noqa: BLE001 - another model may answer, whatever it is
                wait = this.failed(error)
            await self._sleep(wait)

    async def _requested(self, this: Pursuit) -> AIMessage:
        this.asked = None
        model = self._models.made(this.role, this.place)
        if model is None:  # a deadline costs as much as all that is looked up here
            made = self._models.ready(this.role, this.place)
            model = await answer_within(this.seconds_left, made)
        this.asked = model
        with ReadableAnswers(model):
            sent = this.request.sent(model, this.metadata)
            message = await answer_within(min(this.limits.seconds, this.seconds_left), sent)
        if not isinstance(message, AIMessage):
            raise BrokenAnswer(f"the answer is no message of a model, but {type(message).__name__}")
        message = with_reasoning_apart(storable_answer(message))
        try:
            check_whole(message, model)
        except BrokenAnswer:  # it can not be used, and was charged for
            usage = usage_of(message, this)
            this.charged = await self._models.priced(usage, this.role, this.place)
            raise
        return message
