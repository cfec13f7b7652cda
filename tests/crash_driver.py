"""Runs one scripted task in children that are told when to die; see test_crash.py.

Usage: ``crash_driver.py URL FOLDER SCENE POINT...``. For each point one child is forked that is
killed with SIGKILL at that storage write (before it for an even point, after it for an odd one),
and then another that goes on to the end. A point of -1 is a run that nobody kills; in the scene
``paid`` the tool itself kills the first life: at -2 before it pays, at -3 after. At -4 the
validation command of a phase does, half-way, at -5 its rollback command. Prints a JSON line each.
"""

import asyncio
import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

from langgraph.types import Command

from daruma import Settings, aopen_postgres, build_graph
from daruma.graph.models.scripted import ScriptedChatModel
from daruma.graph.storage.database import Database
from daruma.graph.storage.leases import SIGNS_OF_LIFE
from daruma.graph.storage.postgres import Postgres
from daruma.graph.storage.saver import PostgresSaver
from daruma.state.interrupts import ReplyRefused

NEVER = -1
BEFORE_PAYING = -2
AFTER_PAYING = -3
IN_VALIDATION = -4
IN_ROLLBACK = -5
VIEW = {"name": "str_replace_editor", "args": {"command": "view", "path": "data.txt"}}
LOOK = {"name": "search", "args": {"pattern": "a"}}


def writing(text: str) -> dict[str, Any]:
    """A command that sets what it sets, so that running it again shows nowhere."""
    args = {"command": f"printf {text} > data.txt"}
    return {"calls": [{"name": "run_command", "args": args}]}


LOOP = {"calls": [{"name": "search", "args": {"pattern": "none"}}]}
CORRECTED: dict[str, Any] = {
    "strategy": "parameter-adjustment",
    "action": {"tool_name": "run_command", "parameters": {"command": "printf right > data.txt"}},
}
MENDED: dict[str, Any] = {
    "plan": [
        {"json": {"phases": [{"title": "Mend"}, {"title": "Look again", "depends_on": ["p1"]}]}}
    ],
    "main": [
        {"calls": [VIEW, LOOK]},
        writing("wrong"),
        {"say": "Done."},
        writing("right"),
        {"say": "Done now."},
        {"say": "It is right."},
    ],
    "reflect": [{"say": "It has to be right."}],
}
UNDONE: dict[str, Any] = {
    "plan": [
        {"json": {"phases": [{"title": "Mend", "rollback_command": "printf undone > data.txt"}]}}
    ],
    "main": [writing("wrong"), {"raise": "down"}, {"say": "Done."}, {"say": "Done again."}],
    "reflect": [{"say": "I see nothing wrong."}],
    "recovery": [{"say": "I have no idea."}],
}
FALLEN: dict[str, Any] = {
    "plan": [{"raise": "down"}, {"json": {"phases": [{"title": "Mend"}]}}],
    "main": [{"say": ""}, {"raise": "down"}, LOOP, LOOP, LOOP, LOOP, {"say": "Done."}],
    "recovery": [
        {"json": {"strategy": "retry", "confidence": 0.9}},
        {"json": CORRECTED | {"confidence": 0.6}},
        {"json": {"strategy": "escalate", "action": {"escalation_message": "What now?"}}},
        {"json": {"strategy": "alternative-tool", "confidence": 0.8}},
    ],
}
PAYING = {"calls": [{"name": "pay", "args": {"amount": 5}, "id": "pay"}, LOOK]}
PAID: dict[str, Any] = {
    "plan": [{"json": {"phases": [{"title": "Pay"}]}}],
    "main": [
        PAYING,
        {"calls": [{"name": "payy", "args": {"amount": "7"}, "id": "b"}]},
        {"say": "Paid."},
    ],
    "repair": [{"json": {"repairs": [{"tool_call_id": "b", "name": "pay"}]}}],
}
RIGHT, WRONG = "printf right > data.txt", "rm -f note; mkdir -p d; printf wrong > data.txt"


def deadly(number: int) -> str:
    """Shell text that kills whoever runs it, and itself, once: if it was told to."""
    return f'[ ! -e "$PWD".die{number} ] || {{ rm "$PWD".die{number}; kill -9 $PPID $$; }}'


def ruining() -> dict[str, Any]:
    args = {"command": WRONG}
    return {"calls": [{"name": "run_command", "args": args}]}


FAILING: dict[str, Any] = {
    "main": [ruining(), {"say": "Done."}, {"say": "Done again."}, writing("right"), {"say": "B."}],
    "reflect": [{"say": "I see nothing wrong."}],
}
RESTORED: dict[str, Any] = FAILING | {
    "plan": [
        {
            "json": {
                "phases": [
                    {
                        "id": "a",
                        "validation_command": f"printf half > data.txt; {deadly(4)}; false",
                        "rollback_command": f"printf undone > half.txt; {deadly(5)}",
                        "rollback": "snapshot",
                    },
                    {"id": "b"},
                ]
            }
        }
    ]
}
HELD: dict[str, Any] = FAILING | {
    "plan": [
        {
            "json": {
                "phases": [
                    {"id": "a", "rollback_command": f"printf x >> data.txt; {deadly(5)}; false"},
                    {"id": "b"},
                ]
            }
        }
    ]
}
TEAM: dict[str, Any] = {
    "plan": [
        {
            "json": {
                "phases": [
                    {"id": "a", "expert": "developer"},
                    {"id": "b", "expert": "tester"},
                    {"id": "c", "expert": "writer", "depends_on": ["a", "b"]},
                ]
            }
        }
    ],
    "main@a": [writing("right"), {"say": "A."}],
    "main@b": [
        {"calls": [{"name": "run_command", "args": {"command": "printf b > b.txt"}}]},
        {"say": "B."},
    ],
    "main@c": [
        {"calls": [{"name": "run_command", "args": {"command": "printf rightb > data.txt"}}]},
        {"say": "C."},
    ],
}
SCENES: dict[str, tuple[dict[str, Any], str]] = {
    "restored": (RESTORED, "allow"),
    "held": (HELD, "allow"),
    "team": (TEAM, "allow"),
    "mended": (MENDED, "allow"),
    "undone": (UNDONE, "confirm"),
    "paid": (PAID, "allow"),
    "fallen": (FALLEN, "confirm"),
}
"""Scripts, and the policy for their commands. Together they pass through every node."""


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
    """A saver that may die at each write."""

    async def aput(self, *args: Any, **kwargs: Any) -> Any:
        return await DEATH.over(super().aput(*args, **kwargs))

    async def aput_writes(
        self, config: Any, writes: Any, task_id: str, task_path: str = ""
    ) -> None:
        # LangGraph looks for `task_path` in the signature; without it results lose their order.
        await DEATH.over(super().aput_writes(config, writes, task_id, task_path))


class DeadlyDatabase(Database):
    """The same for leases, accepted replies and effects: writes like any other."""

    async def transact(self, work: Any) -> Any:
        if (task := asyncio.current_task()) and task.get_name() == SIGNS_OF_LIFE:
            return await super().transact(work)  # how many there are depends on the time
        return await DEATH.over(super().transact(work))


def graph_over(pg: Postgres, scene: str, folder: Path, point: int) -> Any:
    """Build the graph of a scripted task; its tool ``pay`` writes each payment into a ledger."""
    ledger = folder.with_suffix(".ledger")

    def pay(amount: int) -> str:
        """Pay an amount."""
        mortal = not ledger.exists()
        ledger.touch()
        if mortal and point == BEFORE_PAYING:
            os.kill(os.getpid(), signal.SIGKILL)
        with ledger.open("a") as book:
            book.write(f"{amount}\n")
        if mortal and point == AFTER_PAYING:
            os.kill(os.getpid(), signal.SIGKILL)
        return "paid"

    script, policy = SCENES[scene]
    checks = {"paid": [], "team": []}.get(scene, ["grep -q right data.txt"])
    settings = {
        "verification": {"commands": checks},
        "sandbox": {"require": "none"},  # proving one would be most of each life's time
        "tools": {"policy": {"run_command": policy, "pay": "confirm"}},
        "fallback_chain": {"recovery": {"wait_seconds": 0}},
    }
    model = ScriptedChatModel(script=script)
    return build_graph(model, [pay], Settings.model_validate(settings), persistence=pg)


def reply_to(question: Any, folder: Path) -> dict[str, Any]:
    """Say yes to whatever it is; about a payment in doubt, what the ledger says."""
    if question["type"] == "question" and "happened" in question.get("options", ()):
        amount = re.findall(r"pay\(amount=(\d+)", question["question"])[0]
        return {"answer": "happened" if amount in payments(folder) else "again"}
    if question["type"] == "question":
        return {"answer": "restore" if "options" in question else "Go on."}
    if question["type"] == "recovery_request":
        return {"decision": "approve"}
    if question["type"] == "spec_review_request":
        return {"decision": "confirm"}
    keys = ("approval_id", "digest")
    yes = [{key: each[key] for key in keys} for each in question["approvals"]]
    return {"decisions": [each | {"decision": "approve"} for each in yes]}


def payments(folder: Path) -> list[str]:
    """What the ledger says was paid."""
    ledger = folder.with_suffix(".ledger")
    return ledger.read_text().split() if ledger.exists() else []


async def run_to_the_end(graph: Any, folder: Path, config: Any) -> tuple[Any, int]:
    """Start the task, or go on with it from wherever it stands.

    Returns its last state, and how many calls a person was asked about whose outcome was unknown.
    """
    doubts = 0
    mode = "team_collab" if folder.name.startswith("team") else "plan_exec"
    request = {"messages": [("user", "Mend it")], "mode": mode, "workspace": str(folder)}
    while True:
        state = await graph.aget_state(config)
        if state.created_at is None:
            await graph.ainvoke(request, config)
        elif state.interrupts:
            (question,) = state.interrupts
            try:
                reply = reply_to(question.value, folder)
                doubts += reply.get("answer") in ("happened", "again")
                await graph.ainvoke(Command(resume={question.id: reply}), config)
            except ReplyRefused:  # it is answered: the life before this one had just done so
                await graph.ainvoke(None, config)
        elif state.tasks:
            await graph.ainvoke(None, config)
        else:
            return state, doubts


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
            "savepoints": [
                [each.id, bool(each.snapshot), without_ids(each.note)]
                for each in state.values["savepoints"]
            ],
            "notes": [without_ids(note) for note in result.notes],
            "replies": await replies_to(pg, folder.name) - doubts,
            "doubts": doubts,
            "paid": payments(folder),
        }
        keep(folder, seen, DEATH.writes)


def without_ids(text: str) -> str:
    """A text without the ids of snapshots, which differ from thread to thread."""
    return re.sub(r"[0-9a-f]{16}", "ID", text)


def files_in(folder: Path) -> dict[str, str]:
    """All that is there, by name; a folder has no text."""
    return {path.name: path.read_text() if path.is_file() else "" for path in folder.iterdir()}


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


def forked(url: str, scene: str, folder: Path, point: int) -> int:
    """Live in a child process; return what it ended with, negative for a signal."""
    pid = os.fork()
    if pid == 0:
        asyncio.run(live(url, scene, folder, point))
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main(url: str, home: Path, scene: str, points: list[int]) -> None:
    """Live once for each point, and once more where that ended early."""
    for point in points:
        # Names of one length: the folder's path is in the prompts, whose tokens count.
        folder = home / f"{scene}{point:04}"
        folder.mkdir()
        (folder / "data.txt").write_text("a")
        (folder / "note").write_text("untracked")
        if point in (IN_VALIDATION, IN_ROLLBACK):
            folder.with_name(f"{folder.name}.die{-point}").touch()
        ended = forked(url, scene, folder, point)
        if ended:
            forked(url, scene, folder, NEVER)
        seen, writes = json.loads(folder.with_suffix(".json").read_text())
        life = {"point": point, "ended": ended, "seen": seen, "writes": writes}
        sys.stdout.write(json.dumps(life) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], [int(point) for point in sys.argv[4:]])
