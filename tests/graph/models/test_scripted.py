"""The scripted model gives the turn asked for, and refuses what the script does not foresee."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.utils import message_chunk_to_message
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import tool
from langgraph.graph import START, StateGraph
from tests.parts import settings
from tests.scripted_runs import Run, against, say

from daruma.graph.models import ScriptedChatModel, ScriptedFault, fault_of
from daruma.graph.models._faults import ScriptExhausted, ScriptInvalid, ScriptMismatch


def at(role: str, number: int) -> RunnableConfig:
    return {"metadata": {"daruma_role": role, "daruma_call": number}}


def scripted(*turns: dict[str, Any]) -> ScriptedChatModel:
    return ScriptedChatModel(script=list(turns))


def test_tokens_are_estimated_when_the_turn_counts_none() -> None:
    """Four characters a token, rounded up, the same every time."""
    answer = scripted({"say": "twelve chars"}).invoke("five!")

    assert answer.usage_metadata == {"input_tokens": 2, "output_tokens": 3, "total_tokens": 5}


def test_concurrent_calls_get_a_turn_each() -> None:
    """Counting loses and repeats nothing when threads share the model."""
    model = scripted(*({"say": str(number)} for number in range(200)))

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: int(str(model.invoke("hello").content)), range(200)))

    assert sorted(answers) == list(range(200))


def test_a_request_without_the_expected_text_is_refused() -> None:
    """The error names what was missing and shows how the request ended, in one line."""
    model = scripted({"expect": ["hello", "failing test", "calc.py"], "say": "ok"})

    with pytest.raises(ScriptMismatch) as caught:
        model.invoke("hello")

    assert str(caught.value) == (
        "scripted: main[0] expects in the request: 'failing test', 'calc.py';"
        " the request ends: 'Human: hello'"
    )


@tool
def a_tool(path: str) -> str:
    """View a file."""
    return path


def a_function(path: str) -> str:
    """View a file."""
    return path


@pytest.mark.parametrize(
    ("expected", "offered", "complaint"),
    [
        (["a_tool", "edit"], [a_tool], "expects the tools edit; offered: a_tool"),
        (["edit"], [], "expects the tools edit; offered: none"),
        ([], [a_tool, a_function], "expects no tools; offered: a_tool, a_function"),
    ],
)
def test_wrong_tools_are_refused(expected: list[str], offered: list[Any], complaint: str) -> None:
    """MO-01: that a mode offers no tools can be claimed too, by expecting an empty list."""
    model = scripted({"expect_tools": expected, "say": "ok"}).bind_tools(offered)

    with pytest.raises(ScriptMismatch, match=complaint):
        model.invoke("hello")


def test_a_script_that_runs_out_says_for_whom_and_after_what() -> None:
    """The end of a long request is enough to see what was going on."""
    model = ScriptedChatModel(script={"main": [{"say": "0"}], "plan": []})

    with pytest.raises(ScriptExhausted) as caught:
        model.invoke("x" * 1000 + " the end", at("main", 1))

    text = str(caught.value)
    assert 'role "main" has 1 turns and was asked for number 1 (from 0)' in text
    assert "roles: main, plan" in text
    assert text.endswith("xx the end'")
    assert len(text) < 600


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("s.yaml", "main:\n  - say: hi\n"),
        ("s.yml", "- say: hi\n"),
        ("s.json", json.dumps({"main": [{"say": "hi"}]})),
    ],
)
def test_scripts_are_yaml_or_json_files(tmp_path: Path, name: str, text: str) -> None:
    """FA-05: what is shipped as a scenario is a file; a bare list is role main's."""
    (tmp_path / name).write_text(text)

    assert ScriptedChatModel.from_file(tmp_path / name).invoke("hello").content == "hi"


# --- However a scripted model is called, it gives one answer to one question.

Way = Callable[[Runnable[Any, Any], RunnableConfig | None], Awaitable[AIMessage]]


async def invoked(model: Runnable[Any, Any], config: RunnableConfig | None) -> AIMessage:
    return message(model.invoke("hello", config))


async def ainvoked(model: Runnable[Any, Any], config: RunnableConfig | None) -> AIMessage:
    return message(await model.ainvoke("hello", config))


async def streamed(model: Runnable[Any, Any], config: RunnableConfig | None) -> AIMessage:
    return joined(list(model.stream("hello", config)))


async def astreamed(model: Runnable[Any, Any], config: RunnableConfig | None) -> AIMessage:
    return joined([chunk async for chunk in model.astream("hello", config)])


WAYS = [invoked, ainvoked, streamed, astreamed]


def message(answer: Any) -> AIMessage:
    assert isinstance(answer, AIMessage)
    return answer


def joined(chunks: list[AIMessageChunk]) -> AIMessage:
    return message(message_chunk_to_message(chunks[0].__add__(chunks[1:])))


@pytest.mark.parametrize("way", WAYS)
async def test_every_way_of_calling_gives_the_same_message(way: Way) -> None:
    """Text, calls, ids, usage and finish reason do not depend on streaming."""
    turn = {
        "say": "let me look at it",
        "calls": [
            {"name": "view", "args": {"path": "a.py", "range": [1, 2]}},
            {"name": "view", "args": "not json", "id": "mine"},
            {"name": "list"},
        ],
        "usage": {"input": 10, "output": 5},
    }
    model = ScriptedChatModel(script={"plan": [{"say": "skipped"}, turn]})

    answer = await way(model, at("plan", 1))

    assert (
        answer.model_dump()
        == AIMessage(
            content="let me look at it",
            id="msg_plan_1",
            tool_calls=[
                {
                    "name": "view",
                    "args": {"path": "a.py", "range": [1, 2]},
                    "id": "call_plan_1_0",
                    "type": "tool_call",
                },
                {"name": "list", "args": {}, "id": "call_plan_1_2", "type": "tool_call"},
            ],
            invalid_tool_calls=[
                {
                    "name": "view",
                    "args": "not json",
                    "id": "mine",
                    "error": None,
                    "type": "invalid_tool_call",
                }
            ],
            usage_metadata={"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
            response_metadata={"finish_reason": "tool_calls", "model_name": "scripted"},
        ).model_dump()
    )


@pytest.mark.long
@given(
    text=st.text(),
    args=st.lists(st.dictionaries(st.text(), st.text() | st.integers() | st.none())),
)
async def test_any_text_and_arguments_survive_streaming(
    text: str, args: list[dict[str, Any]]
) -> None:
    """Splitting into chunks and joining again loses nothing."""
    model = scripted({"say": text, "calls": [{"name": "t", "args": each} for each in args]})

    answers = [(await way(model, at("main", 0))).model_dump() for way in WAYS]

    assert answers[1:] == answers[:-1]
    assert (answers[0]["content"], [c["args"] for c in answers[0]["tool_calls"]]) == (text, args)


async def test_cut_off_arguments_are_invalid_invoked_and_completed_streamed() -> None:
    """So it is with real models under LangChain, and graphs must be tested against it."""
    model = scripted(
        {"calls": [{"name": "write", "args": '{"text": "ab'}], "finish_reason": "length"}
    )

    whole = await ainvoked(model, at("main", 0))
    joint = await astreamed(model, at("main", 0))

    assert (whole.tool_calls, whole.invalid_tool_calls[0]["args"]) == ([], '{"text": "ab')
    assert (joint.tool_calls[0]["args"], joint.invalid_tool_calls) == ({"text": "ab"}, [])
    assert whole.response_metadata["finish_reason"] == "length"


async def test_a_graph_streaming_messages_keeps_the_position() -> None:
    """A listener makes `ainvoke` a stream, to which LangChain does not pass the metadata."""

    class State(TypedDict):
        said: str

    async def node(state: State) -> State:
        return {"said": str((await model.ainvoke(state["said"], at("plan", 1))).content)}

    model = ScriptedChatModel(script={"plan": [{"say": "first"}, {"say": "a second answer"}]})
    builder = StateGraph(State)
    builder.add_node(node)
    builder.add_edge(START, "node")
    graph = builder.compile()

    parts: list[Any] = [p async for p in graph.astream({"said": "hi"}, stream_mode="messages")]

    texts = [chunk.content for chunk, _ in parts if chunk.content]
    assert (len(texts), "".join(texts)) == (3, "a second answer")


@pytest.mark.parametrize("way", WAYS)
async def test_a_fault_is_raised_and_counts_as_a_turn(way: Way) -> None:
    """The next call gets the next turn, as after a real outage."""
    model = scripted({"raise": "the provider is down"}, {"say": "back"})

    with pytest.raises(ScriptedFault, match="the provider is down"):
        await way(model, None)

    assert (await way(model, None)).content == "back"


# --- A script fails in the ways in which models do: with a status, late, for some requests only.

OUTAGE = {"raise": "overloaded", "status": 503}
QUICK = {"requests": {"wait_seconds": 0, "seconds": 0.2}}


def asked(*turns: dict[str, Any], **llm: Any) -> Run:
    """A whole run, whose recovery tries again at once."""
    chain = {"recovery": {"wait_seconds": 0}}
    given = settings(llm={**QUICK, **llm}, fallback_chain=chain)
    script = {"main": list(turns), "recovery": [against("retry")]}
    return Run(script, settings=given).ask()


def attempts(run: Run) -> list[tuple[int | None, str]]:
    """What failed below the answer, and what was done about it."""
    failovers = [each.failover for each in run.result.audit if each.failover]
    return [(each.status, each.then) for one in failovers for each in one.attempts]


@pytest.mark.parametrize(
    ("status", "kind"), [(503, "again"), (429, "again"), (404, "next"), (401, "final")]
)
def test_a_fault_with_a_status_is_taken_as_a_providers(status: int, kind: str) -> None:
    """It goes through the one classification that all failures of models go through."""
    model = ScriptedChatModel(script=[{"raise": "no", "status": status}])

    with pytest.raises(ScriptedFault, match="no") as raised:
        model.invoke("hello")
    assert (fault_of(raised.value).kind, fault_of(raised.value).status) == (kind, status)


def test_attempts_are_the_requests_for_one_answer() -> None:
    """An outage that passes: the second request is heard, and it is still the first call."""
    run = asked({"attempts": [OUTAGE, say("Heard.")]})

    assert run.result.output == "Heard."
    assert attempts(run) == [(503, "again")]
    assert run.result.budgets["think"] == 1


@pytest.mark.long
def test_a_model_that_is_late_meets_the_limit_and_another_stands_in(tmp_path: Path) -> None:
    """`wait` hangs as a real one does: the time limit strikes, and it can be cancelled."""
    spare = tmp_path / "spare.json"
    spare.write_text(json.dumps([say("The spare's.")]))
    began = time.monotonic()
    run = asked({"wait": 60, "say": "late"}, fallback_models=[f"scripted:{spare}"])

    assert run.result.output == "The spare's."
    assert time.monotonic() - began < 30


async def test_a_wait_holds_up_nobody_else() -> None:
    """Ten at once take as long as one, streamed or not."""
    model = ScriptedChatModel(script=[{"wait": 0.2, "say": "Late."}] * 10)
    began = time.monotonic()
    answers = await asyncio.gather(*(model.ainvoke("hello") for _ in range(10)))

    assert [answer.content for answer in answers] == ["Late."] * 10
    assert 0.2 <= time.monotonic() - began < 1.5


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_a_wait_is_as_long_in_synchronous_calls(way: str) -> None:
    """The same seconds whichever way the model is called."""
    model, began = ScriptedChatModel(script=[{"wait": 0.05, "say": "Late."}]), time.monotonic()
    said = [model.invoke("hello")] if way == "invoke" else [*model.stream("hello")]

    assert "".join(str(each.content) for each in said) == "Late."
    assert time.monotonic() - began >= 0.05


@pytest.mark.parametrize(
    ("turn", "complaint"),
    [
        ({"say": "x", "status": 503}, r"main\[0\]: a status is that of a fault: it needs raise"),
        ({"raise": "x", "status": 200}, r"main\[0\].status: .* greater than or equal to 400"),
        ({"say": "x", "wait": -1}, r"main\[0\].wait: .* greater than or equal to 0"),
        ({"attempts": [{"say": "x"}], "wait": 1}, r"main\[0\]: attempts stand alone"),
        ({"attempts": [{"attempts": [{"say": "x"}]}]}, r"main\[0\]: attempts stand alone"),
        ({"attempts": []}, r"main\[0\]: attempts needs a turn for a request"),
        ({"attempts": [{"says": "x"}]}, r'main\[0\].attempts\[0\]: unknown field "says".*"say"'),
    ],
)
def test_a_fault_that_can_not_be_meant_is_refused(turn: dict[str, Any], complaint: str) -> None:
    """With the place, when the model is made."""
    with pytest.raises(ScriptInvalid, match=complaint):
        ScriptedChatModel(script=[turn])
