"""A model's calls, in whichever way it made them, under ids of their own and within the limit."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from daruma.tools.calls.answers import limited
from daruma.tools.calls.parse import as_calls, calls_of, with_own_ids

WRITTEN = '{"name": "shout", "arguments": {"text": "hi"}}'


def native(*names: str) -> AIMessage:
    calls = [{"name": name, "args": {"n": n}, "id": f"c{n}"} for n, name in enumerate(names)]
    return AIMessage("", id="m", tool_calls=calls)


def of_ids(*ids: str | None, broken: str | None = None) -> AIMessage:
    calls: list[Any] = [{"name": "shout", "args": {}, "id": id_} for id_ in ids]
    invalid = [{"name": "shout", "args": "{", "id": broken, "error": None}] if broken else []
    return AIMessage("", id="m", tool_calls=calls, invalid_tool_calls=invalid)


@pytest.mark.parametrize(
    "text",
    [
        WRITTEN,
        f"```json\n{WRITTEN}\n```",
        f"[{WRITTEN}]",
        f"<tool_call>\n{WRITTEN}\n</tool_call>",
    ],
)
def test_a_call_written_as_text_is_a_call(text: str) -> None:
    """TL-18: what a model wrote ends as the same call; its words stay in the history."""
    message = with_own_ids(as_calls(AIMessage(text), ["shout"]), "m")

    (call,) = calls_of(message)
    assert (call.name, call.args) == ("shout", {"text": "hi"})
    assert message.text == text


def test_an_answer_stays_an_answer() -> None:
    """TL-18: also one that is JSON, and any where no tools were offered."""
    for text, visible in (("Done.", ["shout"]), ('{"sum": 3}', ["shout"]), (WRITTEN, [])):
        assert calls_of(as_calls(AIMessage(text), visible)) == ()


def test_a_native_call_is_not_read_twice() -> None:
    """TL-18: text beside a native call is text."""
    message = native("shout").model_copy(update={"content": WRITTEN})

    assert len(calls_of(as_calls(message, ["shout"]))) == 1


def test_calls_keep_the_order_of_the_model() -> None:
    """TL-16: LangChain keeps readable and unreadable ones apart; the first N are the first N."""
    functions = [("a", "{}"), ("b", "{oops"), ("a", '{"n": 1}'), ("b", "{no")]
    sent = [
        {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": args}}
        for n, (name, args) in enumerate(functions)
    ]
    message = AIMessage(
        "",
        additional_kwargs={"tool_calls": sent},
        tool_calls=[
            {"name": "a", "args": {}, "id": "c0"},
            {"name": "a", "args": {"n": 1}, "id": "c2"},
        ],
        invalid_tool_calls=[
            {"name": "b", "args": "{oops", "id": "c1", "error": None},
            {"name": "b", "args": "{no", "id": "c3", "error": None},
        ],
    )

    assert [call.id for call in calls_of(message)] == ["c0", "c1", "c2", "c3"]
    assert [call.id for call in calls_of(limited(message, 2)[0])] == ["c0", "c1"]


IDS = st.lists(
    st.sampled_from([None, "", "a", "call_0", "call_1", "call_2", "call_3"]), min_size=1, max_size=5
)


@given(IDS)
def test_every_call_has_an_id_of_its_own(ids: list[str | None]) -> None:
    """Servers leave ids out and repeat them: two calls must not share a result."""
    answer = with_own_ids(of_ids(*ids), "m1")

    own = [call["id"] for call in answer.tool_calls]
    assert all(own)
    assert len(set(own)) == len(own)


@pytest.mark.parametrize("odd", ["*", "--yes", "a b", "a\nb", "é", "-", "a@b", "a" * 201])
def test_an_id_that_can_not_be_pasted_is_not_kept(odd: str) -> None:
    """A person names calls by their ids on the command line, where ``*`` and ``--yes`` say more."""
    answer = with_own_ids(of_ids(odd, "fc_1|call-2.a:b/c=", broken=f"{odd}*"), "m1")

    assert [call["id"] for call in answer.tool_calls] == ["call_0", "fc_1|call-2.a:b/c="]
    assert [call["id"] for call in answer.invalid_tool_calls] == ["call_1"]


def test_a_good_id_is_kept() -> None:
    """What the provider wrote is what it gets back; the message gets an id of ours."""
    answer = with_own_ids(of_ids("x", "y", broken="b"), "t/1:answer:0")

    assert [call["id"] for call in answer.tool_calls] == ["x", "y"]
    assert [call["id"] for call in answer.invalid_tool_calls] == ["b"]
    assert answer.id == "t/1:answer:0"


@pytest.mark.parametrize("value", [2**70, "\ud800"])
def test_a_call_that_can_not_be_stored_is_kept_as_text(value: Any) -> None:
    """TL-03: no checkpoint takes it as it is, and it has to be answered all the same."""
    bad = {"name": "shout", "args": {"text": value}, "id": "bad"}
    good = {"name": "shout", "args": {"text": "x"}, "id": "good"}

    answer = with_own_ids(AIMessage("", tool_calls=[bad, good]), "m1")

    assert [call["id"] for call in answer.tool_calls] == ["good"]
    assert [call["id"] for call in answer.invalid_tool_calls] == ["bad"]
    assert '"text": ' in str(answer.invalid_tool_calls[0]["args"])


def test_the_given_message_is_not_changed() -> None:
    """Messages may be shared, with a cache for one."""
    given_message = of_ids(None)
    with_own_ids(given_message, "other")

    assert given_message.id == "m"
    assert given_message.tool_calls[0]["id"] is None
