"""One answer, through the real client: how often which model is asked, and what is on record."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from tests.openai_answers import Reply
from tests.openai_server import Fault, OpenAIServer, openai_server

from daruma.graph.asking import Asker
from daruma.graph.models.by_role import Models
from daruma.graph.models.circuit import OPEN_SECONDS, Circuits
from daruma.state.events import Event
from daruma.state.failure import ModelFailed
from daruma.state.settings_llm import Requests
from daruma.tools.context import Answer, Sampling

KEY = "sk-this-is-secret"
SHORT = Requests(seconds=0.4)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@dataclass
class Asking:
    """Calls to models whose waits take no time, but move the clock; and all that they told."""

    server: OpenAIServer
    events: list[Event] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    now: float = 0.0

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def asker(
        self,
        main: Any = "openai:m",
        fallbacks: Sequence[str] = ("openai:n",),
        requests: Requests | None = None,
        auxiliary: str | None = None,
    ) -> Asker:
        given, circuits = requests or Requests(), Circuits(self.clock)
        models = Models(main, auxiliary, {}, fallbacks, given, circuits)
        return Asker(models, sleep=self.sleep, luck=lambda: 1.0, clock=self.clock)

    def clock(self) -> float:
        return self.now

    async def ask(self, asker: Asker, **options: Any) -> Answer:
        return await asker("main", [HumanMessage("hi")], call=0, emit=self.events.append, **options)

    async def fail(self, asker: Asker, **options: Any) -> ModelFailed:
        with pytest.raises(ModelFailed) as raised:
            await self.ask(asker, **options)
        return raised.value

    @property
    def asked(self) -> str:
        """The models that were asked, one letter each."""
        return "".join(request["model"] for request in self.server.requests)


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A server at which model `m` answers with the faults, the last for ever, the others rightly"""

    class Serving:
        def __init__(self, *faults: Fault | Reply) -> None:
            self.faults, self.count = faults, 0

        def __enter__(self) -> Asking:
            self.context = openai_server(self.reply)
            server = self.context.__enter__()
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            return Asking(server)

        def __exit__(self, *error: Any) -> None:
            self.context.__exit__(*error)

        def reply(self, request: dict[str, Any]) -> Fault | Reply:
            if request["model"] != "m":
                return Reply(f"from {request['model']}", usage=(7, 3))
            self.count += 1
            return self.faults[min(self.count, len(self.faults)) - 1]

    return Serving


def said(**error: str) -> dict[str, Any]:
    return {"error": {"message": "no"} | error}


def answer(**choice: Any) -> Fault:
    """An answer that is none."""
    message = {"role": "assistant", "content": "half an"}
    choices = [{"index": 0, "message": message, **choice}] if choice else []
    head = {"id": "1", "object": "chat.completion", "created": 0, "model": "m"}
    return Fault(200, {**head, "choices": choices})


AGAIN = "mmmn"
NEXT = "mn"
FINAL = "m"

FATES = [
    (Fault(404), NEXT),
    (Fault(400, said(message="tools are not supported")), NEXT),
    (Fault(422, said(param="functions")), NEXT),
    (Fault(403, said(code="model_not_found")), NEXT),
    (Fault(429, said(code="insufficient_quota")), NEXT),
    (Fault(429, headers={"Retry-After": "121"}), NEXT),
    (Fault(400, said(message="the context is too long")), FINAL),
    (Fault(413), FINAL),
    (Fault(422), FINAL),
    (Fault(401), FINAL),
    (Fault(403), FINAL),
    *((Fault(status), AGAIN) for status in (408, 409, 425, 429, 500, 502, 503, 504)),
    (Fault(cut="before_first_token"), AGAIN),
    (Fault(cut="later"), AGAIN),
    (Fault(malformed=True), AGAIN),
    (answer(), AGAIN),
    (answer(finish_reason=None), AGAIN),
    (Fault(200, {"error": {"message": "overloaded"}}), AGAIN),
    (Fault(200, {"choices": None}), AGAIN),
]


def passed_in(url: str) -> ChatOpenAI:
    return ChatOpenAI(
        model="m", base_url=url, api_key=SecretStr(KEY), max_retries=5, stream_usage=True
    )


def streaming(url: str) -> ChatOpenAI:
    return passed_in(url).model_copy(update={"streaming": True})


async def check(asking: Asking, asker: Asker, asked: str) -> None:
    if asked == FINAL:
        await asking.fail(asker)
    else:
        given = await asking.ask(asker)
        assert (given.message.text, given.usage.role) == ("from n", "fallback")
    assert asking.asked == asked


@pytest.mark.parametrize(("fault", "asked"), FATES, ids=lambda part: repr(part)[:70])
async def test_a_fault_has_its_fate(serve: Any, fault: Fault, asked: str) -> None:
    """TL-17: as many requests as the table says."""
    with serve(fault) as asking:
        await check(asking, asking.asker(), asked)


@pytest.mark.parametrize("model", [passed_in, streaming])
@pytest.mark.parametrize(
    ("fault", "asked"),
    [
        (Fault(404), NEXT),
        (Fault(401), FINAL),
        (Fault(503), AGAIN),
        (Fault(429, headers={"Retry-After": "121"}), NEXT),
        (Fault(cut="later"), AGAIN),
        (Fault(malformed=True), AGAIN),
        (answer(), AGAIN),
        (answer(finish_reason=None), AGAIN),
    ],
    ids=lambda part: repr(part)[:70],
)
async def test_a_model_that_is_passed_in_is_asked_no_oftener(
    serve: Any, fault: Fault, asked: str, model: Callable[[str], Any]
) -> None:
    """TL-17: its own retries do not multiply with ours, streamed or not."""
    with serve(fault) as asking:
        await check(asking, asking.asker(model(asking.server.url)), asked)


@pytest.mark.parametrize("model", [lambda _: "openai:m", streaming], ids=["plain", "streaming"])
@pytest.mark.parametrize(
    "never", [lambda: Fault(keep_alive=True), lambda: Fault(hang=threading.Event())]
)
async def test_a_request_that_never_ends_is_ended(
    serve: Any, never: Callable[[], Fault], model: Callable[[str], Any]
) -> None:
    """EM-02: by our own limit, whatever drips in; the failure is a timeout."""
    with serve(never()) as asking:
        asker = asking.asker(model(asking.server.url), fallbacks=(), requests=SHORT)
        error = await asking.fail(asker)

    assert (error.code, asking.asked, error.final) == ("timeout", "mmm", False)


@pytest.mark.parametrize("cut", ["before_first_token", "later", "unfinished"])
async def test_of_a_stream_that_breaks_nothing_is_left(serve: Any, cut: Any) -> None:
    """TL-17: neither words nor tokens."""
    with serve(Fault(cut=cut), Reply("whole", usage=(5, 2))) as asking:
        given = await asking.ask(asking.asker(streaming(asking.server.url)))

    assert (given.message.text, asking.asked) == ("whole", "mm")
    assert (given.usage.input_tokens, given.usage.output_tokens) == (5, 2)
    assert given.usage.role == "main"


async def test_all_requests_together_end_in_time(serve: Any) -> None:
    """However long one of them may take."""
    with serve(Fault(hang=threading.Event())) as asking:
        error = await asking.fail(Asker(Models("openai:m", requests=Requests(total_seconds=0.6))))

    assert str(error).startswith("no answer within 0.")
    assert asking.asked == "m"


async def test_waits_grow_and_a_server_may_set_them(serve: Any) -> None:
    """TL-17: Retry-After wins over our own waits."""
    with serve(Fault(503)) as asking:
        await asking.ask(asking.asker())
    with serve(Fault(429, headers={"Retry-After": "7"}), Reply("hi")) as told:
        await told.ask(told.asker())

    assert asking.waits == [0.5, 1.0, 0]
    assert (told.waits, told.asked) == ([7], "mm")


async def test_no_wait_goes_beyond_the_end(serve: Any) -> None:
    """What can not be answered in time is not asked."""
    with serve(Fault(503)) as asking:
        await asking.fail(asking.asker(fallbacks=(), requests=Requests(total_seconds=1)))

    assert asking.asked == "mm"


async def test_six_requests_are_made_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """TL-17: however many models there are."""
    with openai_server(lambda _: Fault(503)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        asking = Asking(server)
        error = await asking.fail(asking.asker(fallbacks=["openai:n", "openai:o", "openai:p"]))

    assert asking.asked == "mmmnnn"
    assert error.failover is not None
    assert len(error.failover.attempts) == 6


async def test_what_it_took_is_on_record(serve: Any) -> None:
    """TL-17, MO-07: requested, used, attempts; on the answer, on its message, in events."""
    with serve(Fault(503), Fault(404)) as asking:
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


async def test_an_answer_at_once_has_no_record(serve: Any) -> None:
    """Nothing happened that were worth it."""
    with serve(Reply("hi")) as asking:
        given = await asking.ask(asking.asker())

    assert given.failover is None
    assert "failover" not in given.message.response_metadata


async def test_a_call_that_came_to_nothing_says_what_each_model_said(serve: Any) -> None:
    """And the record tells that none was used."""
    with serve(Fault(503, said(message="overloaded"))) as asking:
        error = await asking.fail(asking.asker(fallbacks=["scripted:/no/such"]))

    assert "openai:m: " in str(error)
    assert "overloaded" in str(error)
    assert "scripted:/no/such: cannot read the script" in str(error)
    assert error.failover is not None
    assert (error.failover.used, len(error.failover.attempts), error.final) == ("", 4, False)


@pytest.mark.parametrize(("status", "final"), [(401, True), (403, True), (400, False)])
async def test_a_key_that_is_refused_is_final(serve: Any, status: int, final: bool) -> None:
    """RE-03: no recovery can overcome it; another request might have been answered."""
    with serve(Fault(status)) as asking:
        error = await asking.fail(asking.asker(fallbacks=()))

    assert error.final is final


async def test_no_key_is_told(serve: Any) -> None:
    """Neither that of the environment nor one that a model was given."""
    body = said(message=f"wrong key {KEY}, wrong key own-secret")
    with serve(Fault(404, body), Fault(401, body)) as asking:
        model = passed_in(asking.server.url)
        model = model.model_copy(update={"openai_api_key": SecretStr("own-secret")})
        given = await asking.ask(asking.asker(model))
        error = await asking.fail(asking.asker(model))

    told = f"{given.failover} {error} {error.failover} {asking.events}"
    assert "wrong key [key], wrong key [key]" in told
    assert KEY not in told
    assert "own-secret" not in told


async def test_another_model_answers_where_the_first_can_not_be_made(serve: Any) -> None:
    """Settings that lack something do not end a run while there is a fallback."""
    with serve(Reply("hi")) as asking:
        given = await asking.ask(asking.asker("scripted:/no/such"))

    assert (given.message.text, given.usage.role, asking.asked) == ("from n", "fallback", "n")
    assert [each.to_dict().get("attempt") for each in asking.events] == [None, 0, None]


async def test_side_work_has_a_chain_of_its_own(serve: Any) -> None:
    """The auxiliary model, then the fallbacks; never the main one."""
    with serve(Fault(404)) as asking:
        asker = asking.asker("openai:x", auxiliary="openai:m")
        given = await asking.ask(asker, role="auxiliary")

    assert (asking.asked, given.usage.role) == ("mn", "fallback")


async def test_a_model_that_keeps_failing_is_passed_over(serve: Any) -> None:
    """Its circuit is open for a while; then one request is a trial."""
    with serve(*[Fault(503)] * 4, Reply("back")) as asking:
        asker = asking.asker()
        told = [await asking.ask(asker), await asking.ask(asker)]
        asking.now += OPEN_SECONDS
        told.append(await asking.ask(asker))
        asking.now += OPEN_SECONDS
        told.extend([await asking.ask(asker), await asking.ask(asker)])

    assert [each.message.text for each in told] == ["from n"] * 3 + ["back"] * 2
    assert asking.asked == "mmmn" + "n" + "mn" + "m" + "m"
    assert told[1].failover is not None
    assert told[1].failover.attempts[0].error.startswith("not asked")


async def test_a_model_that_keeps_failing_is_asked_once_if_there_is_no_other(serve: Any) -> None:
    """Never not at all, never three times."""
    with serve(Fault(503)) as asking:
        asker = asking.asker(fallbacks=())
        for _ in range(3):
            await asking.fail(asker)

    assert asking.asked == "mmm" + "m" + "m"


SAMPLING = Sampling(temperature=0.2, max_tokens=600)


@pytest.mark.parametrize(
    ("named", "left"),
    [("temperature", {"max_completion_tokens"}), ("max_completion_tokens", {"temperature"})],
)
async def test_an_option_that_is_refused_is_left_out(
    serve: Any, named: str, left: set[str]
) -> None:
    """At once, and counted: models that reason take no temperature."""
    with serve(Fault(400, said(message=f"unknown: '{named}'")), Reply("hi")) as asking:
        given = await asking.ask(asking.asker(), sampling=SAMPLING)

    options = {"temperature", "max_completion_tokens", "max_tokens"}
    sent = [options & set(request) for request in asking.server.requests]
    assert sent == [{"temperature", "max_completion_tokens"}, left]
    assert asking.waits == [0]
    assert given.failover is not None
    assert given.failover.attempts[0].then == "again"


async def test_an_option_is_left_out_once(serve: Any) -> None:
    """A refusal that stays is one."""
    with serve(Fault(400, said(message="temperature!"))) as asking:
        await asking.fail(asking.asker(), sampling=Sampling(temperature=0))

    assert asking.asked == "mm"
