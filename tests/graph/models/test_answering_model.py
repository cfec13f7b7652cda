"""However a scripted model is called, it gives one answer to one question."""

from collections.abc import Awaitable, Callable
from typing import Any, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.utils import message_chunk_to_message
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.graph import START, StateGraph

from daruma.graph.models.faults import ScriptedFault
from daruma.graph.models.scripted import ScriptedChatModel

Way = Callable[[Runnable[Any, Any], RunnableConfig | None], Awaitable[AIMessage]]


def at(role: str, number: int) -> RunnableConfig:
    return {"metadata": {"daruma_role": role, "daruma_call": number}}


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


def scripted(*turns: dict[str, Any]) -> ScriptedChatModel:
    return ScriptedChatModel(script=list(turns))


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
