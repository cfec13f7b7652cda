"""A kernel has an event loop that runs, and a stop button: both ways to call work, and can stop."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.manager import start_new_kernel

OPENED = """
from contextlib import ExitStack
from daruma import ScriptedChatModel, Settings, build_graph, open_postgres
opened = ExitStack()
postgres = opened.enter_context(open_postgres())
request = {"messages": [("user", "Say something")]}
thread = {"configurable": {"thread_id": "t"}}
slow = ScriptedChatModel(script=[{"wait": 60, "say": "late"}])
quick = ScriptedChatModel(script=[{"say": "There it is."}] * 2)
graph = build_graph(slow, settings=Settings(), persistence=postgres)
other = build_graph(quick, settings=Settings(), persistence=postgres)
"""
WATCHED = "for event in graph.stream(request, thread, stream_mode='custom'): print(event['type'])"
RUNS = {"sync": WATCHED, "async": f"async {WATCHED.replace('stream(', 'astream(')}"}
RESUMED = {
    "sync": "print(other.invoke(None, thread)['result'].output)",
    "async": "print((await other.ainvoke(None, thread))['result'].output)",
}
Cell = Callable[..., tuple[str, str]]
"""Runs a cell; returns what it prints, and the name of the exception that ends it."""


@pytest.fixture
def cell(tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cell]:
    """A kernel in a folder and on a database of its own."""
    monkeypatch.setenv("DARUMA_POSTGRES_URL", postgres_url)
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    manager, client = start_new_kernel(cwd=str(tmp_path))

    def run(source: str, *, stopped_at: str = "nowhere") -> tuple[str, str]:
        printed: list[str] = []

        def hear(message: dict[str, Any]) -> None:
            printed.append(message["content"].get("text", ""))
            if stopped_at in printed[-1]:
                manager.interrupt_kernel()
                client.kernel_info()  # an idle loop notices a signal with the next message only

        reply = client.execute_interactive(source, output_hook=hear, timeout=60)
        return "".join(printed), reply["content"].get("ename", "")

    try:
        assert run(OPENED) == ("", "")
        yield run
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@pytest.mark.long
def test_both_ways_to_call_work_in_a_cell(cell: Cell) -> None:
    """FA-03: the loop of the kernel turns while the machine's own does the work."""
    done = cell(
        "for one in (other.invoke(request, thread), await other.ainvoke(request, thread)):\n"
        "    print(one['result'].status)"
    )

    assert done == ("completed\ncompleted\n", "")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_cell_that_is_stopped_leaves_a_thread_that_goes_on(cell: Cell, way: str) -> None:
    """DU-01: the stop button ends the run, not the task; the same kernel takes it up again."""
    told, ended = cell(RUNS[way], stopped_at="model_call_started")
    resumed = cell(RESUMED[way])

    assert "task_completed" not in told
    assert ended in {"KeyboardInterrupt", "CancelledError"}
    assert resumed == ("There it is.\n", "")
