"""How many steps memory spares: tasks on one repository, by a model that has to find out a fact.

Usage: ``python -m tests.memory_helps``. The model knows nothing by itself: it answers only with a
port that stands in what it is sent. It looks for it with tools, remembers it, and answers.
"""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.store.memory import InMemoryStore
from tests.parts import memory, settings
from tests.scripted_runs import RecordingModel
from typing_extensions import override

from daruma.graph.build import build_graph

TASKS = (
    "Which port does the billing server listen on?",
    "Start the billing server on its port and look whether it answers.",
    "Write the billing server's port into the notes.",
    "The billing server does not answer on its port: why?",
)
FACT = "The billing server listens on port 4711."


class Finder(RecordingModel):
    """A model that goes on from what it is sent, and from nothing else."""

    @override
    def answer(
        self,
        messages: Sequence[BaseMessage],
        *,
        metadata: Mapping[str, Any],
        tools: Sequence[Mapping[str, Any]],
    ) -> AIMessage:
        sent = "\n".join(str(message.text) for message in messages)
        can_remember = any(tool["function"]["name"] == "memory_store" for tool in tools)
        if "4711" not in sent:
            return self._looking(sent)
        if can_remember and FACT not in sent and "Remembered" not in sent:
            return self._calling("memory_store", text=FACT)
        return AIMessage("It is 4711.")

    def _looking(self, sent: str) -> AIMessage:
        if "settings.ini" not in sent:
            return self._calling("search", pattern="billing")
        return self._calling("str_replace_editor", command="view", path="deploy/settings.ini")

    def _calling(self, name: str, **args: Any) -> AIMessage:
        return AIMessage("", tool_calls=[{"name": name, "args": args, "id": "c"}])


def steps(folder: Path, *, enabled: bool) -> list[int]:
    """Carry the tasks out one after the other, each on a thread of its own; count model calls."""
    (folder / "deploy").mkdir(parents=True)
    (folder / "deploy" / "settings.ini").write_text("[net]\nport = 4711\n")
    (folder / "README").write_text("billing is configured in deploy/settings.ini\n")
    given = settings(memory={"enabled": enabled}, rollback={"snapshots": False})
    store, counts = InMemoryStore(), list[int]()
    for number, task in enumerate(TASKS):
        graph: Any = build_graph(Finder(script={}), (), given, checkpointer=memory(), store=store)
        request = {"messages": [("user", task)], "workspace": str(folder)}
        out = graph.invoke(request, {"configurable": {"thread_id": str(number)}})
        assert out["result"].output == "It is 4711.", out["result"]
        counts.append(out["result"].budgets["think"])
    return counts


def main() -> None:
    """Print the steps of each task, without memory and with it."""
    with tempfile.TemporaryDirectory() as folder:
        without = steps(Path(folder, "without"), enabled=False)
        with_ = steps(Path(folder, "with"), enabled=True)
    print("| task | steps without memory | with |\n|---|---|---|")  # noqa: T201
    for task, one, other in zip(TASKS, without, with_, strict=True):
        print(f"| {task} | {one} | {other} |")  # noqa: T201
    print(f"| all | {sum(without)} | {sum(with_)} |")  # noqa: T201


if __name__ == "__main__":
    main()
