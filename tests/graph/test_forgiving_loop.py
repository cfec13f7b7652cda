"""The tool loop through the real OpenAI client: what other agents lose runs to is overcome."""

import json
from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from tests.openai_answers import Reply
from tests.openai_server import Fault, openai_server
from tests.parts import memory, settings

from daruma.graph.build import build_graph
from daruma.state.channels import State

MEANT = {"amount": 5, "to_whom": "Ann"}
TEXT = json.dumps(MEANT)
CALL = json.dumps({"name": "pay", "arguments": MEANT})

Answers = list[Reply | Fault]


class Payments:
    """A tool that keeps what it was called with, and a thread on which it is offered."""

    def __init__(self) -> None:
        self.made: list[dict[str, Any]] = []
        self.requests: list[dict[str, Any]] = []

    def pay(self, amount: int, to_whom: str) -> str:
        """Pay an amount."""
        self.made.append({"amount": amount, "to_whom": to_whom})
        return "paid"

    def run(
        self, answers: Answers, *, mode: str = "updates", passed_in: bool = False, **tools: Any
    ) -> State:
        """Run one task to its end; the way of streaming decides how the model is asked."""
        config: Any = {"configurable": {"thread_id": "t"}}
        with openai_server(answers) as server, pytest.MonkeyPatch.context() as environment:
            environment.setenv("OPENAI_API_KEY", "sk-test")
            environment.setenv("OPENAI_BASE_URL", server.url)
            given = settings(tools=tools)
            model = ChatOpenAI(model="m") if passed_in else "openai:m"
            graph: Any = build_graph(model, [self.pay], given, checkpointer=memory())
            request = {"messages": [("user", "Pay Ann 5")]}
            list(graph.stream(request, config, stream_mode=mode))
            self.requests = server.requests
            return State(**graph.get_state(config).values)


@pytest.fixture
def payments() -> Payments:
    return Payments()


def asking(arguments: str, name: str = "pay") -> Reply:
    return Reply(calls=[{"name": name, "arguments": arguments, "id": "c1"}])


def repairs(**repair: Any) -> Reply:
    return Reply(json.dumps({"repairs": [{"tool_call_id": "c1", **repair}]}))


MALFORMED = {
    "single quotes": asking("{'amount': 5, 'to_whom': 'Ann'}"),
    "a number as text": asking('{"amount": "5", "to_whom": "Ann"}'),
    "keys spelt otherwise": asking('{"Amount": 5, "toWhom": "Ann"}'),
    "the name spelt otherwise": asking(TEXT, "Functions.Pay".replace(".", "_")),
    "doubled encoding": asking(json.dumps(TEXT)),
    "a fence": asking(f"```json\n{TEXT}\n```"),
    "written as text": Reply(CALL),
    "written in a fence": Reply(f"```json\n{CALL}\n```"),
    "written as a list": Reply(f"[{CALL}]"),
    "written in tags": Reply(f"<tool_call>{CALL}</tool_call>"),
}


@pytest.mark.parametrize("mode", ["updates", "messages"])
@pytest.mark.parametrize("case", MALFORMED)
def test_an_answer_of_one_malformed_call_runs_as_meant(
    payments: Payments, case: str, mode: str
) -> None:
    """TL-04, TL-10, TL-18: no other model call is needed, streamed or not."""
    aliases = {"functions_pay": "pay"}

    state = payments.run([MALFORMED[case], Reply("Done.")], mode=mode, name_aliases=aliases)

    assert payments.made == [MEANT]
    assert state.result is not None
    assert state.result.status == "completed"
    assert len(payments.requests) == 2


@pytest.mark.parametrize("mode", ["updates", "messages"])
def test_a_repair_is_asked_for_exactly(payments: Payments, mode: str) -> None:
    """TL-08: no tools, no streaming, temperature 0; and its cost has a role of its own."""
    answers: Answers = [asking(TEXT, "transfer"), repairs(name="pay"), Reply("Done.")]

    state = payments.run(answers, mode=mode)

    request = payments.requests[1]
    assert (request["temperature"], request.get("stream", False)) == (0, False)
    assert "tools" not in request
    assert payments.made == [MEANT]
    assert state.result is not None
    assert state.result.usage["repair"]["calls"] == 1
    (audit,) = (each for each in state.result.to_dict()["audit"] if each["round"])
    assert audit["names"][0]["requested_name"] == "transfer"


def test_no_word_of_a_repair_is_streamed(payments: Payments) -> None:
    """Who watches the model's words sees the answer, not the mending of a call."""
    answers: Answers = [asking(TEXT, "transfer"), repairs(name="pay"), Reply("Done.")]
    with openai_server(answers) as server, pytest.MonkeyPatch.context() as environment:
        environment.setenv("OPENAI_API_KEY", "sk-test")
        environment.setenv("OPENAI_BASE_URL", server.url)
        graph = build_graph("openai:m", [payments.pay], settings())
        request: Any = {"messages": [("user", "Pay Ann 5")]}
        said = [part[0].text for part in graph.stream(request, stream_mode="messages")]

    assert "repairs" not in "".join(said)
    assert "Done." in "".join(said)


def test_a_model_that_takes_no_temperature_is_asked_without(payments: Payments) -> None:
    """Models that reason refuse a request that sets it."""
    refusal = {"error": {"message": "Unsupported value: 'temperature' does not support 0."}}
    answers: Answers = [
        asking(TEXT, "transfer"),
        Fault(400, body=refusal),
        repairs(name="pay"),
        Reply("Done."),
    ]

    payments.run(answers)

    assert payments.made == [MEANT]
    assert "temperature" not in payments.requests[2]


@pytest.mark.parametrize("passed_in", [False, True])
@pytest.mark.parametrize("mode", ["updates", "messages"])
def test_a_payload_that_was_cut_off_does_not_run(
    payments: Payments, mode: str, passed_in: bool
) -> None:
    """However the rest of the answer looks: the model is told, and gives it again."""
    answers: Answers = [asking('{"amount": 5, "to_whom": "An'), asking(TEXT), Reply("Done.")]

    state = payments.run(answers, mode=mode, passed_in=passed_in)

    assert payments.made == [MEANT]
    assert len(payments.requests) == 3
    assert any("cut off" in message.text for message in state.messages if message.type == "tool")


def test_of_thirty_calls_twenty_run(payments: Payments) -> None:
    """TL-16: the first ones; what was left out is on record, and the history is whole."""
    calls = [{"name": "pay", "arguments": {"amount": n, "to_whom": "A"}} for n in range(30)]

    state = payments.run([Reply(calls=calls), Reply("Done.")])

    assert sorted(made["amount"] for made in payments.made) == list(range(20))
    assert state.result is not None
    (audit,) = state.result.to_dict()["audit"]
    left_out = audit["left_out"]
    assert (left_out["total"], left_out["executed"], left_out["omitted"]) == (30, 20, 10)
    assert left_out["names"] == ["pay"] * 10
    sent = payments.requests[1]["messages"]
    assert sum(message["role"] == "tool" for message in sent) == 20
