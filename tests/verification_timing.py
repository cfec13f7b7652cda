"""Times a verification beside plain pytest: ``python -m tests.verification_timing [ROUNDS]``.

All take turns on workspaces with one trivial test, in the best sandbox that this machine has, which
is open already. Plain pytest runs in the same environment, outside of it and in it. What snapshots,
the linter and the counting of tests add is told apart. Milliseconds are medians.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.parts import a_context, a_state, a_task, settings

from daruma.state.channels import State
from daruma.tools.commands import command_environment
from daruma.tools.context import Context
from daruma.tools.rollback import write_savepoint
from daruma.tools.sandbox import open_best
from daruma.tools.verification import run_all_checks

ROUNDS: Final = 20
TEST: Final = "def test_it():\n    assert True\n"

Timed = Callable[[], Awaitable[object]]


async def plain(work: Path, **more: str) -> None:
    """Run pytest as anybody would."""
    env = command_environment(os.environ, work, Path(sys.executable).parent) | more
    run = partial(subprocess.run, ["pytest", "-x", "-q"], cwd=work, env=env)
    await asyncio.to_thread(run, capture_output=True, check=True)


async def task(work: Path, *, snapshots: bool, changes: bool) -> tuple[State, Context]:
    """Begin a task in a workspace, and change a test file in it, if that is asked for."""
    context = replace(
        a_context(given=settings(rollback={"snapshots": snapshots})), open_sandbox=open_best
    )
    begun = a_task(workspace=str(work))
    written = await write_savepoint(begun, "task", context)
    if changes:
        (work / "test_it.py").write_text(TEST + "\n")
    return a_state(task=begun, savepoints=written.savepoints), context


async def ways(top: Path) -> dict[str, Timed]:
    """Return what is timed, by its name."""

    def workspace(name: str, **files: str) -> Path:
        (top / name).mkdir()
        for each, text in {"test_it": TEST, **files}.items():
            (top / name / f"{each}.{'toml' if each == 'ruff' else 'py'}").write_text(text)
        return top / name

    async def verification(name: str, *, snapshots: bool, changes: bool, **files: str) -> Timed:
        work = workspace(name, **files)
        state, context = await task(work, snapshots=snapshots, changes=changes)
        return partial(green, state, context)

    inside = workspace("inside")
    sandbox = await open_best()

    async def confined() -> None:
        line = "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 pytest -x -q"
        await sandbox.run(line, workspace=inside, timeout=60)

    alone = partial(plain, workspace("plain"), PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    found: dict[str, Timed] = {
        "plain pytest": alone,
        "plain pytest, in the sandbox": confined,
        "plain pytest, with the plugins of Daruma's environment": partial(plain, top / "plain"),
    }
    kinds: dict[str, dict[str, Any]] = {
        "verification": {"snapshots": True, "changes": False},
        "verification, no snapshots": {"snapshots": False, "changes": False},
        "verification, tests counted": {"snapshots": True, "changes": True},
        "verification, ruff": {"snapshots": True, "changes": False, "ruff": ""},
    }
    for name, kind in kinds.items():
        found[name] = await verification(name.replace(" ", "-"), **kind)
    return found


async def green(state: State, context: Context) -> None:
    """Verify; raises AssertionError for anything but green."""
    found = await run_all_checks(state, context)
    if found.outcome != "passed":
        raise AssertionError(found.summary)


async def main(rounds: int) -> None:
    """Time all in turns, and print the table."""
    await open_best()
    with tempfile.TemporaryDirectory() as top:
        os.environ["DARUMA_DATA_DIR"] = str(Path(top, "data"))
        timed = await ways(Path(top))
        took: dict[str, list[float]] = {name: [] for name in timed}
        for number in range(rounds + 1):
            for name, way in timed.items():
                began = time.perf_counter()
                await way()
                if number:  # the first is to warm up
                    took[name].append(time.perf_counter() - began)
    ms = {name: statistics.median(each) * 1000 for name, each in took.items()}
    for name, each in ms.items():
        print(f"{each:8.0f} ms  {each / ms['plain pytest']:5.2f}  {name}")  # noqa: T201
    whole = ms["verification"]
    for what, more in {
        "snapshots": whole - ms["verification, no snapshots"],
        "counting of tests, where a test file has changed": ms["verification, tests counted"]
        - whole,
        "ruff": ms["verification, ruff"] - whole,
    }.items():
        print(f"{more:+8.0f} ms         {what}")  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS))
