"""Running a tool: its time limit, its trace, and faults put in on purpose."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from statistics import median
from typing import Any

import pytest
from langchain_core.tools import BaseTool, tool
from tests.parts import settings
from tests.scripted_runs import Run, call, calls, say
from typing_extensions import TypeVarTuple, Unpack, override

from daruma.tools.calls import Surroundings, Tool, run_with_timeout, with_faults, wrap_tool
from daruma.tools.calls._tool import Effect
from daruma.tools.errors import OutcomeUnknown, ToolError
from daruma.tools.threads import MOST_TOOL_THREADS, NotStarted, in_tool_thread

# --- A tool's call ends in its time, and is told for what it is when it does not.

Ts = TypeVarTuple("Ts")

AT = Surroundings()
SHORT = 0.02
"""Seconds: for what never ends by itself."""


def made(work: Callable[[], Awaitable[str]], effect: Effect = "external", **given: Any) -> Tool:
    """A tool of ours around a coroutine."""

    async def run(*_: Any) -> str:
        return await work()

    return Tool("pay", "", {}, run, effect=effect, **given)


async def for_ever() -> str:
    await asyncio.Event().wait()
    return "never"


class Timed(asyncio.SelectorEventLoop):
    """A loop that keeps its timers in sight."""

    def __init__(self) -> None:
        super().__init__()
        self.timers: list[asyncio.TimerHandle] = []

    @override
    def call_at(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, **given: Any
    ) -> asyncio.TimerHandle:
        self.timers.append(super().call_at(when, callback, *args, **given))
        return self.timers[-1]


@pytest.mark.parametrize(("seconds", "timers"), [(1000, 1), (None, 0)])
def test_a_tool_that_ends_in_time_answers_and_leaves_no_timer(
    seconds: float | None, timers: int
) -> None:
    """They would be as many as there were calls, each until its time is over."""

    async def work() -> str:
        await asyncio.sleep(0)
        return "paid"

    loop = Timed()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        said = runner.run(run_with_timeout(seconds, made(work), {}, AT))

    assert said == "paid"
    assert [each.cancelled() for each in loop.timers] == [True] * timers


async def test_a_call_that_is_given_up_may_have_happened_if_it_has_an_effect() -> None:
    """TL-21: it is neither failed nor done then; without an effect it has failed."""
    may_have = "; it may or may not have happened: look before you call it again"
    effect: Any
    for effect, kind, said in (
        ("external", OutcomeUnknown, f"outcome_unknown: pay did not end in 0.02 s{may_have}"),
        ("workspace", OutcomeUnknown, f"outcome_unknown: pay did not end in 0.02 s{may_have}"),
        ("none", ToolError, "pay did not end in 0.02 s"),
    ):
        with pytest.raises(ToolError) as told:
            await run_with_timeout(SHORT, made(for_ever, effect), {}, AT)

        assert (type(told.value), str(told.value)) == (kind, said)


async def test_a_blocking_tool_is_given_up_while_it_runs() -> None:
    """TL-21: its thread can not be stopped."""
    gate, begun = threading.Event(), threading.Event()

    @tool
    def pay(amount: int) -> str:
        """Pay it."""
        begun.set()
        gate.wait()
        return f"paid {amount}"

    paying = asyncio.ensure_future(run_with_timeout(0.2, wrap_tool(pay), {"amount": 3}, AT))
    await asyncio.to_thread(begun.wait)
    with pytest.raises(OutcomeUnknown):
        await paying
    gate.set()


@asynccontextmanager
async def without_threads() -> AsyncIterator[None]:
    """Others hold all the threads."""
    gate = threading.Event()
    held = [asyncio.ensure_future(in_tool_thread(gate.wait)) for _ in range(MOST_TOOL_THREADS)]
    await asyncio.sleep(0)
    yield
    gate.set()
    await asyncio.gather(*held)


async def test_a_call_that_never_began_is_known_not_to_have_happened() -> None:
    """DU-06: that is no unknown outcome; cancelled, its intent can be taken back."""
    async with without_threads():
        with pytest.raises(ToolError, match="did not even begin") as told:
            await run_with_timeout(SHORT, raising(ValueError("it ran"), blocking=True), {}, AT)
        call = asyncio.ensure_future(
            run_with_timeout(60, raising(ValueError("it ran"), blocking=True), {}, AT)
        )
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError) as ended:
            await call

    assert not isinstance(told.value, OutcomeUnknown)
    assert ended.type is NotStarted


def raising(error: BaseException, *, blocking: bool) -> Tool:
    @tool
    def pay() -> str:
        """Pay it."""
        raise error

    async def work() -> str:
        raise error

    return wrap_tool(pay) if blocking else made(work)


@pytest.mark.parametrize("blocking", [True, False])
async def test_what_a_tool_raises_is_the_tools(blocking: bool) -> None:
    """A timeout of its own is a failure that it knows of; nothing ends the event loop."""
    for error in (TimeoutError("its own"), ToolError("no"), SystemExit(3), ValueError("x")):
        raised: list[BaseException] = []
        try:
            await run_with_timeout(5, raising(error, blocking=blocking), {}, AT)
        except BaseException as caught:  # noqa: BLE001  # SystemExit would end the test's loop
            raised.append(caught)

        assert [repr(each) for each in raised] == [repr(error)]
        assert blocking or raised == [error]


@pytest.mark.parametrize("blocking", [True, False])
async def test_a_tool_that_cancels_itself_does_not_cancel_the_run(blocking: bool) -> None:
    """A library's own cancel scope, or loop, may do that; what it did is not known."""
    with pytest.raises(OutcomeUnknown, match="pay was cancelled from within"):
        await run_with_timeout(5, raising(asyncio.CancelledError(), blocking=blocking), {}, AT)


@pytest.mark.parametrize("blocking", [True, False])
async def test_a_cancellation_goes_on(blocking: bool) -> None:
    """TL-21: and the tool is told, if it can be."""
    begun, gate = asyncio.Event(), threading.Event()
    told: list[str] = []
    loop = asyncio.get_running_loop()

    async def work() -> str:
        begun.set()
        try:
            return await for_ever()
        finally:
            told.append("cancelled")

    def block() -> str:
        loop.call_soon_threadsafe(begun.set)
        return str(gate.wait())

    async def in_a_thread() -> str:
        return await in_tool_thread(block)

    call = run_with_timeout(60, made(in_a_thread if blocking else work, blocking=blocking), {}, AT)
    task = asyncio.ensure_future(call)
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gate.set()

    assert told == ([] if blocking else ["cancelled"])


async def test_a_tool_that_takes_no_notice_is_left_behind() -> None:
    """After some grace: it must not hold up the run for ever."""
    gate = asyncio.Event()
    ended = asyncio.Event()

    async def deaf() -> str:
        while not gate.is_set():
            try:
                await gate.wait()
            except asyncio.CancelledError:
                continue
        ended.set()
        return "at last"

    with pytest.raises(OutcomeUnknown):
        await run_with_timeout(SHORT, made(deaf), {}, AT, grace=SHORT)
    gate.set()
    await asyncio.wait_for(ended.wait(), 5)


async def test_a_tool_whose_clean_up_fails_may_have_happened_all_the_same() -> None:
    """TL-21: what broke is the giving up; what the call did before is not known."""

    async def work() -> str:
        try:
            return await for_ever()
        finally:
            raise ValueError("the connection was lost")

    with pytest.raises(OutcomeUnknown, match="pay did not end in"):
        await run_with_timeout(SHORT, made(work), {}, AT)


@pytest.mark.parametrize("seconds", [5, None])
async def test_a_blocking_tool_takes_no_task(seconds: float | None) -> None:
    """It ends at once when it is cancelled: a task would only be begun and waited for."""

    @tool
    def pay(amount: int) -> str:
        """Pay it."""
        return f"paid {amount}"

    made: list[object] = []

    def counting(loop: Any, coroutine: Any, **given: Any) -> Any:
        made.append(coroutine)
        return asyncio.Task(coroutine, loop=loop, **given)

    loop = asyncio.get_running_loop()
    loop.set_task_factory(counting)
    try:
        said = await run_with_timeout(seconds, wrap_tool(pay), {"amount": 3}, AT)
    finally:
        loop.set_task_factory(None)

    assert said == "paid 3"
    assert made == []


async def test_built_in_tools_have_limits_of_their_own() -> None:
    """Commands, for one, are killed and awaited."""

    async def work() -> str:
        for _ in range(3):
            await asyncio.sleep(0)
        return "ran"

    assert await run_with_timeout(1e-9, made(work, origin="builtin"), {}, AT) == "ran"


# --- A tool can be made to fail as told, whatever kind of tool it is.

DATA = {"data": [3, 1, 2]}


async def amedian(data: list[int]) -> float:
    """Return the median."""
    return median(data)


@tool
def declared(data: list[int]) -> float:
    """Return the median."""
    return median(data)


class OfItsOwn(BaseTool):
    """A tool that is no function."""

    name: str = "own"
    description: str = "Return the median."

    def _run(self, data: list[int]) -> float:
        return median(data)


KINDS = pytest.mark.parametrize(
    "kind", [median, amedian, declared, OfItsOwn()], ids=["plain", "async", "declared", "class"]
)


def run(faulty: BaseTool) -> str:
    """Call a tool as the machine does."""

    async def called() -> str:
        return await wrap_tool(faulty).run(DATA, Surroundings())

    return asyncio.run(called())


@KINDS
def test_each_call_has_its_fault_and_later_ones_have_none(
    kind: Callable[..., Any] | BaseTool,
) -> None:
    """An exception is raised, a text returned; None lets the call be, and so does the end.

    A number is how many seconds pass first; whoever has the time gets the result.
    """
    faulty = with_faults(kind, [ConnectionError("away"), "nonsense", None, 0.05])

    with pytest.raises(ConnectionError, match="away"):
        run(faulty)
    assert [run(faulty) for _ in range(2)] == ["nonsense", "2"]
    began = time.monotonic()
    assert run(faulty) == "2"
    assert time.monotonic() - began >= 0.05
    assert run(faulty) == "2"


@KINDS
def test_a_late_call_meets_the_limit_of_the_machine(kind: Callable[..., Any] | BaseTool) -> None:
    """Which is what the fault is for: the model is told, and goes on."""
    late = with_faults(kind, [0.5])
    script = [calls(call(late.name, data=DATA["data"])), {**say(), "expect": ["outcome_unknown"]}]
    hurried = Run(script, tools=[late], settings=settings(tools={"timeout": 0.1})).ask()

    assert hurried.result.status == "completed"


@pytest.mark.sampled(2)
@KINDS
def test_what_the_model_is_shown_is_the_tool_as_it_was(
    kind: Callable[..., Any] | BaseTool,
) -> None:
    """Faults change what happens, not what can be called, nor what is declared of it."""
    as_it_was, faulty = wrap_tool(kind), wrap_tool(with_faults(kind, []))
    same = declared.model_copy(update={"metadata": {"daruma": {"idempotent": True}}})

    assert faulty.as_function() == as_it_was.as_function()
    assert faulty.effect == as_it_was.effect
    assert wrap_tool(with_faults(same, [])).idempotent


def test_side_by_side_each_fault_strikes_once() -> None:
    """Counting loses and repeats nothing when calls run at once."""
    faulty = with_faults(median, [str(number) for number in range(200)])

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: int(faulty.invoke(DATA)), range(200)))

    assert sorted(found) == list(range(200))
