"""The plainest agent that LangGraph's own guide shows: a model node, a tool node, two edges."""

from typing import Any, Literal

from langchain_core.messages import SystemMessage
from langgraph._internal._runnable import RunnableCallable
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from tests.benchmarks.task import PROMPT, Task


def plain_graph(task: Task, saver: BaseCheckpointSaver[Any] | None) -> Any:
    """Build it, for synchronous and asynchronous callers."""
    tool = task.tool()
    model = task.model.bind_tools([tool])

    def ask(state: MessagesState) -> Any:
        return {"messages": [model.invoke([SystemMessage(PROMPT), *state["messages"]])]}

    async def ask_later(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke([SystemMessage(PROMPT), *state["messages"]])]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", RunnableCallable(ask, ask_later, trace=False))
    graph.add_node("tools", ToolNode([tool]))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", after_model)
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=saver)


def after_model(state: MessagesState) -> Literal["tools", "__end__"]:
    """Go on while tools are called."""
    return "tools" if getattr(state["messages"][-1], "tool_calls", ()) else "__end__"
