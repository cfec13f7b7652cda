"""Runs one scripted task in children that are told when to die; see test_crash.py.

Usage: ``crash_driver.py URL FOLDER POINT...``. For each point one child is forked that is killed
with SIGKILL at that storage write (before it for an even point, after it for an odd one), and then
another that goes on to the end. A point of -1 is a run that nobody kills. Prints a JSON line each.
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from langgraph.types import Command

from daruma import Settings, aopen_postgres, build_graph
from daruma.graph.models.scripted import ScriptedChatModel
from daruma.graph.storage.postgres import Postgres
from daruma.graph.storage.saver import PostgresSaver

NEVER = -1
VIEW = {"name": "str_replace_editor", "args": {"command": "view", "path": "data.txt"}}
LOOK = {"name": "search", "args": {"pattern": "a"}}
SCRIPT: dict[str, Any] = {
    "plan": [
        {"json": {"phases": [{"title": "Mend"}, {"title": "Look again", "depends_on": ["p1"]}]}}
    ],
    "main": [
        {"calls": [VIEW, LOOK]},
        {"calls": [{"name": "run_command", "args": {"command": "printf wrong > data.txt"}}]},
        {"say": "Done."},
        {"calls": [{"name": "run_command", "args": {"command": "printf right > data.txt"}}]},
        {"say": "Done now."},
        {"say": "It is right."},
    ],
    "reflect": [{"say": "It has to be right."}],
}
SETTINGS = {
    "verification": {"commands": ["grep -q right data.txt"]},
    "tools": {"policy": {"run_command": "allow"}},
}


class Deadly(PostgresSaver):
    """A saver that kills its process at one of its writes."""

    point = NEVER
    writes = 0

    async def aput(self, *args: Any, **kwargs: Any) -> Any:
        return await self._deadly(super().aput(*args, **kwargs))

    async def aput_writes(
        self, config: Any, writes: Any, task_id: str, task_path: str = ""
    ) -> None:
        # LangGraph looks for `task_path` in the signature; without it results lose their order.
        await self._deadly(super().aput_writes(config, writes, task_id, task_path))

    async def _deadly(self, write: Any) -> Any:
        number, self.writes = self.writes, self.writes + 1
        self._die_at(2 * number)
        done = await write
        self._die_at(2 * number + 1)
        return done

    def _die_at(self, point: int) -> None:
        if point == self.point:
            os.kill(os.getpid(), signal.SIGKILL)


def graph_over(pg: Postgres) -> Any:
    """Build the graph of the scripted task."""
    settings = Settings.model_validate(SETTINGS)
    return build_graph(ScriptedChatModel(script=SCRIPT), settings=settings, persistence=pg)


async def run_to_the_end(graph: Any, folder: Path, config: Any) -> Any:
    """Start the task, or go on with it from wherever it stands; return its last state."""
    request = {"messages": [("user", "Mend it")], "mode": "plan_exec", "workspace": str(folder)}
    while True:
        state = await graph.aget_state(config)
        if state.created_at is None:
            await graph.ainvoke(request, config)
        elif state.interrupts:
            reply = {state.interrupts[0].id: {"decision": "confirm"}}
            await graph.ainvoke(Command(resume=reply), config)
        elif state.tasks:
            await graph.ainvoke(None, config)
        else:
            return state


async def live(url: str, folder: Path, thread: str, point: int) -> None:
    """Run in this process, dying at the point; else leave what was seen for the parent."""
    async with aopen_postgres(url) as pg:
        saver: Any = pg.checkpointer
        saver.__class__ = Deadly
        saver.point = point
        state = await run_to_the_end(
            graph_over(pg), folder, {"configurable": {"thread_id": thread}}
        )
        result = state.values["result"]
        seen = {
            "status": result.status,
            "budgets": result.budgets,
            "usage": result.usage,
            "phases": [phase.status for phase in result.phases],
            "messages": [[m.type, m.text] for m in state.values["messages"]],
            "file": (folder / "data.txt").read_text(),
        }
        keep(folder, thread, seen, saver.writes)


def keep(folder: Path, thread: str, seen: dict[str, Any], writes: int) -> None:
    """Leave what was seen for the parent."""
    Path(folder.parent, f"{thread}.json").write_text(json.dumps([seen, writes]))


def forked(url: str, folder: Path, thread: str, point: int) -> int:
    """Live in a child process; return what it ended with, negative for a signal."""
    pid = os.fork()
    if pid == 0:
        asyncio.run(live(url, folder, thread, point))
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main(url: str, home: Path, points: list[int]) -> None:
    """Live once for each point, and once more where that ended early."""
    for point in points:
        thread = f"t{point:04}"  # of one length: paths are in the prompts, whose tokens count
        folder = home / thread
        folder.mkdir()
        (folder / "data.txt").write_text("a")
        ended = forked(url, folder, thread, point)
        if ended:
            forked(url, folder, thread, NEVER)
        seen, writes = json.loads((home / f"{thread}.json").read_text())
        life = {"point": point, "ended": ended, "seen": seen, "writes": writes}
        sys.stdout.write(json.dumps(life) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), [int(point) for point in sys.argv[3:]])
