"""What is sent is legal for every provider, whatever the history holds."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from tests.scripted_runs import illegal

from daruma.state.messages import Growing
from daruma.tools.model_requests import request, sendable


def called(name: str, call_id: str = "c") -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": {}, "id": call_id}])


def test_system_messages_are_one_at_the_head() -> None:
    """TL-20: in their order."""
    sent = sendable([SystemMessage("a"), HumanMessage("hi"), SystemMessage("b")])

    assert sent == [SystemMessage("a\n\nb"), HumanMessage("hi")]


def test_an_impossible_name_is_mended_in_what_is_sent_only() -> None:
    """TL-11: the history keeps what the model said."""
    said = called("memory.search")
    sent = sendable([HumanMessage("hi"), said, ToolMessage("x", tool_call_id="c")])

    assert isinstance(sent[1], AIMessage)
    assert sent[1].tool_calls[0]["name"] == "memory_search"
    assert said.tool_calls[0]["name"] == "memory.search"


def test_a_call_without_a_result_gets_one() -> None:
    """A dangling call bricks a thread: every later request would be refused."""
    sent = sendable([called("look"), HumanMessage("And now?")])

    assert [message.type for message in sent] == ["ai", "tool", "human"]
    assert sent[1].text == "No result is known."


def test_a_result_of_no_call_is_left_out() -> None:
    """Providers refuse it too."""
    assert sendable([ToolMessage("x", tool_call_id="c"), HumanMessage("hi")]) == [
        HumanMessage("hi")
    ]


IDS = st.sampled_from(["a", "b"])
MESSAGES: st.SearchStrategy[BaseMessage] = st.one_of(
    st.just(HumanMessage("hi")),
    st.just(SystemMessage("be brief")),
    st.just(AIMessage("done")),
    st.builds(called, st.sampled_from(["look", "a.b", "", "x" * 80]), IDS),
    st.builds(lambda call_id: ToolMessage("x", tool_call_id=call_id), IDS),
)


@given(st.lists(MESSAGES, max_size=8))
def test_any_history_becomes_a_legal_request(history: list[BaseMessage]) -> None:
    """TL-03: each call has exactly one result behind it, each result its call before it."""
    assert illegal(sendable([HumanMessage("Do it"), *history])) == []


def test_what_a_provider_sent_does_not_go_back_beside_the_calls() -> None:
    """It stands in the message too, unmended; some clients would send it instead."""
    call = {"name": "shout", "args": {}, "id": "c1"}
    sent = {"tool_calls": [{"id": "c1", "function": {"name": "shout", "arguments": "{"}}]}
    message = AIMessage("", tool_calls=[call], additional_kwargs=sent | {"refusal": None})

    (asked, _) = sendable([message])

    assert asked.additional_kwargs == {"refusal": None}


def test_a_message_with_nothing_to_mend_goes_as_it_is() -> None:
    """A long history is not copied for each request."""
    message = AIMessage("", tool_calls=[{"name": "shout", "args": {}, "id": "c1"}])

    assert sendable([message])[0] is message


@pytest.mark.long
@given(
    st.lists(MESSAGES, max_size=3),
    st.lists(st.lists(MESSAGES, max_size=3), max_size=5),
    st.lists(MESSAGES, max_size=2),
)
@example([], [[called("a.b"), ToolMessage("x", tool_call_id="c")]], [])
@example([], [[called("a", "a"), called("b", "b"), ToolMessage("x", tool_call_id="b")]], [])
@example([], [[called("a")], [ToolMessage("x", tool_call_id="c")], [SystemMessage("b")]], [])
def test_a_request_is_what_all_of_its_messages_come_to(
    head: list[BaseMessage], parts: list[list[BaseMessage]], tail: list[BaseMessage]
) -> None:
    """What was settled of a history when less of it was there is not looked at again."""
    history: Growing[BaseMessage] = Growing()
    for part in parts:
        history = history.with_more(part)
        request(head, history, tail)
    plain = [*head, *history, *tail]

    assert request(head, history, tail) == sendable(plain)
    assert request(head, list(history), tail) == sendable(plain)


def test_a_settled_history_goes_as_it_is() -> None:
    """Only what comes behind its last settled place is mended."""
    settled = [HumanMessage("hi"), called("look"), ToolMessage("x", tool_call_id="c")]
    history = Growing([*settled, called("a.b", "d"), HumanMessage("And now?")])
    sent = request([SystemMessage("be brief")], history)

    assert all(one is other for one, other in zip(sent[1:4], settled, strict=True))
    assert [message.type for message in sent[4:]] == ["ai", "tool", "human"]
    assert sendable(sent) is sent


@given(st.lists(MESSAGES, max_size=3), st.lists(MESSAGES, max_size=5), st.sampled_from([0, 1, 2]))
def test_pictures_are_known_of_whatever_stands_before_them(
    head: list[BaseMessage], history: list[BaseMessage], at: int
) -> None:
    """LangChain may have to translate them, of what was settled long ago too."""
    grown: Growing[BaseMessage] = Growing()
    for message in [*history[:at], PICTURE, *history[at:]]:
        grown = grown.with_more([message])
        sent = request(head, grown)
        pictures = sum(each is PICTURE for each in sent)

        assert bool(sent.to_translate) == bool(pictures)
        assert bool(sendable(list(sent)).to_translate) == bool(pictures)


@pytest.mark.parametrize(
    ("content", "to_translate"),
    [
        (None, 0),
        ([None], 0),
        ([{"type": ["text"]}], 1),
        ([{"type": {"text": 1}}], 1),
        ([{"type": None}], 1),
        ([{}], 1),
    ],
)
def test_content_of_no_known_form_is_no_failure_of_ours(content: Any, to_translate: int) -> None:
    """What a model makes of it is its own affair, and tried again or overcome as such."""
    odd = HumanMessage.model_construct(content=content)

    assert sendable([odd]).to_translate == to_translate


PICTURE = HumanMessage([{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}])
