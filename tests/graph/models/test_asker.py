"""Asking models: the one place where requests leave the machine, are counted, and answers come
in.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.tracers.context import collect_runs
from langgraph.constants import TAG_NOSTREAM
from pydantic import SecretStr
from tests.failing_models import KEY, answer, passed_in, said, serving, streaming
from tests.openai_answers import Reply
from tests.openai_server import Fault
from tests.parts import a_registry, at_once
from tests.scripted_runs import RecordingModel, say, unclosed

from daruma.graph.models import (
    Asker,
    Models,
)
from daruma.graph.models._faults import ScriptExhausted
from daruma.state.events import Event
from daruma.state.failure import ModelFailed
from daruma.state.settings import Requests, Tools
from daruma.tools.context import EXACT, Answer, Sampling
from daruma.tools.model_requests import sendable

# --- Asking a model: one system message, what it cost, and every failure as one kind.

HELLO: Sequence[BaseMessage] = [SystemMessage("a"), HumanMessage("hi"), SystemMessage("b")]


async def ask(model: Any, events: list[Event] | None = None, **options: Any) -> Answer:
    emit = (events if events is not None else []).append
    asker = Asker(Models(model), sleep=at_once)
    return await asker("main", HELLO, call=options.pop("call", 0), emit=emit, **options)


class APITimeoutError(Exception):
    """A provider's own class."""


class Failing(RecordingModel):
    """A model whose every call raises."""

    def answer(self, *_: Any, **__: Any) -> AIMessage:
        raise self.script[0]["error"]

    def model_post_init(self, context: Any, /) -> None:
        pass


async def test_system_messages_are_one_at_the_head() -> None:
    """TL-20: in their order."""
    model = RecordingModel(script=[say()])
    await ask(model)

    assert [(m.type, m.text) for m in model.requests[0]] == [("system", "a\n\nb"), ("human", "hi")]
    assert sendable([HumanMessage("hi")]) == [HumanMessage("hi")]


def len_(text: str) -> int:
    """Count it."""
    return len(text)


@pytest.mark.parametrize(
    ("error", "code", "said", "cause"),
    [
        (ValueError("no\n  way"), "llm_failure", "no way", "ValueError"),
        (ValueError("a\ud800b"), "llm_failure", "a b", "ValueError"),
        (TimeoutError(), "timeout", "scripted: TimeoutError", "TimeoutError"),
        (APITimeoutError("slow"), "timeout", "scripted: slow", "APITimeoutError"),
        (
            ConnectionError("x" * 900),
            "llm_failure",
            f"scripted: no connection: {'x' * 485}",
            "ConnectionError",
        ),
    ],
)
async def test_every_failure_is_of_one_kind(
    error: Exception, code: str, said: str, cause: str
) -> None:
    """EM-02: in one line, with the provider's own class named and the exception behind it."""
    with pytest.raises(ModelFailed) as raised:
        await ask(Failing(script=[{"error": error}]))

    assert (raised.value.code, str(raised.value), raised.value.cause) == (code, said, cause)
    assert raised.value.__cause__ is error


@pytest.mark.parametrize("model", [None, "nonsense:x", "scripted:/no/such/file.yaml"])
async def test_a_model_that_is_not_there_is_a_failure_of_the_model(model: Any) -> None:
    """EM-02: not a bug of ours to be reported, but settings to be mended."""
    with pytest.raises(ModelFailed) as raised:
        await ask(model)

    assert raised.value.final


async def test_a_model_that_takes_no_tools_is_told_in_words() -> None:
    """And the next one is asked, as it is never of use."""
    (tool,) = a_registry([len_]).visible(Tools(), ())

    with pytest.raises(ModelFailed, match="FakeListChatModel takes no tools") as raised:
        await ask(FakeListChatModel(responses=["hi"]), tools=[tool])

    assert raised.value.final


async def test_a_sampled_answer_is_kept_from_watchers() -> None:
    """LangGraph shows no message of a call that is tagged so."""
    model = RecordingModel(script=[say(), say()])
    with collect_runs() as traced:
        await ask(model)
        await ask(model, call=1, sampling=EXACT)

    assert [TAG_NOSTREAM in (run.tags or []) for run in traced.traced_runs] == [False, True]


async def test_a_script_that_does_not_fit_is_a_bug() -> None:
    """No recovery may hide it; PL-04: its milestone is closed."""
    events: list[Event] = []
    with pytest.raises(ScriptExhausted):
        await ask(RecordingModel(script=[]), events)

    assert unclosed(event.to_dict() for event in events) == []


class Silent(RecordingModel):
    """A model that never answers; it tells when it was asked."""

    async def _agenerate(self, *_: Any, **__: Any) -> Any:
        self.script["asked"].set()
        await asyncio.Event().wait()

    def model_post_init(self, context: Any, /) -> None:
        pass


async def test_a_cancelled_call_stays_cancelled_and_is_closed() -> None:
    """EM-02 and PL-04: a cancellation is never classified, and its milestone is closed."""
    events: list[Event] = []
    asked = asyncio.Event()
    task = asyncio.create_task(ask(Silent(script={"asked": asked}), events))
    await asked.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert events[-1].to_dict()["error"] == "CancelledError"
    assert unclosed(event.to_dict() for event in events) == []


async def test_a_call_is_told_from_start_to_end() -> None:
    """PL-04: with what it cost, or why it failed."""
    good: list[Event] = []
    bad: list[Event] = []
    await ask(RecordingModel(script=[say() | {"usage": {"input": 7, "output": 3}}]), good)
    with pytest.raises(ModelFailed):
        await ask(Failing(script=[{"error": ValueError("no")}]), bad)

    assert [event.type for event in good] == ["model_call_started", "model_call_completed"]
    assert good[1].to_dict() | {"seconds": 0} == {
        "type": "model_call_completed",
        "node": "main",
        "model": "scripted",
        "seconds": 0,
        "input_tokens": 7,
        "output_tokens": 3,
        "error": None,
    }
    assert [event.to_dict().get("error") for event in bad] == [None, "no", "no"]


# --- One answer, through the real client: how often which model is asked, and how long.

AGAIN = "mmmn"
NEXT = "mn"
FINAL = "m"

SHORT = Requests(seconds=0.4)

FATES = [
    (Fault(404), NEXT),
    (Fault(400, said(message="tools are not supported")), NEXT),
    (Fault(429, headers={"Retry-After": "121"}), NEXT),
    (Fault(401), FINAL),
    (Fault(422), FINAL),
    (Fault(503), AGAIN),
    (Fault(cut="before_first_token"), AGAIN),
    (Fault(cut="later"), AGAIN),
    (Fault(malformed=True), AGAIN),
    (answer(), AGAIN),
    (answer(finish_reason=None), AGAIN),
    (Fault(200, {"choices": None}), AGAIN),
]
"""What OpenAI's client makes of a few of them: ``test_faults.py`` has all."""


@pytest.mark.sampled(8)
@pytest.mark.parametrize("model", [lambda _: "openai:m", passed_in, streaming])
@pytest.mark.parametrize(("fault", "asked"), FATES, ids=lambda part: repr(part)[:70])
async def test_a_fault_has_its_fate(fault: Fault, asked: str, model: Callable[[str], Any]) -> None:
    """TL-17: as many requests as the table says; those of a model's own do not multiply them."""
    with serving(fault) as asking:
        asker = asking.asker(model(asking.server.url))
        if asked == FINAL:
            await asking.fail(asker)
        else:
            given = await asking.ask(asker)
            assert (given.message.text, given.usage.role) == ("from n", "fallback")
        assert asking.asked == asked


@pytest.mark.long
@pytest.mark.parametrize("model", [lambda _: "openai:m", streaming], ids=["plain", "streaming"])
@pytest.mark.parametrize(
    "never", [lambda: Fault(keep_alive=True), lambda: Fault(hang=threading.Event())]
)
async def test_a_request_that_never_ends_is_ended(
    never: Callable[[], Fault], model: Callable[[str], Any]
) -> None:
    """EM-02: by our own limit, whatever drips in; the failure is a timeout."""
    with serving(never()) as asking:
        asker = asking.asker(model(asking.server.url), fallbacks=(), requests=SHORT)
        error = await asking.fail(asker)

    assert (error.code, asking.asked, error.final) == ("timeout", "mmm", False)


@pytest.mark.parametrize("cut", ["before_first_token", "later", "unfinished"])
async def test_of_a_stream_that_breaks_nothing_is_left(cut: Any) -> None:
    """TL-17: neither words nor tokens."""
    with serving(Fault(cut=cut), Reply("whole", usage=(5, 2))) as asking:
        given = await asking.ask(asking.asker(streaming(asking.server.url)))

    assert (given.message.text, asking.asked) == ("whole", "mm")
    assert (given.usage.input_tokens, given.usage.output_tokens) == (5, 2)
    assert given.usage.role == "main"


async def test_all_requests_together_end_in_time() -> None:
    """However long one of them may take."""
    with serving(Fault(hang=threading.Event())) as asking:
        error = await asking.fail(Asker(Models("openai:m", requests=Requests(total_seconds=0.6))))

    assert str(error).startswith("openai:m: no answer within 0.")
    assert asking.asked == "m"


@pytest.mark.long
async def test_a_call_ends_in_time_where_all_threads_are_taken() -> None:
    """Models are made in threads: whoever blocks those holds up nothing for longer."""
    busy = threading.Event()
    with serving(Reply("hi")) as asking, ThreadPoolExecutor(1) as only:
        asyncio.get_running_loop().set_default_executor(only)
        only.submit(busy.wait, 3)
        asker = asking.asker(fallbacks=(), requests=Requests(total_seconds=0.4))
        error = await asking.fail(asker)
        busy.set()

    assert (error.code, asking.asked) == ("timeout", "")


@pytest.mark.long
async def test_waits_grow_and_a_server_may_set_them() -> None:
    """TL-17: Retry-After wins over our own waits."""
    with serving(Fault(503)) as asking:
        await asking.ask(asking.asker())
    with serving(Fault(429, headers={"Retry-After": "7"}), Reply("hi")) as told:
        await told.ask(told.asker())

    assert asking.waits == [0.5, 1.0, 0]
    assert (told.waits, told.asked) == ([7], "mm")


# --- What is on record of an answer that took more than one request, and what was learned.


@pytest.mark.long
async def test_what_it_took_is_on_record() -> None:
    """TL-17, MO-07: requested, used, attempts; on the answer, on its message, in events."""
    with serving(Fault(503), Fault(404)) as asking:
        given = await asking.ask(asking.asker())

    assert given.failover is not None
    told = given.failover.to_dict()
    assert given.message.response_metadata["failover"] == told
    assert (told["requested"], told["used"]) == ("openai:m", "openai:n")
    assert [(each["status"], each["then"]) for each in told["attempts"]] == [
        (503, "again"),
        (404, "next model"),
    ]
    assert (given.usage.role, given.usage.model) == ("fallback", "openai:n")
    failed = [each.to_dict() for each in asking.events if each.type == "model_attempt_failed"]
    assert [(each["attempt"], each["then"], each["wait"]) for each in failed] == [
        (1, "again", 0.5),
        (2, "next model", 0.0),
    ]
    assert asking.events[-1].to_dict()["model"] == "openai:n"


async def test_a_call_that_came_to_nothing_says_what_each_model_said() -> None:
    """And the record tells that none was used."""
    with serving(Fault(503, said(message="overloaded"))) as asking:
        error = await asking.fail(asking.asker(fallbacks=["scripted:/no/such"]))

    assert "openai:m: " in str(error)
    assert "overloaded" in str(error)
    assert "scripted:/no/such: cannot read the script" in str(error)
    assert error.failover is not None
    assert (error.failover.used, len(error.failover.attempts), error.final) == ("", 4, False)


@pytest.mark.long
async def test_no_key_is_told() -> None:
    """Neither that of the environment nor one that a model was given."""
    body = said(message=f"wrong key {KEY}, wrong key own-secret")
    with serving(Fault(404, body), Fault(401, body)) as asking:
        model = passed_in(asking.server.url)
        model = model.model_copy(update={"openai_api_key": SecretStr("own-secret")})
        given = await asking.ask(asking.asker(model))
        error = await asking.fail(asking.asker(model))

    told = f"{given.failover} {error} {error.failover} {asking.events}"
    assert "wrong key [key], wrong key [key]" in told
    assert KEY not in told
    assert "own-secret" not in told


async def test_no_part_of_a_key_is_told_where_a_message_is_cut_short() -> None:
    """It is masked before, not after."""
    with serving(Fault(401, said(message=f"{'x' * 450} {KEY * 9}"))) as asking:
        error = await asking.fail(asking.asker())

    assert KEY[:6] not in str(error)


async def test_what_was_not_asked_has_no_number() -> None:
    """Also where others were asked before it."""
    with serving(Fault(404)) as asking:
        await asking.ask(asking.asker(fallbacks=["scripted:/no/such", "openai:n"]))

    assert [each.to_dict().get("attempt") for each in asking.events] == [None, 1, 0, None]


async def test_side_work_has_a_model_and_no_chain() -> None:
    """CX-02: behind the auxiliary model stands who asked it, not a fallback."""
    with serving(Fault(404)) as asking:
        asker = asking.asker("openai:x", auxiliary="openai:m")
        await asking.fail(asker, role="auxiliary")

    assert asking.asked == "m"


async def test_side_work_is_waited_for_a_minute() -> None:
    """A provider that asks for longer waits than that is left to the model that is asked next."""
    busy = Fault(429, headers={"Retry-After": "50"})
    with serving(busy) as asking:
        asker = asking.asker("openai:x", auxiliary="openai:m")
        await asking.fail(asker, role="auxiliary")

    assert (asking.asked, asking.waits) == ("mm", [50.0])


SAMPLING = Sampling(temperature=0.2, max_tokens=600)


@pytest.mark.parametrize(
    ("named", "left"),
    [("temperature", {"max_completion_tokens"}), ("max_completion_tokens", {"temperature"})],
)
async def test_an_option_that_is_refused_is_left_out(named: str, left: set[str]) -> None:
    """At once, and counted: models that reason take no temperature."""
    with serving(Fault(400, said(message=f"unknown: '{named}'")), Reply("hi")) as asking:
        given = await asking.ask(asking.asker(), sampling=SAMPLING)

    options = {"temperature", "max_completion_tokens", "max_tokens"}
    sent = [options & set(request) for request in asking.server.requests]
    assert sent == [{"temperature", "max_completion_tokens"}, left]
    assert asking.waits == [0]
    assert given.failover is not None
    assert given.failover.attempts[0].then == "again"


async def test_an_outage_that_names_an_option_is_no_refusal_of_it() -> None:
    """The same request is made again."""
    with serving(Fault(503, said(message="temperature too high in the machine room"))) as asking:
        await asking.ask(asking.asker(), sampling=SAMPLING)

    assert all("temperature" in request for request in asking.server.requests)


async def test_a_sampled_answer_is_not_streamed() -> None:
    """It is for the machine, also where the model would stream each one."""
    with serving(Reply("hi")) as asking:
        await asking.ask(asking.asker(streaming(asking.server.url)), sampling=SAMPLING)

    assert not asking.server.requests[0].get("stream")


async def test_an_option_is_left_out_once() -> None:
    """A refusal that stays is one."""
    with serving(Fault(400, said(message="temperature!"))) as asking:
        await asking.fail(asking.asker(), sampling=Sampling(temperature=0))

    assert asking.asked == "mm"


async def test_what_an_unusable_answer_was_charged_is_on_record() -> None:
    """BU-04: an answer that broke off came with its usage; the one that was used has its own."""
    broken = answer(finish_reason=None)
    assert isinstance(broken.body, dict)
    usage = {"prompt_tokens": 11, "completion_tokens": 4, "total_tokens": 15}
    with serving(
        Fault(200, broken.body | {"usage": usage}), Reply("whole", usage=(5, 2))
    ) as asking:
        given = await asking.ask(asking.asker())

    assert given.failover is not None
    (attempt,) = given.failover.attempts
    assert attempt.usage is not None
    assert (attempt.usage.input_tokens, attempt.usage.output_tokens) == (11, 4)
    assert attempt.usage.usd is None
    assert (given.usage.input_tokens, given.usage.output_tokens) == (5, 2)
