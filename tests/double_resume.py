"""Two processes resume one thread at the same moment, many times: exactly one of them runs (DU-03).

Usage: ``python -m tests.double_resume [TIMES]``; 100 times by default. Prints one line.
"""

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.scripted_runs import call, calls, say

from daruma import ScriptedChatModel, Settings, build_graph, open_postgres
from daruma.graph.storage import Postgres
from daruma.graph.storage._embedded import embedded_postgres
from daruma.state.errors import ThreadBusy

ROOT = Path(__file__).parents[1]
SCRIPT = {"main": [calls(call("note", text="x")), calls(call("note", text="y")), say()]}


def graph_over(pg: Postgres, ledger: Path) -> Any:
    """Build a graph whose tool writes into a ledger."""

    def note(text: str) -> str:
        """Note it."""
        with ledger.open("a") as book:
            book.write(f"{text}\n")
        return text

    return build_graph(ScriptedChatModel(script=SCRIPT), [note], Settings(), persistence=pg)


def ledger_of(home: Path, thread: str) -> Path:
    return home / f"{thread}.ledger"


def resume_for_ever(url: str, home: Path) -> None:
    """Resume each thread that is named, at once; say what came of it."""
    with open_postgres(url) as pg:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        for line in sys.stdin:
            thread = line.strip()
            config = {"configurable": {"thread_id": thread}}
            try:
                graph_over(pg, ledger_of(home, thread)).invoke(None, config)
                said = "ran"
            except ThreadBusy:
                said = "busy"
            sys.stdout.write(json.dumps(said) + "\n")
            sys.stdout.flush()


@contextmanager
def resumers(url: str, home: Path) -> Iterator[list["subprocess.Popen[str]"]]:
    """Have two processes ready."""
    command = [sys.executable, "-m", "tests.double_resume", url, str(home)]
    pipe = subprocess.PIPE
    both = [
        subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) for _ in range(2)
    ]
    for each in both:
        assert each.stdout
        each.stdout.readline()
    yield both
    for each in both:
        each.communicate()


def doubled(url: str, home: Path, times: int) -> Counter[str]:
    """Count what came of it: what the two said, and how often the tools ran."""
    seen: Counter[str] = Counter()
    with open_postgres(url) as pg, resumers(url, home) as both:
        for number in range(times):
            thread = f"t{number}"
            cut_short(pg, home, thread)
            for each in both:
                assert each.stdin
                each.stdin.write(f"{thread}\n")
            for each in both:
                assert each.stdin
                each.stdin.flush()
            said = sorted(json.loads(each.stdout.readline()) for each in both if each.stdout)
            noted = ledger_of(home, thread).read_text().split()
            seen[" and ".join(said)] += 1
            seen["tools ran once" if noted == ["x", "y"] else f"tools ran {noted}"] += 1
    return seen


def cut_short(pg: Postgres, home: Path, thread: str) -> None:
    """Leave a thread before its first tool."""
    config = {"configurable": {"thread_id": thread}}
    request = {"messages": [("user", "Note it")]}
    parts = graph_over(pg, ledger_of(home, thread)).stream(request, config, stream_mode="updates")
    while "main" not in next(parts):
        pass
    parts.close()


def main(times: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with embedded_postgres(Path(folder)) as url:
            seen = doubled(url, Path(folder), times)
    sys.stdout.write(f"{times} threads, each resumed by two processes at once: {dict(seen)}\n")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        resume_for_ever(sys.argv[1], Path(sys.argv[2]))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
