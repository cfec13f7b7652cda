"""The next move after failed requests: a table of cases, and limits that no case can break."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.messages.ai import UsageMetadata
from langgraph.errors import GraphInterrupt
from tests.openai_answers import Reply
from tests.openai_server import Fault as FaultFailoverRuns
from tests.openai_server import OpenAIServer, openai_server
from tests.parts import at_once, memory, settings
from tests.scripted_runs import RecordingModel, say
from typing_extensions import override

from daruma.graph.build import build_graph
from daruma.graph.models import (
    Asker,
    FailedAttempt,
    Fault,
    Models,
    Pursuit,
    Request,
    answer_within,
)
from daruma.graph.models._asker import (
    MAX_RETRY_AFTER,
    MAX_WAIT,
    NextMove,
    next_move,
    usage_of,
)
from daruma.graph.models._faults import Kind
from daruma.state.events import Event, unheard
from daruma.state.settings import Requests, Settings

LIMITS = Requests(wait_seconds=1)


def failed(*kinds: Kind, place: int = 0, retry_after: float | None = None) -> list[FailedAttempt]:
    return [FailedAttempt(place, Fault(kind, "no", retry_after=retry_after)) for kind in kinds]


def skipped(place: int = 0) -> list[FailedAttempt]:
    return [FailedAttempt(place, Fault("next", "not asked"), asked=False)]


def move(
    tried: list[FailedAttempt], chain: int = 1, elapsed: float = 1, limits: Requests = LIMITS
) -> NextMove:
    return next_move(tried, chain=chain, limits=limits, elapsed=elapsed, luck=1.0)


def again(wait: float) -> NextMove:
    return NextMove("again", 0, wait)


NEXT = NextMove("next model", 1)
GAVE_UP = NextMove("gave up", 0)
THREE = failed("again", "again", "again")


@pytest.mark.parametrize(
    ("tried", "chain", "elapsed", "expected"),
    [
        (failed("again"), 1, 1, again(1)),
        (failed("again", "again"), 1, 1, again(2)),
        (failed("again", "again", "again"), 1, 1, GAVE_UP),
        (failed("again", "again", "again"), 2, 1, NEXT),
        (failed("mend"), 1, 1, again(0)),
        (failed("mend", "mend", "mend"), 1, 1, GAVE_UP),
        (failed("next"), 1, 1, GAVE_UP),
        (failed("next"), 2, 1, NEXT),
        (failed("final"), 2, 1, GAVE_UP),
        (failed("again", retry_after=0), 1, 1, again(0)),
        (failed("again", retry_after=120), 1, 1, again(120)),
        (failed("again", retry_after=121), 1, 1, GAVE_UP),
        (failed("again", retry_after=121), 2, 1, NEXT),
        (failed("again", retry_after=120), 1, 480, GAVE_UP),
        (failed("again", retry_after=120), 2, 480, NEXT),
        (failed("again"), 1, 300, again(1)),
        (failed("again"), 2, 299, NEXT),
        (failed("again"), 2, 298, again(1)),
        (failed("again"), 2, 599.5, NEXT),
        (failed("again"), 2, 600, GAVE_UP),
        (failed("next"), 2, 600, GAVE_UP),
        (skipped(), 2, 1, NEXT),
        (skipped() + failed("again", "again", place=1), 2, 1, NextMove("again", 1, 2)),
        (THREE + failed("again", "again", "again", place=1), 3, 1, NextMove("gave up", 1)),
        (THREE + failed("again", "again", place=1), 3, 1, NextMove("again", 1, 2)),
    ],
)
def test_the_next_move(
    tried: list[FailedAttempt], chain: int, elapsed: float, expected: NextMove
) -> None:
    """TL-17: again after a wait, the next model at once, or the end."""
    assert move(tried, chain, elapsed) == expected


def test_the_wait_is_spread_by_luck_up_to_a_limit() -> None:
    """What failed for many at once is not asked by all of them at once again."""
    tried, limits = failed("again", "again"), Requests(wait_seconds=60)

    waits = [
        next_move(tried, chain=1, limits=limits, elapsed=0, luck=luck).wait for luck in (0, 0.5, 1)
    ]

    assert waits == [0, MAX_WAIT / 2, MAX_WAIT]


FEW = Requests(per_model=1, per_call=2)
TWO = Requests(wait_seconds=1, per_call=2)
SHORT = Requests(wait_seconds=1, seconds=300, total_seconds=20)
"""A time that one whole request would use up: half of it is left for the next model."""


@pytest.mark.parametrize(
    ("tried", "chain", "elapsed", "limits", "expected"),
    [
        (failed("again"), 2, 8, SHORT, again(1)),
        (failed("again"), 2, 9, SHORT, NEXT),
        (failed("again"), 3, 1, FEW, NEXT),
        (failed("again") + failed("again", place=1), 3, 1, FEW, NextMove("gave up", 1)),
        (skipped() + failed("again", place=1), 2, 1, TWO, NextMove("again", 1, 1)),
    ],
)
def test_limits_are_those_of_the_settings(
    tried: list[FailedAttempt], chain: int, elapsed: float, limits: Requests, expected: NextMove
) -> None:
    """A model that keeps failing gets as many requests; passing one over is none."""
    assert move(tried, chain, elapsed, limits) == expected


FAULTS = st.builds(
    Fault,
    kind=st.sampled_from(["again", "again", "mend", "next", "final"]),
    message=st.just("no"),
    retry_after=st.none() | st.floats(0, 1000),
)
LIMITED = st.builds(
    Requests,
    per_model=st.integers(1, 3),
    per_call=st.integers(1, 6),
    wait_seconds=st.floats(0, 100),
    total_seconds=st.floats(0.1, 1000),
)


@pytest.mark.long
@given(
    faults=st.lists(st.tuples(FAULTS, st.booleans(), st.floats(0, 100)), min_size=40, max_size=40),
    limits=LIMITED,
    chain=st.integers(1, 9),
    luck=st.floats(0, 1),
)
def test_no_run_of_failures_breaks_a_limit(
    faults: list[tuple[Fault, bool, float]], limits: Requests, chain: int, luck: float
) -> None:
    """TL-17: requests to a model, requests in all, and the time at which the last one begins."""
    tried: list[FailedAttempt] = []
    place, clock = 0, 0.0
    for fault, asked, seconds in faults:
        assert clock < limits.total_seconds
        skips = not asked and fault.kind == "next"
        tried.append(FailedAttempt(place, fault, asked=not skips))
        clock += seconds
        done = next_move(tried, chain=chain, limits=limits, elapsed=clock, luck=luck)
        if done.then == "gave up":
            break
        assert done.place == place + (done.then == "next model") < chain
        assert 0 <= done.wait <= MAX_RETRY_AFTER
        place, clock = done.place, clock + done.wait
    else:
        pytest.fail("it never ends")

    requests = [each.place for each in tried if each.asked]
    assert len(requests) <= limits.per_call
    assert max(map(requests.count, requests), default=0) <= limits.per_model


# --- A model's answer as nodes get it.


@pytest.mark.parametrize(
    "told", [None, UsageMetadata(input_tokens=0, output_tokens=0, total_tokens=0)]
)
def test_what_a_provider_does_not_count_is_counted_here(told: UsageMetadata | None) -> None:
    """BU-05: what was sent, and what was answered; and it is marked."""
    small, large = Request([HumanMessage("hi " * 10)]), Request([HumanMessage("hi " * 1000)])
    answer = AIMessage("word " * 100, usage_metadata=told)
    usages = [usage_of(answer, pursuit(each)) for each in (small, large)]

    assert all(each.estimated for each in usages)
    assert 10 <= usages[0].input_tokens < 100
    assert 1000 <= usages[1].input_tokens < 2000
    assert 100 <= usages[0].output_tokens < 200


def pursuit(request: Request) -> Pursuit:
    told: Any = {"limits": Requests(), "emit": unheard}
    return Pursuit("reflect", 0, "reflect", ("m",), request, **told)


# --- Waiting so long and no longer.


async def value(error: Exception | None = None) -> str:
    if error:
        raise error
    return "hi"


@pytest.mark.parametrize("seconds", [0.01, 0, -1])
async def test_what_does_not_come_is_cancelled(seconds: float) -> None:
    """And the error says how long was waited; no time left is no time at all."""
    waiting = asyncio.ensure_future(asyncio.Event().wait())

    with pytest.raises(TimeoutError, match="no answer within 0"):
        await answer_within(seconds, waiting)

    assert waiting.cancelled()


@pytest.mark.parametrize("error", [None, ConnectionError("broken off")])
async def test_a_cancellation_that_the_answer_swallows_is_not_lost(error: Exception | None) -> None:
    """Clients make errors of their own of it, and Python 3.11 forgets some altogether."""
    asked = asyncio.Event()

    async def deaf() -> str:
        asked.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return await value(error)

    waiting = asyncio.create_task(answer_within(9, deaf()))
    await asked.wait()
    waiting.cancel()

    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_anothers_timeout_stays_as_it_is() -> None:
    """It was not ours."""
    with pytest.raises(TimeoutError, match="theirs"):
        await answer_within(9, value(TimeoutError("theirs")))


# --- Whole runs over failing models, as those who watch, trace and read the result see them.

REQUEST: Any = {"messages": [("user", "Say hi")], "mode": "react"}
CONFIG: Any = {"configurable": {"thread_id": "t"}}
QUICK = {"wait_seconds": 0, "chunk_seconds": 0.3}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    """Model `m` breaks off in the midst of its answer, `n` answers."""
    with openai_server(
        lambda request: (
            FaultFailoverRuns(cut="later") if request["model"] == "m" else Reply("Hello there.")
        )
    ) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


def chain_failover_runs(**requests: Any) -> Settings:
    return settings(llm={"fallback_models": ["openai:n"], "requests": QUICK | requests})


def asked(server: OpenAIServer) -> str:
    return "".join(request["model"] for request in server.requests)


def test_the_result_tells_of_the_failover(server: OpenAIServer) -> None:
    """TL-17, MO-07: the audit holds requested, used, attempts; the usage has its role."""
    graph: Any = build_graph("openai:m", settings=chain_failover_runs(), checkpointer=memory())

    out = graph.invoke(REQUEST, CONFIG)

    result = out["result"].to_dict()
    (audit,) = result["audit"]
    assert out["messages"][-1].text == "Hello there."
    assert asked(server) == "mmmn"
    assert (audit["failover"]["requested"], audit["failover"]["used"]) == ("openai:m", "openai:n")
    assert len(audit["failover"]["attempts"]) == 3
    assert out["messages"][-1].response_metadata["failover"] == audit["failover"]
    assert list(result["usage"]) == ["fallback"]


@pytest.mark.usefixtures("server")
async def test_a_watcher_can_take_back_what_was_dropped() -> None:
    """What it saw of an attempt has the number that the event names, and an id of its own."""
    graph: Any = build_graph("openai:m", settings=chain_failover_runs(), checkpointer=memory())
    shown: dict[tuple[Any, ...], str] = {}
    ids: dict[str, int] = {}
    recorded: list[str] = []

    async for mode, part in graph.astream(REQUEST, CONFIG, stream_mode=["messages", "custom"]):
        if mode == "messages":
            chunk, told = part
            if "daruma_attempt" not in told:
                recorded.append(chunk.text)
                continue
            key = (told["daruma_role"], told["daruma_call"], told["daruma_attempt"])
            shown[key] = shown.get(key, "") + chunk.text
            ids[chunk.id] = told["daruma_attempt"]
        elif part["type"] == "model_attempt_failed":
            dropped = shown.pop((part["node"], part["call"], part["attempt"]))
            assert "Hello" not in dropped
            assert dropped

    assert shown == {("main", 0, 4): "Hello there."}
    assert recorded == ["Hello there."]
    assert set(ids.values()) == {1, 2, 3, 4}


async def test_keep_alive_comments_do_not_hold_off_the_end_of_a_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A connection that says nothing is given up after `llm.requests.chunk_seconds`."""
    with openai_server([FaultFailoverRuns(keep_alive=True), Reply("Done.")]) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        graph: Any = build_graph("openai:m", settings=chain_failover_runs())
        parts = [part async for part in graph.astream(REQUEST, stream_mode=["messages", "custom"])]

    (failed,) = (
        part for mode, part in parts if mode == "custom" and part["type"] == "model_attempt_failed"
    )
    assert failed["error"].startswith("No streaming chunk received for 0.3s")
    assert asked(server) == "mm"


class Trace(BaseCallbackHandler):
    """What a tracer is told of each request."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []

    @override
    def on_chat_model_start(self, *_: Any, metadata: Any = None, **__: Any) -> None:
        ours = {key: each for key, each in metadata.items() if key.startswith("daruma_")}
        self.requests.append(ours)


@pytest.mark.usefixtures("server")
def test_a_trace_names_model_and_attempt() -> None:
    """FA-07: for each request that was made."""
    trace = Trace()
    graph: Any = build_graph("openai:m", settings=chain_failover_runs(per_model=2))

    graph.invoke(REQUEST, {"callbacks": [trace]})

    asked = ["openai:m", "openai:m", "openai:n"]
    own = {"daruma_role": "main", "daruma_call": 0, "daruma_node": "main", "daruma_mode": "react"}
    assert all(own.items() <= each.items() for each in trace.requests)
    assert [each["daruma_model"] for each in trace.requests] == asked
    assert [each["daruma_attempt"] for each in trace.requests] == [1, 2, 3]
    roles = [each["daruma_model_role"] for each in trace.requests]
    assert roles == ["main", "main", "fallback"]
    last = trace.requests[-1]["daruma_failover"]
    assert (last["attempt"], last["from"], last["to"]) == (3, "openai:m", "openai:n")
    assert last["why"]
    assert "daruma_failover" not in trace.requests[0]


def test_no_fallback_is_made_before_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes a second: what its class would refuse is found out when it is."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    options = {"fallback": {"extra": {"unheard_of": 1}}}
    given = settings(llm={"fallback_models": ["openai:n"], "options": options})

    out = build_graph(RecordingModel(script=[say()]), settings=given).invoke(REQUEST)

    assert out["messages"][-1].text == "Done."


class Interrupting(RecordingModel):
    """A model that asks a person."""

    def answer(self, *_: Any, **__: Any) -> Any:
        raise self.script

    def model_post_init(self, context: Any, /) -> None:
        pass


@pytest.mark.parametrize("error", [GraphInterrupt(), KeyboardInterrupt()])
def test_what_is_no_failure_passes_through(error: BaseException) -> None:
    """EM-02: it is not counted, and no other model is asked."""
    spare = "scripted:/no/such"
    asker = Asker(Models(Interrupting(script=error), fallbacks=[spare]), sleep=at_once)
    events: list[Event] = []

    with pytest.raises(type(error)):
        asyncio.run(asker("main", [], call=0, emit=events.append))

    assert [event.type for event in events] == ["model_call_started", "model_call_completed"]
