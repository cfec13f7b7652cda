"""What a task costs on a thread that has had many, and what it costs to look at that thread."""

import json
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from langchain_core.runnables import RunnableConfig
from tests.benchmarks.ground import Ground
from tests.benchmarks.pairs import Spread, in_turns, ratios
from tests.benchmarks.running import Spent, awaited
from tests.benchmarks.start import ENGINE, Home
from tests.benchmarks.table import Options, Table

from daruma import ScriptedChatModel, build_graph

TASKS: Final = 300
STRETCH: Final = 10
"""Tasks that are taken together: those around the 10th, the middle, and the last."""

_HEAD: Final = ("a task on a thread", "ms", "of a processor", "processor, of the 10th")
_LOOK: Final = ("a look at it", "ms", "of a processor", f"processor, of `{ENGINE}`")
_TOLD: Final = (
    "One thread on Postgres, {tasks} tasks of one journalled call each, asynchronous caller, "
    "durability `sync`; medians of {stretch} tasks around each (lowest-highest)."
)


def measure(ground: Ground, options: Options) -> list[Table]:
    """Run task after task on one thread, then look at it in processes of their own."""
    tasks = options.steps or TASKS
    spent = [*_run(ground, "many", tasks)]
    _ = [*_run(ground, "one", 1)]
    marks = (STRETCH, tasks // 2, tasks)
    parts = {at: spent[max(1, at - STRETCH) : at] for at in marks}
    first = [each.processor for each in parts[marks[0]]]
    rows = [
        (
            f"the {at}th",
            Spread.of(each.clock for each in part).text(),
            Spread.of(each.processor for each in part).text(),
            f"{Spread.of(e.processor for e in part).median / Spread.of(first).median:.2f}",
        )
        for at, part in parts.items()
    ]
    samples = {"clock": [e.clock for e in spent], "processor": [e.processor for e in spent]}
    told = _TOLD.format(tasks=tasks, stretch=STRETCH)
    return [
        Table("tasks", "Task after task on one thread", _HEAD, rows, told, samples),
        _looked(ground, options, tasks),
    ]


def _run(ground: Ground, thread: str, tasks: int) -> Sequence[Spent]:
    call = {"calls": [{"name": "save", "args": {"text": "x" * 500}}]}
    model = ScriptedChatModel(script={"main": [call, {"say": "Saved."}] * tasks})
    seen = []

    def save(text: str) -> str:
        """Save a text."""
        return f"{len(text)} characters are saved."

    stores = ground.stores["async"].daruma
    graph = build_graph(model, [save], {"mode": "react"}, stores)
    config = RunnableConfig(configurable={"thread_id": thread})
    for number in range(tasks):
        asked: Any = {"messages": [("user", f"Save text {number}.")]}
        clock, worked = time.perf_counter(), time.process_time()
        out = awaited(ground, graph.ainvoke(asked, config, durability="sync"))
        took = time.perf_counter() - clock, time.process_time() - worked
        assert out["result"].completed, out["result"]
        ground.runner.run(graph.evolution.adrain())
        seen.append(Spent(1000 * took[0], 1000 * took[1]))
    return seen


def _looked(ground: Ground, options: Options, tasks: int) -> Table:
    with tempfile.TemporaryDirectory(prefix="daruma-tasks-") as folder:
        home = Home(Path(folder), ground.urls["daruma"])
        (home.folder / "script.json").write_text(json.dumps({}), encoding="utf-8")
        show = ("-m", "daruma", "show")
        ways = {
            ENGINE: partial(home.spent, ["-c", ENGINE]),
            f"daruma show, {tasks} tasks, --tail 5": partial(
                home.spent, [*show, "many", "--tail", "5"]
            ),
            f"daruma show, {tasks} tasks": partial(home.spent, [*show, "many"]),
            "daruma show, 1 task": partial(home.spent, [*show, "one"]),
        }
        seen = in_turns(ways, options.pairs, options.seed, warm=options.warm)
    engine = [each.processor for each in seen[ENGINE]]
    rows = [
        (
            f"`{name}`",
            Spread.of(e.clock for e in each).text(0),
            Spread.of(e.processor for e in each).text(0),
            ratios([e.processor for e in each], engine).text(2),
        )
        for name, each in seen.items()
    ]
    return Table("tasks", "A look at that thread", _LOOK, rows, "The same thread.", {})
