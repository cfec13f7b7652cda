"""What a tool-loop step costs: as many supersteps as in the plainest agent."""

from typing import Any

from langchain_core.messages import AnyMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from tests.scripted_runs import Run, call, calls, say, shout

from daruma.graph.models.scripted import ScriptedChatModel

LOOPS = 5
SCRIPT = [*(calls("shout", call(text=f"hello {n}")) for n in range(LOOPS)), say()]


def plain_agent() -> Any:
    """Model, tools, model: nothing else."""
    model = ScriptedChatModel(script={"main": SCRIPT})

    def ask(state: MessagesState) -> dict[str, list[AnyMessage]]:
        number = sum(message.type == "ai" for message in state["messages"])
        metadata = {"daruma_role": "main", "daruma_call": number}
        return {"messages": [model.invoke(state["messages"], {"metadata": metadata})]}

    def run(state: MessagesState) -> dict[str, list[AnyMessage]]:
        asked: Any = state["messages"][-1]
        return {
            "messages": [
                ToolMessage(shout(**call["args"]), tool_call_id=call["id"])
                for call in asked.tool_calls
            ]
        }

    def after(state: MessagesState) -> str:
        asked: Any = state["messages"][-1]
        return "run" if asked.tool_calls else END

    graph: Any = StateGraph(MessagesState)
    graph.add_node("ask", ask).add_node("run", run).add_edge(START, "ask").add_edge("run", "ask")
    return graph.add_conditional_edges("ask", after, ["run", END]).compile()


def supersteps(graph: Any, given: Any, config: Any) -> int:
    parts = list(graph.stream(given, config, stream_mode="debug"))
    return len({part["step"] for part in parts if part["type"] == "task"})


def test_a_tool_loop_step_costs_no_more_supersteps_than_a_plain_agents() -> None:
    """With nothing to repair and nobody to ask: two for each step of the loop."""
    given = {"messages": [("user", "Do it")]}
    run = Run({"main": SCRIPT}, tools=[shout])
    plain = supersteps(plain_agent(), given, {})

    ours = supersteps(run.graph, given, run.config)

    around = len({"intake", "finish"})
    assert plain == 2 * LOOPS + 1
    assert ours - around == plain
    assert run.result.status == "completed"
