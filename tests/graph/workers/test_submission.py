"""What is queued is JSON, and means the same when it is read back."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage
from langgraph.types import Command

from daruma.graph.requests import RequestRefused, request
from daruma.graph.workers._execution import SUBMISSION, Submission

MESSAGES = st.builds(
    lambda kind, text: kind(text),
    st.sampled_from([HumanMessage, AIMessage, SystemMessage]),
    st.text(),
)


@pytest.mark.long
@given(st.lists(MESSAGES, max_size=3), st.text(), st.sampled_from([None, "react", "plan_exec"]))
def test_a_request_comes_back_as_it_was(before: list[Any], text: str, mode: str | None) -> None:
    """Ids of its messages too: by them it is known whether it was begun."""
    asked = request({"messages": [*before, HumanMessage(text)], "mode": mode})
    submission = Submission("t", asked, {"daruma_model": "m"})

    back = Submission.of(json.loads(json.dumps(submission.to_json())))

    assert back == submission
    assert back.message_id == asked["messages"][-1].id


def test_a_message_to_be_removed_stays_one() -> None:
    """It means another message by its id, and has no text."""
    asked = {"messages": [RemoveMessage(id="old"), HumanMessage("Go", id="new")]}

    back = Submission.of(Submission("t", asked).to_json())

    assert back.given == asked


@pytest.mark.parametrize(
    ("given_", "replies"),
    [(None, {}), (Command(resume={"q": {"answer": "yes"}}), {"q": {"answer": "yes"}})],
)
def test_replies_and_going_on_come_back(given_: Any, replies: dict[str, Any]) -> None:
    """They have no message."""
    submission = Submission("t", given_)

    back = Submission.of(submission.to_json())

    assert (back.given, back.replies, back.message_id) == (given_, replies, None)


def test_what_is_not_json_is_refused() -> None:
    """In one line, before anything is queued."""
    with pytest.raises(RequestRefused, match="what is not JSON can not be queued"):
        Submission("t", Command(resume={"q": object()})).to_json()


def test_each_submission_has_a_name_that_its_checkpoints_keep() -> None:
    """The same request, submitted twice on purpose, is two."""
    one, other = Submission("t", None, {"a": 1}), Submission("t", None)

    assert one.name != other.name
    assert one.metadata == {"a": 1, SUBMISSION: one.name}
