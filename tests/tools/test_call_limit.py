"""Of too many calls in one answer the first ones run, and the rest is on record."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage

from daruma.tools.calls.answers import limited


def native(*names: str) -> AIMessage:
    calls = [{"name": name, "args": {"n": n}, "id": f"c{n}"} for n, name in enumerate(names)]
    return AIMessage("", id="m", tool_calls=calls)


def test_only_the_first_calls_are_kept() -> None:
    """TL-16: in order, in the history too; the rest is on record."""
    message, left_out = limited(native(*"abcde"), 3)

    assert [call["name"] for call in message.tool_calls] == ["a", "b", "c"]
    assert left_out is not None
    assert (left_out.total, left_out.executed, left_out.omitted, left_out.limit) == (5, 3, 2, 3)
    assert left_out.names == ("d", "e")


@pytest.mark.parametrize("limit", [None, 5, 6])
def test_within_the_limit_nothing_is_left_out(limit: int | None) -> None:
    """TL-16: null is no limit."""
    assert limited(native(*"abcde"), limit) == (native(*"abcde"), None)


def test_the_sample_of_omitted_names_is_bounded() -> None:
    """TL-16: ten names, each at most 200 bytes, never half a character."""
    _, left_out = limited(native(*(["a"] + ["ü" * 150] * 30)), 1)

    assert left_out is not None
    assert len(left_out.names) == 10
    assert left_out.names[0] == "ü" * 100


def test_blocks_of_omitted_calls_leave_the_content_too() -> None:
    """TL-16: some providers repeat their calls there, and would be sent an unanswered one."""
    content: list[Any] = [{"type": "tool_use", "id": f"c{n}"} for n in range(2)]
    message = native("a", "b").model_copy(
        update={"content": [{"type": "text", "text": "x"}, *content]}
    )

    kept, _ = limited(message, 1)

    assert kept.content == [{"type": "text", "text": "x"}, {"type": "tool_use", "id": "c0"}]


def test_what_the_provider_sent_of_omitted_calls_leaves_too() -> None:
    """TL-16: LangChain keeps it beside the calls; what else it keeps there stays."""
    sent = {"tool_calls": [{"id": "c0"}, {"id": "c1"}], "refusal": None}
    message = native("a", "b").model_copy(update={"additional_kwargs": sent})

    kept, _ = limited(message, 1)

    assert kept.additional_kwargs == {"refusal": None}
