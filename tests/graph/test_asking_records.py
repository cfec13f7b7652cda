"""What is on record of an answer that took more than one request, and what was learned."""

import pytest
from pydantic import SecretStr
from tests.failing_models import KEY, answer, passed_in, said, serving, streaming
from tests.openai_answers import Reply
from tests.openai_server import Fault

from daruma.graph.models.faults import OPEN_SECONDS
from daruma.state.events import ModelAttemptFailed
from daruma.tools.context import EXACT, Sampling


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


async def test_an_answer_at_once_has_no_record() -> None:
    """Nothing happened that were worth it."""
    with serving(Reply("hi")) as asking:
        given = await asking.ask(asking.asker())

    assert given.failover is None
    assert "failover" not in given.message.response_metadata


async def test_a_call_that_came_to_nothing_says_what_each_model_said() -> None:
    """And the record tells that none was used."""
    with serving(Fault(503, said(message="overloaded"))) as asking:
        error = await asking.fail(asking.asker(fallbacks=["scripted:/no/such"]))

    assert "openai:m: " in str(error)
    assert "overloaded" in str(error)
    assert "scripted:/no/such: cannot read the script" in str(error)
    assert error.failover is not None
    assert (error.failover.used, len(error.failover.attempts), error.final) == ("", 4, False)


@pytest.mark.parametrize(("status", "final"), [(401, True), (403, True), (400, False)])
async def test_a_key_that_is_refused_is_final(status: int, final: bool) -> None:
    """RE-03: no recovery can overcome it; another request might have been answered."""
    with serving(Fault(status)) as asking:
        error = await asking.fail(asking.asker(fallbacks=()))

    assert error.final is final


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


async def test_another_model_answers_where_the_first_can_not_be_made() -> None:
    """Settings that lack something do not end a run while there is a fallback."""
    with serving(Reply("hi")) as asking:
        given = await asking.ask(asking.asker("scripted:/no/such"))

    assert (given.message.text, given.usage.role, asking.asked) == ("from n", "fallback", "n")
    assert [each.to_dict().get("attempt") for each in asking.events] == [None, 0, None]


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


async def test_a_model_that_keeps_failing_is_passed_over() -> None:
    """Its circuit is open for a while; then one request is a trial."""
    with serving(*[Fault(503)] * 4, Reply("back")) as asking:
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
    numbers = [each.attempt for each in asking.events if isinstance(each, ModelAttemptFailed)]
    assert numbers == [1, 2, 3, 0, 1]


async def test_a_model_that_keeps_failing_is_asked_once_if_there_is_no_other() -> None:
    """Never not at all, never three times."""
    with serving(Fault(503)) as asking:
        asker = asking.asker(fallbacks=())
        for _ in range(3):
            await asking.fail(asker)

    assert asking.asked == "mmm" + "m" + "m"


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


async def test_an_option_that_is_not_given_is_not_sent() -> None:
    """Not even as null."""
    with serving(Reply("hi")) as asking:
        await asking.ask(asking.asker(), sampling=EXACT)

    assert asking.server.requests[0]["temperature"] == 0
    assert not {"max_tokens", "max_completion_tokens"} & set(asking.server.requests[0])


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
