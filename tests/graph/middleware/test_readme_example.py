"""The agent of the docs works as it stands there, but for the names of its models."""

from typing import Any

from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from tests.graph.middleware.agents import REQUEST, THREAD, Says, call, calling, decided
from tests.pages import block_with


def test_the_agent_of_the_docs_pays_once_somebody_has_agreed() -> None:
    """The alias is mended, the lost model is stood in for, and the required yes is asked for."""
    gone = [ConnectionError("gone")] * 9
    said = calling(call("send_money", amount="5", to="Ann"))
    models = {"main": Says(answers=gone), "other": Says(answers=[said, "Done."])}
    block = (
        block_with("RepairLadder")
        .replace('"openai:OTHER"', "MODELS['other']")
        .replace('"openai:NAME"', "MODELS['main']")
    )
    names: dict[str, Any] = {"MODELS": models}
    exec(block, names)  # noqa: S102  # it is our own page
    agent: Any = create_agent(
        models["main"], [names["pay"]], middleware=names["middleware"], checkpointer=InMemorySaver()
    )

    asked = agent.invoke(REQUEST, THREAD)
    out = agent.invoke(decided(asked), THREAD)

    assert out["messages"][2].text == "paid 5 to Ann"
    assert out["messages"][-1].text == "Done."
