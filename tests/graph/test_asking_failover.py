"""One answer, through the real client: how often which model is asked, and how long."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.failing_models import Asking, answer, passed_in, said, serving, streaming
from tests.openai_answers import Reply
from tests.openai_server import Fault

from daruma.graph.asker import Asker
from daruma.graph.models.by_role import Models
from daruma.state.settings.sections import Requests

AGAIN = "mmmn"
NEXT = "mn"
FINAL = "m"

SHORT = Requests(seconds=0.4)

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


async def check(asking: Asking, asker: Asker, asked: str) -> None:
    if asked == FINAL:
        await asking.fail(asker)
    else:
        given = await asking.ask(asker)
        assert (given.message.text, given.usage.role) == ("from n", "fallback")
    assert asking.asked == asked


@pytest.mark.parametrize(("fault", "asked"), FATES, ids=lambda part: repr(part)[:70])
async def test_a_fault_has_its_fate(fault: Fault, asked: str) -> None:
    """TL-17: as many requests as the table says."""
    with serving(fault) as asking:
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
    fault: Fault, asked: str, model: Callable[[str], Any]
) -> None:
    """TL-17: its own retries do not multiply with ours, streamed or not."""
    with serving(fault) as asking:
        await check(asking, asking.asker(model(asking.server.url)), asked)


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


async def test_waits_grow_and_a_server_may_set_them() -> None:
    """TL-17: Retry-After wins over our own waits."""
    with serving(Fault(503)) as asking:
        await asking.ask(asking.asker())
    with serving(Fault(429, headers={"Retry-After": "7"}), Reply("hi")) as told:
        await told.ask(told.asker())

    assert asking.waits == [0.5, 1.0, 0]
    assert (told.waits, told.asked) == ([7], "mm")


async def test_no_wait_goes_beyond_the_end() -> None:
    """What can not be answered in time is not asked."""
    with serving(Fault(503)) as asking:
        await asking.fail(asking.asker(fallbacks=(), requests=Requests(total_seconds=1)))

    assert asking.asked == "mm"


async def test_six_requests_are_made_in_all() -> None:
    """TL-17: however many models there are, and however each one fails."""
    with serving(Fault(503)) as asking:
        asking.server.reply = lambda _: Fault(503)
        error = await asking.fail(asking.asker(fallbacks=["openai:n", "openai:o", "openai:p"]))

    assert asking.asked == "mmmnnn"
    assert error.failover is not None
    assert len(error.failover.attempts) == 6
