"""An answer that is no end of the work has a name."""

import pytest
from langchain_core.messages import AIMessage

from daruma.state.failure import UNUSABLE
from daruma.tools.calls.answers import unusable


def answer(text: str = "", reason: str = "stop", refusal: str | None = None) -> AIMessage:
    more = {"refusal": refusal} if refusal else {}
    return AIMessage(text, additional_kwargs=more, response_metadata={"finish_reason": reason})


@pytest.mark.parametrize(
    ("message", "name"),
    [
        (answer("", refusal="I can not help with that."), "refusal"),
        (answer("So far", "length"), "answer_cut_off"),
        (answer("", "length"), "answer_cut_off"),
        (answer("So far", "content_filter"), "answer_cut_off"),
        (answer(""), "empty_answer"),
        (answer(" \n\u200b"), "empty_answer"),
    ],
)
def test_it_is_named(message: AIMessage, name: str) -> None:
    """Blank answers, refusals and cut-offs are failures, not ends."""
    found = unusable(message, "main")

    assert found is not None
    assert (found.code, found.node, found.original_error) == ("llm_failure", "main", name)
    assert name in UNUSABLE


def test_an_answer_is_an_answer() -> None:
    """Also a short one."""
    assert unusable(answer("No."), "main") is None
