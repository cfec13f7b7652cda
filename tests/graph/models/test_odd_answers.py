"""Answers with status 200 that are odd, or none: through the real client, whole and streamed."""

import json
from typing import Any, Final

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from tests.failing_models import Asking, passed_in, serving, streaming
from tests.openai_answers import Reply, chunks, completion
from tests.openai_server import Fault
from tests.spec.face import RecordingModel

from daruma import build_graph
from daruma.state.messages import reasoning_of
from daruma.state.text import unstorable_part
from daruma.state.usage import sound_usage
from daruma.tools.calls import storable_answer, unusable_answer, with_reasoning_apart

pytestmark = pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
WAYS = pytest.mark.parametrize("way", [passed_in, streaming])
JSON = {"Content-Type": "application/json"}
DIGITS = "9" * 5000
DEEP = "[" * 60_000 + "]" * 60_000
HUGE = 2**70


def odd(raw: str, **changes: Any) -> Fault:
    """Return an answer in which something is written as `raw`, whatever JSON can be made of it."""
    request = {"model": "m", "messages": []}
    whole = {**completion(Reply("Done.", usage=(7, 3)), request), **changes}
    stream = [dict(each) for each in chunks(Reply("Done.", usage="untold"), request)]
    stream.append({**stream[-1], "choices": [], **changes})

    def written(value: Any) -> str:
        return json.dumps(value).replace('"RAW"', raw)

    return Fault(200, written(whole), JSON, events=[written(each) for each in stream])


@pytest.mark.sampled(5)
@WAYS
@pytest.mark.parametrize(
    ("usage", "read", "written", "estimated"),
    [
        ('{"prompt_tokens": 7, "completion_tokens": 3}', 7, 3, False),
        ('{"prompt_tokens": 7.0, "completion_tokens": "3"}', 7, 3, False),
        ('{"prompt_tokens": 7, "total_tokens": 10}', 7, 3, False),
        ('{"completion_tokens": 3, "total_tokens": 10}', 7, 3, False),
        ('{"prompt_tokens": 7, "completion_tokens": 1.5}', 7, None, True),
        ('{"prompt_tokens": 7, "completion_tokens": -3, "total_tokens": 4}', 7, None, True),
        ('{"prompt_tokens": 7, "completion_tokens": null}', 7, None, True),
        ('{"prompt_tokens": 7, "completion_tokens": Infinity}', 7, None, True),
        (f'{{"prompt_tokens": 7, "completion_tokens": {HUGE}}}', 7, None, True),
        ('{"prompt_tokens": NaN, "completion_tokens": 3}', None, 3, True),
        ('{"prompt_tokens": "many", "completion_tokens": [3]}', None, None, True),
        ('{"prompt_tokens": 7}', 7, None, True),
        ('{"total_tokens": 10}', None, None, True),
        ('"none"', None, None, True),
    ],
)
async def test_usage_is_counts_or_estimated(
    way: Any, usage: str, read: int | None, written: int | None, estimated: bool
) -> None:
    """BU-05: what is no whole number is not told, and what is not told is estimated and marked."""
    with serving(odd(usage, usage="RAW")) as asking:
        given = await asking.ask(asking.asker(way(asking.server.url), fallbacks=()))

    assert given.usage.estimated is estimated
    assert read in (None, given.usage.input_tokens)
    assert written in (None, given.usage.output_tokens)
    assert given.usage.input_tokens > 0
    assert given.usage.output_tokens > 0


@pytest.mark.sampled(4)
@WAYS
@pytest.mark.parametrize("raw", [str(HUGE), f'{{"a": {HUGE}}}', '"\\u0000\\ud800"', "NaN"])
async def test_what_a_provider_adds_can_be_stored(way: Any, raw: str) -> None:
    """DU-05: no number, and no text, that a checkpoint does not take."""
    with serving(odd(raw, system_fingerprint="RAW")) as asking:
        given = await asking.ask(asking.asker(way(asking.server.url), fallbacks=()))

    assert unstorable_part(given.message.response_metadata) is None
    assert unstorable_part(given.message.additional_kwargs) is None


def test_an_answer_of_any_client_is_made_storable() -> None:
    """DU-05: content, what stands beside it, and usage; an answer that is well stays itself."""
    message = AIMessage(
        [{"type": "text", "text": "a\0\ud800", "n": HUGE}],
        additional_kwargs={"x": [float("inf"), HUGE]},
        response_metadata={"y": {"z": -HUGE}},
    )
    message.usage_metadata = {"input_tokens": 1.5, "output_tokens": 3, "total_tokens": HUGE}  # type: ignore[assignment]
    made = storable_answer(message)

    for each in (made.content, made.additional_kwargs, made.response_metadata):
        assert unstorable_part(each) is None
    assert made.usage_metadata == {"input_tokens": 0, "output_tokens": 3, "total_tokens": 0}
    assert storable_answer(made) is made
    assert sound_usage(None) == {}


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), HUGE])
def test_arguments_that_no_store_takes_are_refused(value: Any) -> None:
    """DU-05: they go back to the model."""
    assert unstorable_part({"amount": [value]}) is not None


def failing(body: str, kind: str = "application/json") -> Fault:
    return Fault(200, body, {"Content-Type": kind}, events=[body])


@pytest.mark.sampled(5)
@WAYS
@pytest.mark.parametrize(
    ("body", "requests", "said"),
    [
        ('{"error": {"message": "no such user", "code": 401}}', 1, "401: the key is refused: no"),
        ('{"detail": "Not authenticated"}', 1, "the key is refused: Not authenticated"),
        ('{"error": {"message": "slow", "code": 429}}', 3, "429: too many requests: slow"),
        ('{"error": {"message": "Rate limit. Try again in 1h."}}', 1, "a wait of 3600 s"),
        ('{"error": {"message": "x", "code": "insufficient_quota"}}', 1, "credit is used up: x"),
        ('{"error": "the model is overloaded"}', 3, "the server failed: the model is overloaded"),
        ('{"message": "no such thing", "code": 404}', 1, "no such model or address: no such th"),
        ('{"id": "1", "choices": []}', 3, "the answer"),
        ('{"id": "1", "choices": null}', 3, "the answer"),
        ('{"id": "1", "choices": [null]}', 3, "it is no chat completion"),
        ("null", 3, "the answer can not be read"),
        ("", 3, "the answer can not be read"),
        (DEEP, 3, "it is nested too deeply"),
        (DIGITS, 3, "it holds a number of too many digits"),
    ],
    ids=lambda each: str(each)[:40],
)
async def test_a_failure_with_status_200_is_one(
    way: Any, body: str, requests: int, said: str
) -> None:
    """TL-17a: kind, wait and words as with the status that it stands for; one line, an address."""
    with serving(failing(body)) as asking:
        error = await asking.fail(asking.asker(way(asking.server.url), fallbacks=()))

    assert said in str(error)
    assert asking.server.url.split("/")[2] in str(error)
    assert "\n" not in str(error)
    assert len(asking.server.requests) == requests


async def test_a_page_with_status_200_is_the_words_of_who_sent_it() -> None:
    """TL-17a: and the next model is asked."""
    for kind in ("text/html", "application/json"):
        with serving(failing("<html><title>Sign in</title></html>", kind)) as asking:
            given = await failed_over(asking)

        assert "the server failed: Sign in" in given


async def failed_over(asking: Asking) -> str:
    answer = await asking.ask(asking.asker())
    assert answer.failover is not None
    assert answer.message.text == "from n"
    return answer.failover.attempts[0].error


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (AIMessage(" \n"), "the model answered nothing (requests in a row: 3): "),
        (
            AIMessage([{"type": "reasoning", "text": "hm"}]),
            "the model answered nothing but its reasoning (requests in a row: 3): ",
        ),
        (
            AIMessage("", additional_kwargs={"reasoning_content": "hm"}),
            "the model answered nothing but its reasoning (requests in a row: 3): ",
        ),
    ],
)
def test_an_answer_of_nothing_is_told_with_what_to_do(message: AIMessage, said: str) -> None:
    """RE-03: that it was nothing, how often it was asked for, and what helps."""
    found = unusable_answer(message, "main", 3)

    assert found is not None
    assert found.message.startswith(said)
    assert "llm.model" in found.message


LOOK: Final = {"name": "look", "arguments": {}}


@pytest.mark.sampled(5)
@WAYS
@pytest.mark.parametrize(
    ("reply", "text", "reasoning"),
    [
        (Reply("Done.", reasoning="I see it."), "Done.", "I see it."),
        (Reply("<think>\nI see it.\n</think>\n\nDone."), "Done.", "I see it."),
        (Reply("<think>I</think><think>see</think>Done."), "Done.", "I\n\nsee"),
        (Reply("<think></think>Done."), "Done.", ""),
        (Reply("<thinking>I see it.</thinking>Done."), "Done.", "I see it."),
        (Reply("[THINK]I see it.[/THINK]Done."), "Done.", "I see it."),
        (Reply("<think>No </thinking> yet</think>Done."), "Done.", "No </thinking> yet"),
        (Reply("I see it.\n</think>\n\nDone."), "Done.", "I see it."),
        (Reply("<think>I see"), "", "I see"),
        (Reply("<think>I look.</think>", calls=[LOOK]), "", "I look."),
        (Reply("It ends with `</think>`."), "It ends with `</think>`.", ""),
        (Reply("Write <think>x</think>."), "Write <think>x</think>.", ""),
    ],
    ids=str,
)
async def test_what_a_model_thought_stands_beside_its_answer(
    way: Any, reply: Reply, text: str, reasoning: str
) -> None:
    """In a field of its own, or in tags; a template may have opened the first one."""
    with serving(reply) as asking:
        given = await asking.ask(asking.asker(way(asking.server.url), fallbacks=()))

    assert (given.message.text, reasoning_of(given.message)) == (text, reasoning)
    assert [call["name"] for call in given.message.tool_calls] == [
        each["name"] for each in reply.calls
    ]


async def test_what_a_model_thought_is_shown_and_is_no_part_of_the_result() -> None:
    """Nor is it asked for again: the next request holds the answers alone."""
    model = RecordingModel(script=[{"say": "<think>A plan.</think>One."}, {"say": "Two."}])
    graph = build_graph(model, checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "t"}}
    first = await graph.ainvoke({"messages": [("user", "A")]}, thread)
    await graph.ainvoke({"messages": [("user", "B")]}, thread)
    timeline = await graph.atimeline(thread)

    assert first["result"].output == "One."
    assert [each.reasoning for each in timeline.moments if each.kind == "model"] == ["A plan.", ""]
    assert "A plan." in timeline.page()
    assert "One." in model.requests[1].text
    assert "A plan." not in model.requests[1].text


SUMMARY: Final = [
    {"type": "summary_text", "text": "I see"},
    {"type": "summary_text", "text": "it."},
]


@pytest.mark.parametrize(
    ("block", "thought"),
    [
        ({"type": "thinking", "thinking": "I see it.", "signature": "s"}, "I see it."),
        ({"type": "thinking", "thinking": [{"type": "text", "text": "I see it."}]}, "I see it."),
        ({"type": "reasoning", "id": "r", "summary": SUMMARY}, "I see\n\nit."),
        ({"type": "reasoning_content", "reasoning_content": {"text": "I see it."}}, "I see it."),
        ({"type": "redacted_thinking", "data": "c2VjcmV0"}, ""),
        ({"type": "text", "text": "<think>I see it.</think>"}, "I see it."),
        ("", ""),
    ],
    ids=["Anthropic", "Mistral", "OpenAI", "Bedrock", "redacted", "tags", "none"],
)
def test_each_providers_blocks_of_thoughts_are_read(block: Any, thought: str) -> None:
    """The answer is what remains, and the blocks stay, for providers that want them again."""
    answer = with_reasoning_apart(AIMessage([block, {"type": "text", "text": "Done."}]))

    assert (answer.text, reasoning_of(answer)) == ("Done.", thought)
    assert len(answer.content) == 2
