"""The floor: a model and a tool in a loop, and one commit a step of what is new."""

import json
from collections.abc import Sequence
from typing import Any, Final

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage, message_to_dict
from langchain_core.runnables import RunnableConfig
from psycopg import AsyncConnection, Connection
from tests.benchmarks.task import PROMPT, Task

MADE: Final = (
    "CREATE TABLE messages (thread text, number int, body text, PRIMARY KEY (thread, number))"
)
_SAVE: Final = (
    "INSERT INTO messages SELECT %s, first + %s - 1, body "
    "FROM unnest(%s::text[]) WITH ORDINALITY AS given (body, first)"
)


class RawLoop:
    """Works on a task without any framework."""

    def __init__(
        self, task: Task, connection: Connection[Any] | AsyncConnection[Any] | None
    ) -> None:
        self._tool = task.tool()
        self._model = task.model.bind_tools([self._tool])
        self._connection = connection

    def invoke(self, given: Any, config: RunnableConfig, **_: Any) -> dict[str, Any]:
        messages, kept = _begun(given), 0
        while True:
            answer = self._model.invoke(messages)
            messages.append(answer)
            messages += [self._tool.invoke({**call}) for call in answer.tool_calls]
            if isinstance(self._connection, Connection):
                self._connection.execute(_SAVE, _rows(config, messages, kept))
            kept = len(messages)
            if not answer.tool_calls:
                return {"messages": messages}

    async def ainvoke(self, given: Any, config: RunnableConfig, **_: Any) -> dict[str, Any]:
        messages, kept = _begun(given), 0
        while True:
            answer = await self._model.ainvoke(messages)
            messages.append(answer)
            messages += [await self._tool.ainvoke({**call}) for call in answer.tool_calls]
            if isinstance(self._connection, AsyncConnection):
                await self._connection.execute(_SAVE, _rows(config, messages, kept))
            kept = len(messages)
            if not answer.tool_calls:
                return {"messages": messages}


def _begun(given: Any) -> list[BaseMessage]:
    ((_, asked),) = given["messages"]
    return [SystemMessage(PROMPT), HumanMessage(asked)]


def _rows(config: RunnableConfig, messages: Sequence[BaseMessage], kept: int) -> list[Any]:
    bodies = [json.dumps(message_to_dict(message)) for message in messages[kept:]]
    return [config["configurable"]["thread_id"], kept, bodies]
