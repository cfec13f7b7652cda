"""No run waits for the threads of its event loop: an application may hold them all."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from langchain_core.tools import tool
from tests.scripted_runs import call, calls, say, shout
from typing_extensions import override

from daruma.graph.build import build_graph
from daruma.graph.models.scripted import ScriptedChatModel
from daruma.graph.storage.postgres import aopen_postgres
from daruma.state.settings import Settings

SETTINGS = Settings.model_validate({"evolution": {"enabled": False}})


class Refusing(ThreadPoolExecutor):
    """Threads that nobody may ask for anything."""

    def __init__(self) -> None:
        super().__init__(1)
        self.asked: list[Any] = []

    @override
    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.asked.append((fn, args))
        raise RuntimeError(f"the loop's threads were asked to do {fn} {args}")


async def test_a_run_asks_nothing_of_the_threads_of_its_loop(
    postgres_url: str, tmp_path: Any
) -> None:
    """Nor do its checkpoints, its blocking tools, and whoever takes the thread up again."""
    refusing = Refusing()
    script = {
        "main": [calls(*(call("shout", text=f"{n}") for n in range(3))), say(), say("Again.")]
    }
    given = {"messages": [("user", "Do it")], "workspace": str(tmp_path)}
    config: Any = {"configurable": {"thread_id": "t"}}
    async with aopen_postgres(postgres_url) as pg:
        asyncio.get_running_loop().set_default_executor(refusing)
        machine: Any = build_graph(
            ScriptedChatModel(script=script), [tool(shout)], SETTINGS, persistence=pg
        )

        first = await machine.ainvoke(given, config)
        again = await machine.ainvoke(given, config)

    assert refusing.asked == []
    assert first["result"].status == again["result"].status == "completed"
