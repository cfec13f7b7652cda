"""Runs one scripted task in children that are told when to die; see sweep.py.

Usage: ``python -m tests.crash.driver URL FOLDER SCENE WHEN...``. For each ``WHEN`` one child is
forked that is killed with SIGKILL, and then another that goes on to the end. A number is a point:
a write to the database, before it for an even one, after it for an odd one; -1 is a run that nobody
kills; in the scene ``paid`` the tool itself kills the first life: at -2 before it pays, at -3
after. ``~0.25`` is a moment: so many seconds after the run has begun. Prints a JSON line each.
"""

import asyncio
import json
import os
import re
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

from langgraph.types import Command
from tests.crash.scenes import (
    NEVER,
    SCENES,
    Scene,
    graph_over,
    payments,
    reply_to,
)
from tests.git_ground import git, repository

from daruma import aopen_postgres
from daruma.graph.storage import Database, Postgres, PostgresSaver
from daruma.graph.storage._leases import SIGNS_OF_LIFE
from daruma.graph.storage._saving import STORING_APART
from daruma.state.interrupts import ReplyRefused

DOUBTS = ("happened", "again")
"""What a person says of a call whose outcome is unknown."""


class Death:
    """Kills this process at one of its writes."""

    point = NEVER
    writes = 0

    async def over(self, write: Any) -> Any:
        number, self.writes = self.writes, self.writes + 1
        self._at(2 * number)
        done = await write
        self._at(2 * number + 1)
        return done

    def _at(self, point: int) -> None:
        if point == self.point:
            os.kill(os.getpid(), signal.SIGKILL)


DEATH = Death()


class Deadly(PostgresSaver):
    """A saver that may die where it takes over what a task wrote; it is stored after that."""

    async def aput_writes(
        self, config: Any, writes: Any, task_id: str, task_path: str = ""
    ) -> None:
        # LangGraph looks for `task_path` in the signature; without it results lose their order.
        await DEATH.over(super().aput_writes(config, writes, task_id, task_path))


class DeadlyDatabase(Database):
    """The same for checkpoints, leases, accepted replies and effects: each is one write."""

    async def transact(self, work: Any) -> Any:
        if (task := asyncio.current_task()) and task.get_name() == SIGNS_OF_LIFE:
            return await super().transact(work)  # how many there are depends on the time
        return await DEATH.over(super().transact(work))

    async def statement(self, statement: str, values: Any) -> Any:
        if (task := asyncio.current_task()) and task.get_name() == STORING_APART:
            return await super().statement(statement, values)  # so is this
        return await DEATH.over(super().statement(statement, values))


async def run_to_the_end(graph: Any, folder: Path, config: Any) -> tuple[Any, int]:
    """Start the task, or go on with it from wherever it stands.

    Returns its last state, and how many calls a person was asked about whose outcome was unknown.
    """
    doubts = 0
    mode = scene_of(folder).mode
    request = {"messages": [("user", "Mend it")], "mode": mode, "workspace": str(folder)}
    while True:
        state = await graph.aget_state(config)
        if state.created_at is None:
            await graph.ainvoke(request, config)
        elif state.interrupts:
            await say(graph, folder, config, state)
            replies = {each.id: reply_to(each.value, folder) for each in state.interrupts}
            doubts += sum(each.get("answer") in DOUBTS for each in replies.values())
            try:
                await graph.ainvoke(Command(resume=replies), config)
            except ReplyRefused:  # it is answered: the life before this one had just done so
                await graph.ainvoke(None, config)
        elif state.tasks:
            await graph.ainvoke(None, config)
        else:
            return state, doubts


async def say(graph: Any, folder: Path, config: Any, state: Any) -> None:
    """Say to the thread what the scene has for its question, unless an earlier life did."""
    for asked in state.interrupts:
        for text, more in scene_of(folder).said.get(asked.value["type"], ()):
            waiting = await graph.checkpointer.steering.read(folder.name)
            told = [*(m.text for m in state.values["messages"]), *(each.text for each in waiting)]
            if not any(each.startswith(text) for each in told):
                await graph.asteer(config, text, **more)


def scene_of(folder: Path) -> Scene:
    """The scene that a folder is named after."""
    return SCENES[folder.name.rstrip("~-0123456789")]


async def live(url: str, scene: str, folder: Path, point: int) -> None:
    """Run in this process, dying at the point; else leave what was seen for the parent."""
    config = {"configurable": {"thread_id": folder.name}}
    async with aopen_postgres(url) as pg:
        saver: Any = pg.checkpointer
        saver.__class__ = Deadly
        object.__setattr__(saver.database, "__class__", DeadlyDatabase)
        DEATH.point = point
        graph = graph_over(pg, scene, folder, point)
        state, doubts = await run_to_the_end(graph, folder, config)
        result = state.values["result"]
        history = [past async for past in graph.aget_state_history(config)]
        seen = {
            "status": result.status,
            "nodes": sorted({task.name for past in history for task in past.tasks}),
            "code": result.error_struct and result.error_struct.error_code,
            "budgets": result.budgets,
            "usage": result.usage,
            "phases": [phase.status for phase in result.phases],
            "messages": [[m.type, m.text] for m in state.values["messages"]],
            "file": (folder / "data.txt").read_text(),
            "files": await asyncio.to_thread(files_in, folder),
            "git": await asyncio.to_thread(git_of, folder),
            "savepoints": [
                [each.id, bool(each.snapshot), without_ids(each.note)]
                for each in state.values["savepoints"]
            ],
            "notes": [without_ids(note) for note in result.notes],
            "replies": await replies_to(pg, folder.name) - doubts,
            "doubts": doubts,
            "paid": sorted(payments(folder)),
        }
        keep(folder, seen, DEATH.writes)


def without_ids(text: str) -> str:
    """A text without the ids of snapshots, which differ from thread to thread."""
    return re.sub(r"[0-9a-f]{16}", "ID", text)


def files_in(folder: Path) -> dict[str, str]:
    """All that is there, by name; a folder has no text."""
    return {path.name: path.read_text() if path.is_file() else "" for path in folder.iterdir()}


def git_of(folder: Path) -> list[str]:
    """What its repository holds: commits with their branches, what is changed, and worktrees."""
    log, status = ["log", "--all", "--format=%s %D"], ["status", "--porcelain"]
    said = [git(folder, *each).decode() for each in (log, status, ["worktree", "list"])]
    return [*said[:2], str(len(said[2].splitlines()))]


async def replies_to(pg: Postgres, thread: str) -> int:
    """How many replies were accepted on a thread: asked twice, a question would have two."""
    async with pg.pool.connection() as connection:
        found = await connection.execute(
            "SELECT count(*) AS n FROM daruma_replies WHERE thread_id = %s", [thread]
        )
        row = await found.fetchone()
        return row["n"] if row else 0


def keep(folder: Path, seen: dict[str, Any], writes: int) -> None:
    """Leave what was seen for the parent."""
    folder.with_suffix(".json").write_text(json.dumps([seen, writes]))


def forked(url: str, scene: str, folder: Path, point: int, moment: float | None = None) -> int:
    """Live in a child process; return what it ended with, negative for a signal."""
    pid = os.fork()
    if pid == 0:
        asyncio.run(live(url, scene, folder, point))
        os._exit(0)
    if moment is not None:
        time.sleep(moment)  # the moment is what is tried
        os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main(url: str, home: Path, scene: str, deaths: list[str]) -> None:
    """Live once for each death, and once more where that ended early.

    Each time in a repository with one commit, the same for all, and a file that git does not know.
    """
    begun = home / f".repository-{os.getpid()}"
    begun.mkdir()
    (begun / "data.txt").write_text("a")
    repository(begun)
    for number, when in enumerate(deaths):
        moment = float(when[1:]) if when.startswith("~") else None
        point = NEVER if moment is not None else int(when)
        # Names of one length: the folder's path is in the prompts, whose tokens count.
        named = f"~{os.getpid() % 1000:03}{number:03}" if moment is not None else f"{point:07}"
        folder = home / f"{scene}{named}"
        shutil.copytree(begun, folder)
        (folder / "note").write_text("untracked")
        began = time.monotonic()
        ended = forked(url, scene, folder, point, moment)
        seconds = time.monotonic() - began
        if ended:
            forked(url, scene, folder, NEVER)
        seen, writes = json.loads(folder.with_suffix(".json").read_text())
        life = {"when": when, "ended": ended, "seen": seen, "writes": writes, "seconds": seconds}
        sys.stdout.write(json.dumps(life) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4:])
