"""The graph in any program: under uvloop, on threads, cancelled in the midst of a run."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import uvloop
from tests.pages import block_with
from tests.parts import settings
from tests.scripted_runs import calls, say

from daruma import aopen_postgres, build_graph, open_postgres
from daruma.graph.models import ScriptedChatModel
from daruma.graph.run import Machine
from daruma.graph.storage import Postgres

ASKED: Any = {"messages": [("user", "Do it")], "mode": "react"}


def thread(name: str) -> Any:
    return {"configurable": {"thread_id": name}}


def graph_on(pg: Postgres, tools: Any = (), script: Any = None) -> Machine:
    script = script or {"main": [say("Done.")]}
    return build_graph(ScriptedChatModel(script=script), tools, settings(), persistence=pg)


@pytest.mark.long
@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_the_program_of_the_docs_runs(
    loop: Any,
    postgres_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As pasted, but for the model's name and the path of the repository; on any loop."""
    (tmp_path / "script.yaml").write_text("main: [{say: Looked.}]\n")
    block = block_with("asyncio.run(main())").replace(
        "openai:NAME", f"scripted:{tmp_path / 'script.yaml'}"
    )
    block = block.replace("path/to/repo", str(tmp_path)).replace("asyncio.run(main())\n", "")
    monkeypatch.setenv("DARUMA_POSTGRES_URL", postgres_url)
    monkeypatch.setenv("DARUMA_VERIFICATION__ENABLED", "false")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(block, names)  # noqa: S102  # it is our own page

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(names["main"]())

    told = capsys.readouterr().out.split()
    assert (told[0], told[-1]) == ("task_started", "task_completed")


def test_threads_run_threads(postgres_url: str) -> None:
    """Each its own run, over one graph and one database."""
    with open_postgres(postgres_url) as pg, ThreadPoolExecutor(4) as threads:
        graph = graph_on(pg)

        def types(name: str) -> list[str]:
            parts = graph.stream(ASKED, thread(name), stream_mode="custom")
            return [event["type"] for event in parts]

        told = [*threads.map(types, [f"t{number}" for number in range(8)])]

    assert {(each[0], each[-1]) for each in told} == {("task_started", "task_completed")}


async def test_a_cancelled_run_can_be_gone_on_with(postgres_url: str) -> None:
    """In the midst of a tool, which is cancelled too; then the thread is resumed."""
    begun = asyncio.Event()
    ended: list[str] = []

    async def wait() -> str:
        """Wait."""
        begun.set()
        if not ended:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("cancelled")
        return "waited"

    async with aopen_postgres(postgres_url) as pg:
        graph = graph_on(pg, [wait], {"main": [calls({"name": "wait", "args": {}}), say("Done.")]})
        running = asyncio.create_task(graph.ainvoke(ASKED, thread("t")))
        async with asyncio.timeout(30):
            await asyncio.wait(
                [running, asyncio.ensure_future(begun.wait())], return_when="FIRST_COMPLETED"
            )
        running.cancel()
        await asyncio.wait([running])
        look = await graph.alook(thread("t"))

    assert running.cancelled()
    assert ended == ["cancelled"]
    assert look.status == "unfinished"
