"""RE-08 by whole runs: what has worked three times is done without asking, until it works no more.

A model says nothing until it is told what helps, and recovery has to find that out by asking.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.store.memory import InMemoryStore
from pydantic import PrivateAttr
from tests.parts import memory, settings
from tests.scripted_runs import against
from typing_extensions import override

from daruma.graph.build import build_graph
from daruma.graph.models.scripted import ROLE_KEY, ScriptedChatModel
from daruma.graph.storage.postgres import open_postgres

HELPS = "It may help."
ON = {"observe_only": False, "success_sample_rate": 1.0}


class Mute(ScriptedChatModel):
    """Says nothing unless it is told what helps; counts how often recovery asks."""

    cured: bool = True
    _asked: int = PrivateAttr(default=0)

    @property
    def asked(self) -> int:
        return self._asked

    @override
    def answer(
        self,
        messages: Sequence[BaseMessage],
        *,
        metadata: Mapping[str, Any],
        tools: Sequence[Mapping[str, Any]],
    ) -> AIMessage:
        if metadata[ROLE_KEY] == "recovery":
            self._asked += 1
            return AIMessage(json.dumps(against("parameter-adjustment")["json"]))
        told = any(HELPS in str(each.text) for each in messages)
        return AIMessage("Done." if told and self.cured else "")


class Tasks:
    """Tasks one after the other, each on a thread of its own, each learned from before the next."""

    def __init__(self, evolution: dict[str, Any], **storage: Any) -> None:
        self.model = Mute(script={})
        given = settings(evolution=evolution, sandbox={"require": "none"})
        self.graph: Any = build_graph(self.model, (), given, **storage)
        self.count = 0

    def carry_out(self) -> str:
        """By invoke: return who chose the recovery, and how the task ended."""
        out = self.graph.invoke(*self._next())
        return self._told(out["result"])

    async def acarry_out(self) -> str:
        """By astream: the same, of what was streamed."""
        given, config = self._next()
        streamed = [e async for e in self.graph.astream(given, config, stream_mode="custom")]
        chosen = [event["by"] for event in streamed if event["type"] == "recovery_action"]
        told = self._told((await self.graph.aget_state(config)).values["result"])
        assert told.split()[0] == chosen[0]
        return told

    def _next(self) -> tuple[Any, Any]:
        self.count += 1
        request = {"messages": [("user", "Say something")], "mode": "react"}
        return request, {"configurable": {"thread_id": str(self.count)}}

    def _told(self, result: Any) -> str:
        assert self.graph.evolution.drain()
        return f"{result.recoveries[0].by} {result.status}"


WAY = [
    *["model completed"] * 3,
    "learned completed",
    "learned failed",
    "model failed",
]
"""Asked three times, then not; it fails, and the next time the model is asked again."""


def test_what_worked_three_times_is_done_without_asking_until_it_fails() -> None:
    """By invoke."""
    tasks = Tasks(ON, checkpointer=memory(), store=InMemoryStore())
    told = [tasks.carry_out() for _ in range(4)]
    asked = tasks.model.asked
    tasks.model.cured = False
    told += [tasks.carry_out() for _ in range(2)]

    assert told == WAY
    assert (asked, tasks.model.asked) == (3, 4)


async def test_a_stream_goes_the_same_way() -> None:
    """MO-09: and says who chose."""
    tasks = Tasks(ON, checkpointer=memory(), store=InMemoryStore())
    told = [await tasks.acarry_out() for _ in range(4)]
    tasks.model.cured = False
    told += [await tasks.acarry_out() for _ in range(2)]

    assert told == WAY


def test_postgres_remembers_it(postgres_url: str) -> None:
    """Another process knows what the first has learned."""
    with open_postgres(postgres_url) as pg:
        first = Tasks(ON, persistence=pg)
        told = [first.carry_out() for _ in range(3)]
    with open_postgres(postgres_url) as pg:
        later = Tasks(ON, persistence=pg)
        later.count = 3
        told.append(later.carry_out())

    assert told == WAY[:4]
    assert later.model.asked == 0


@pytest.mark.parametrize("evolution", [ON | {"observe_only": True}, ON | {"enabled": False}])
def test_nothing_is_done_unasked_where_nothing_is_fed_back(evolution: dict[str, Any]) -> None:
    """EV-03: to look on is the default."""
    tasks = Tasks(evolution, checkpointer=memory(), store=InMemoryStore())

    assert [tasks.carry_out() for _ in range(5)] == ["model completed"] * 5


def test_another_projects_tasks_learn_nothing_from_it() -> None:
    """EV-04."""
    store = InMemoryStore()
    ours = Tasks(ON | {"namespace": "ours"}, checkpointer=memory(), store=store)
    theirs = Tasks(ON | {"namespace": "ours too"}, checkpointer=memory(), store=store)
    told = [ours.carry_out() for _ in range(4)]

    assert told == WAY[:4]
    assert theirs.carry_out() == "model completed"
