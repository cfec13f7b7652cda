"""Failover in an agent of LangChain's: who is asked next, and what stands on record."""

from typing import Any

import pytest
from langchain.agents.structured_output import ToolStrategy
from pydantic import BaseModel
from tests.graph.middleware.agents import REQUEST, Desk, Says, agent, call, calling

from daruma.graph.middleware import Failover
from daruma.state.failure import ModelFailed
from daruma.state.settings import Requests

AT_ONCE = Requests(wait_seconds=0.0)


class Refused(Exception):
    """What a provider raises, by its status."""

    def __init__(self, status: int, text: str = "no") -> None:
        super().__init__(text)
        self.status_code = status


def chained(main: Any, *others: Any, **options: Any) -> tuple[Any, list[Says]]:
    models = [Says(answers=each, model_name=f"m{n}") for n, each in enumerate((main, *others))]
    failover = Failover(*models[1:], requests=AT_ONCE, luck=zero, **options)
    return agent(models[0], Desk(), [failover]), models


def zero() -> float:
    return 0.0


@pytest.mark.parametrize(
    ("fault", "asked"),
    [
        (Refused(404), [1, 1]),
        (Refused(400, "tools are not supported"), [1, 1]),
        (Refused(503), [2, 1]),
        (ConnectionError("gone"), [2, 1]),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
async def test_another_model_answers(fault: Exception, asked: list[int], is_async: bool) -> None:
    """TL-17: at once where the model can not, after another try where it may yet."""
    made, models = chained([fault] * 9, ["Done."])

    out = await made.ainvoke(REQUEST) if is_async else made.invoke(REQUEST)

    record = out["messages"][-1].response_metadata["failover"]
    assert out["messages"][-1].text == "Done."
    assert len(models[1].asked) == asked[1]
    assert (record["requested"], record["used"]) == ("m0", "m1")
    assert len(record["attempts"]) == len(models[0].asked) >= asked[0]


class Review(BaseModel):
    """What a structured answer is to be."""

    ready: bool


def test_a_structured_answer_has_its_record_too() -> None:
    """TL-17, FA-10: its result and its value stay beside it."""
    models = [Says(answers=[Refused(404)]), Says(answers=[calling(call("Review", ready=True))])]
    failover = Failover(models[1], requests=AT_ONCE, luck=zero)

    out = agent(models[0], Desk(), [failover], response_format=ToolStrategy(Review)).invoke(REQUEST)

    _, answer, result = out["messages"]
    assert len(answer.response_metadata["failover"]["attempts"]) == 1
    assert result.tool_call_id == answer.tool_calls[0]["id"]
    assert out["structured_response"] == Review(ready=True)


def test_an_answer_at_once_has_no_record() -> None:
    """Nothing is said where nothing happened."""
    made, _ = chained(["Done."], [])

    assert "failover" not in made.invoke(REQUEST)["messages"][-1].response_metadata


def test_what_no_model_would_take_ends_the_call() -> None:
    """A refusal of the request itself is not tried on others; the line says what was said."""
    made, models = chained([Refused(400, "the temperature is too high")], ["Done."])

    with pytest.raises(ModelFailed, match="the temperature is too high"):
        made.invoke(REQUEST)

    assert models[1].asked == []


def test_where_nobody_answers_all_that_was_said_is_told() -> None:
    """Each model with its own words."""
    made, _ = chained([Refused(404, "first")] * 3, [Refused(404, "second")] * 3)

    with pytest.raises(ModelFailed, match=r"m0: .*first; m1: .*second"):
        made.invoke(REQUEST)
