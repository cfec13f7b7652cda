"""The repair ladder in an agent of LangChain's: what runs, what is said, what stands on record."""

import json
from typing import Any

import pytest
from langchain.agents.middleware import wrap_model_call
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.errors import GraphInterrupt
from pydantic import BaseModel
from tests.graph.middleware.agents import REQUEST, Desk, Says, agent, broken, call, calling

from daruma.graph.middleware import RepairLadder
from daruma.graph.models._faults import ScriptExhausted
from daruma.state.settings import Tools
from daruma.tools.calls import ToolNameConflictError

ALIASED = Tools(name_aliases={"cat": "read_file"})


@pytest.mark.parametrize(
    ("said", "done", "how"),
    [
        (calling(call("readFile", path="a")), "read a", "normalized"),
        (calling(call("cat", path="a")), "read a", "alias"),
        (calling(call("pay", amount="3")), "paid 3 to shop", ""),
        (broken("pay", "{'amount': 3,}"), "paid 3 to shop", ""),
        (
            AIMessage('```json\n{"name": "read_file", "arguments": {"path": "a"}}\n```'),
            "read a",
            "",
        ),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
async def test_rules_mend_what_they_can(
    said: AIMessage, done: str, how: str, is_async: bool
) -> None:
    """TL-04, TL-10, TL-18: without another model call, and the history stays paired."""
    desk, model = Desk(), Says(answers=[said, "Done."])
    made = agent(model, desk, [RepairLadder(ALIASED)])

    out = await made.ainvoke(REQUEST) if is_async else made.invoke(REQUEST)

    _, answer, result, last = out["messages"]
    assert desk.done == [done]
    assert (last.text, len(model.asked)) == ("Done.", 2)
    assert [each["id"] for each in answer.tool_calls] == [result.tool_call_id]
    assert not answer.invalid_tool_calls
    if how:
        (audit,) = answer.response_metadata["daruma"]["audit"]
        (change,) = audit["names"]
        assert change["how"] == how


def test_what_was_said_stands_beside_what_ran() -> None:
    """TL-11: the audit has the words of the model."""
    made = agent(Says(answers=[broken("pay", "{'amount': 3,}"), "Done."]), Desk(), [RepairLadder()])

    answer = made.invoke(REQUEST)["messages"][1]

    told = answer.response_metadata["daruma"]
    assert told["said"] == [{"id": "c1", "name": "pay", "args": "{'amount': 3,}"}]
    assert told["audit"][0]["arguments"][0]["repaired_by"] == "rules"


@pytest.mark.parametrize(
    ("said", "repair", "done"),
    [
        (
            calling(call("open_document", path="a")),
            {"repairs": [{"tool_call_id": "c1", "name": "read_file"}]},
            "read a",
        ),
        (
            calling(call("pay", sum_of=3)),
            {"repairs": [{"tool_call_id": "c1", "arguments": {"amount": 3}}]},
            "paid 3 to shop",
        ),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
async def test_one_model_call_mends_the_rest(
    said: AIMessage, repair: Any, done: str, is_async: bool
) -> None:
    """TL-08, TL-09: asked without tools, and what it is told is no part of the history."""
    desk, model = Desk(), Says(answers=[said, json.dumps(repair), "Done."])
    made = agent(model, desk, [RepairLadder()])

    out = await made.ainvoke(REQUEST) if is_async else made.invoke(REQUEST)

    audits = out["messages"][1].response_metadata["daruma"]["audit"]
    assert desk.done == [done]
    assert len(model.asked[1]) == 2
    assert [each.text for each in out["messages"]][-1] == "Done."
    assert audits[-1]["round"]["repaired"] == ["c1"]


@pytest.mark.parametrize("raised", [ScriptExhausted("no more turns"), GraphInterrupt(())])
def test_what_is_no_failure_of_the_model_is_not_hidden(raised: Exception) -> None:
    """A question that another middleware asks there, and a script that does not fit."""

    @wrap_model_call
    def asking(request: Any, handler: Any) -> Any:
        if not request.tools:
            raise raised
        return handler(request)

    model = Says(answers=[calling(call("pay", sum_of=3)), "Done."])
    made = agent(model, Desk(), [RepairLadder(), asking])

    if isinstance(raised, GraphInterrupt):
        assert len(made.invoke(REQUEST)["messages"]) == 1
    else:
        with pytest.raises(ScriptExhausted):
            made.invoke(REQUEST)


@pytest.mark.parametrize("answer", ["no idea", RuntimeError("down")])
def test_what_can_not_be_mended_is_answered(answer: Any) -> None:
    """An answer that holds only one malformed call does not end the run; nothing ran."""
    desk = Desk()
    model = Says(answers=[broken("pay", "amount: three"), answer, "I see."])
    made = agent(model, desk, [RepairLadder()])

    out = made.invoke(REQUEST)

    _, said, result, last = out["messages"]
    assert desk.done == []
    assert isinstance(result, ToolMessage)
    assert (result.status, result.tool_call_id) == ("error", said.tool_calls[0]["id"])
    assert last.text == "I see."


class Review(BaseModel):
    """What a structured answer is to be."""

    ready: bool


READY = call("Review", "r1", ready=True)


@pytest.mark.parametrize(
    ("said", "done"),
    [
        (broken("Review", "{'ready': True,}"), []),
        (calling(call("review", ready="true")), []),
        (calling(call("Pay", amount="3"), READY), ["paid 3 to shop"]),
        (broken("pay", "{'amount': 3,}", tool_calls=[READY]), ["paid 3 to shop"]),
        (calling(call("pay", amount=3), READY), ["paid 3 to shop"]),
    ],
)
def test_a_structured_answer_is_a_call_like_others(said: AIMessage, done: list[str]) -> None:
    """TL-10, FA-10: broken, misnamed, or beside others; no model call, and one result each."""
    desk, model = Desk(), Says(answers=[said])

    out = agent(model, desk, [RepairLadder()], response_format=ToolStrategy(Review)).invoke(REQUEST)

    _, answer, *results = out["messages"]
    assert out["structured_response"] == Review(ready=True)
    assert (desk.done, len(model.asked)) == (done, 1)
    ids = [each["id"] for each in answer.tool_calls]
    assert sorted(ids) == sorted(each.tool_call_id for each in results)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (calling(READY, call("review", "r2", ready=False)), "ready=True"),
        (calling(call("Review", "r1", ready="maybe")), "Failed to parse"),
    ],
)
def test_of_two_structured_answers_none_is_added_and_a_wrong_one_is_asked_again(
    said: AIMessage, told: str
) -> None:
    """TL-03: each call has its result; LangChain's own way with a wrong answer stays."""
    model = Says(answers=[said, calling(READY)])

    out = agent(model, Desk(), [RepairLadder()], response_format=ToolStrategy(Review)).invoke(
        REQUEST
    )

    assert out["structured_response"] == Review(ready=True)
    assert any(told in each.text for each in out["messages"])


def test_only_the_first_calls_are_kept() -> None:
    """TL-16: what was left out is on record, and the history is paired."""
    desk = Desk()
    many = calling(*(call("read_file", f"c{number}", path=str(number)) for number in range(30)))
    made = agent(Says(answers=[many, "Done."]), desk, [RepairLadder()])

    out = made.invoke(REQUEST)

    said, results = out["messages"][1], out["messages"][2:-1]
    assert len(desk.done) == len(said.tool_calls) == len(results) == 20
    assert said.response_metadata["daruma"]["audit"][0]["left_out"]["omitted"] == 10


def test_an_alias_that_is_a_tool_is_refused() -> None:
    """TL-05: a name means one tool."""
    ladder = RepairLadder(Tools(name_aliases={"pay": "read_file"}))
    made = agent(Says(answers=["Done."]), Desk(), [ladder])

    with pytest.raises(ToolNameConflictError):
        made.invoke(REQUEST)
