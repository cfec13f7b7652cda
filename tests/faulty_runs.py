"""One scripted task, run over a database that fails: what is left of it, for comparison."""

from pathlib import Path
from typing import Any

from langgraph.types import Command

from daruma import Settings, build_graph
from daruma.graph.models.scripted import ScriptedChatModel
from daruma.graph.storage.postgres import Postgres, open_postgres
from daruma.state.interrupts import ReplyRefused

SCRIPT: dict[str, Any] = {
    "main": [
        {
            "calls": [
                {"name": "note", "args": {"text": "one"}, "id": "a"},
                {"name": "note", "args": {"text": "two"}, "id": "b"},
            ]
        },
        {"calls": [{"name": "pay", "args": {"text": "five"}, "id": "c"}]},
        {"calls": [{"name": "note", "args": {"text": "three"}, "id": "d"}]},
        {"say": "It is done."},
    ]
}


def graph_of(pg: Postgres, folder: Path) -> Any:
    """Build the graph; its tools write into files, and ``pay`` has to be approved."""

    def note(text: str) -> str:
        """Write it down."""
        with (folder / f"{text}.txt").open("a") as file:
            file.write(text + "\n")
        return f"noted {text}"

    def pay(text: str) -> str:
        """Pay an amount."""
        return note(text)

    settings = Settings.model_validate(
        {"sandbox": {"require": "none"}, "tools": {"policy": {"pay": "confirm"}}}
    )
    return build_graph(ScriptedChatModel(script=SCRIPT), [note, pay], settings, persistence=pg)


def config_of(folder: Path) -> dict[str, Any]:
    """The thread has the folder's name."""
    return {"configurable": {"thread_id": folder.name}}


def run_to_the_end(graph: Any, folder: Path) -> Any:
    """Start the task, or go on with it from wherever it stands; return its last state."""
    config = config_of(folder)
    while True:
        state = graph.get_state(config)
        if state.created_at is None:
            graph.invoke({"messages": [("user", "Note it")]}, config)
        elif state.interrupts:
            (question,) = state.interrupts
            keys = ("approval_id", "digest")
            asked = [{key: each[key] for key in keys} for each in question.value["approvals"]]
            reply = {"decisions": [each | {"decision": "approve"} for each in asked]}
            try:
                graph.invoke(Command(resume={question.id: reply}), config)
            except ReplyRefused:  # it was accepted, and the run then cut off
                graph.invoke(None, config)
        elif state.tasks:
            graph.invoke(None, config)
        else:
            return state


def seen(state: Any, folder: Path) -> dict[str, Any]:
    """Everything that has to be equal, whatever happened on the way."""
    result = state.values["result"]
    return {
        "status": result.status,
        "budgets": result.budgets,
        "usage": result.usage,
        "steps": [step.kind for step in state.values["steps"]],
        "messages": [[message.type, message.text] for message in state.values["messages"]],
        "files": {path.name: path.read_text() for path in sorted(folder.iterdir())},
    }


def untouched(url: str, folder: Path) -> dict[str, Any]:
    """Run it over a database that is well."""
    folder.mkdir()
    with open_postgres(url) as pg:
        return seen(run_to_the_end(graph_of(pg, folder), folder), folder)
