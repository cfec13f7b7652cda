"""How long it takes until a command of ours has done its work, in a process of its own."""

import json
import os
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import Final

from tests.benchmarks.ground import Ground
from tests.benchmarks.pairs import Spread, in_turns, ratios
from tests.benchmarks.running import Spent
from tests.benchmarks.table import Options, Table

_SCRIPT: Final = {
    "plan": [{"json": {"phases": [{"id": "p1", "title": "Look"}]}}],
    "main": [{"say": "Looked."}],
}
_IMPORTS: Final = ("langgraph.graph", "langchain_openai", "langchain.agents")
_WAITING: Final = 3
ENGINE: Final = "import langgraph.graph"
_HEAD: Final = ("process", "ms", "of a processor", f"processor, of `{ENGINE}`")
_TOLD: Final = (
    "From start to end of a fresh process, files cached by the system; medians of {pairs} rounds "
    "in shuffled order (lowest-highest). The database is a running one; the thread waits for its "
    "plan to be confirmed, and is completed by a scripted model."
)


@dataclass(frozen=True)
class Home:
    """A folder that commands are started in, on a database."""

    folder: Path
    url: str

    def spent(self, command: Sequence[str], code: int = 0) -> Spent:
        """Start a process, and return the milliseconds until its end."""
        began = time.perf_counter()
        with Popen(
            [sys.executable, *command],
            cwd=self.folder,
            env=self._environment(),
            stdout=DEVNULL,
            stderr=PIPE,
            text=True,
        ) as process:
            said = process.stderr.read() if process.stderr else ""
            _, status, usage = os.wait4(process.pid, 0)
            took = time.perf_counter() - began
            process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == code, f"{command}: {said}"
        return Spent(1000 * took, 1000 * (usage.ru_utime + usage.ru_stime))

    def waiting_thread(self) -> str:
        """Have a thread that waits for its plan to be confirmed."""
        thread = f"t{uuid.uuid4().hex}"
        run = ("run", "Look", "--mode", "plan_exec", "--model", "scripted:script.json")
        self.spent(["-m", "daruma", *run, "--thread", thread], _WAITING)
        return thread

    def _environment(self) -> dict[str, str]:
        theirs = ("DARUMA_", "OPENAI_", "LANG")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(theirs)}
        data = str(self.folder / "data")
        return kept | {"DARUMA_POSTGRES_URL": self.url, "DARUMA_DATA_DIR": data}


def measure(ground: Ground, options: Options) -> list[Table]:
    """Start each process some times."""
    with tempfile.TemporaryDirectory(prefix="daruma-start-") as folder:
        home = Home(Path(folder), ground.urls["daruma"])
        (home.folder / "script.json").write_text(json.dumps(_SCRIPT), encoding="utf-8")
        seen = in_turns(_ways(home), options.pairs, options.seed, warm=options.warm)
    clock = {name: [each.clock for each in rounds] for name, rounds in seen.items()}
    worked = {name: [each.processor for each in rounds] for name, rounds in seen.items()}
    rows = [
        (
            f"`{name}`",
            Spread.of(clock[name]).text(0),
            Spread.of(worked[name]).text(0),
            ratios(worked[name], worked[ENGINE]).text(2),
        )
        for name in seen
    ]
    told = _TOLD.format(pairs=options.pairs)
    samples = {f"{name}: clock": each for name, each in clock.items()}
    samples |= {f"{name}: processor": each for name, each in worked.items()}
    return [Table("start", "Cold start", _HEAD, rows, told, samples)]


def _ways(home: Home) -> dict[str, Callable[[], Spent]]:
    waiting = [home.waiting_thread()]
    plain = {"python -c pass": partial(home.spent, ["-c", "pass"])}
    imports = {f"import {name}": partial(home.spent, ["-c", f"import {name}"]) for name in _IMPORTS}
    return {
        **plain,
        **imports,
        "daruma --help": partial(home.spent, ["-m", "daruma", "--help"]),
        "daruma threads": partial(home.spent, ["-m", "daruma", "threads"]),
        "daruma show THREAD": partial(home.spent, ["-m", "daruma", "show", waiting[0]]),
        "daruma answer THREAD --confirm": partial(_answered, home, waiting),
    }


def _answered(home: Home, waiting: list[str]) -> Spent:
    thread = waiting.pop() if waiting else home.waiting_thread()
    return home.spent(["-m", "daruma", "answer", thread, "--confirm"])
