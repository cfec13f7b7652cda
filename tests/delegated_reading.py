"""What delegating saves of the caller's context: a task that reads 60 files, with and without.

``python -m tests.delegated_reading`` prints the published table. Tokens are estimates by our own
count: the model is scripted, and reads the same files either way.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from daruma import ScriptedChatModel, Settings, build_graph

FILES, AT_ONCE = 60, 10
TEXT = "".join(f"    value_{n} = compute({n}, offset={n * 7})\n" for n in range(60))
"""Of one file: some 2,500 characters."""


def reading(first: int) -> dict[str, Any]:
    """One answer that reads ten files."""
    paths = [f"module_{n:02}.py" for n in range(first, first + AT_ONCE)]
    args = [{"command": "view", "path": path} for path in paths]
    return {"calls": [{"name": "str_replace_editor", "args": each} for each in args]}


FOUND = "None of module_{} to module_{} reads the clock. " + "Each computes 60 values. " * 4


def alone() -> dict[str, Any]:
    """The task by one model that reads all files itself."""
    return {"main": [*map(reading, range(0, FILES, AT_ONCE)), {"say": "None reads the clock."}]}


def delegated() -> dict[str, Any]:
    """The same by six helpers at once, each of which reads ten files."""
    firsts = range(0, FILES, AT_ONCE)
    task = "Which of module_{} to module_{} read the clock? Answer in a sentence."
    given = {n: {"task": task.format(n, n + AT_ONCE - 1)} for n in firsts}
    return {
        "main": [
            {"calls": [{"name": "delegate", "args": given[n], "id": f"h{n}"} for n in firsts]},
            {"say": "None reads the clock."},
        ],
        **{f"main@h{n}": [reading(n), {"say": FOUND.format(n, n + AT_ONCE - 1)}] for n in firsts},
    }


def measured(script: dict[str, Any], folder: Path) -> tuple[int, int, int, int]:
    """Return the caller's last request, all its requests, everybody's, and the model calls."""
    given = {"team": {"delegate": True}, "evolution": {"enabled": False}}
    settings = Settings.model_validate(given)
    graph = build_graph(ScriptedChatModel(script=script), settings=settings)
    request = {"messages": [("user", "Which modules read the clock?")], "workspace": str(folder)}
    seen: list[dict[str, Any]] = [
        event
        for event in graph.stream(request, stream_mode="custom")
        if event["type"] == "model_call_completed"
    ]
    own = [event["input_tokens"] for event in seen if "member" not in event]
    return own[-1], sum(own), sum(event["input_tokens"] for event in seen), len(seen)


def main() -> None:
    """Print the table."""
    out = sys.stdout.write
    out("| 60 files read | caller's last request | all of the caller's | all | model calls |\n")
    out("|---|---|---|---|---|\n")
    with tempfile.TemporaryDirectory() as home:
        os.environ["DARUMA_DATA_DIR"] = f"{home}/data"
        folder = Path(home, "ws")
        folder.mkdir()
        for number in range(FILES):
            (folder / f"module_{number:02}.py").write_text(TEXT)
        for how, script in (("by one model", alone()), ("by six helpers", delegated())):
            row = " | ".join(f"{each:,}" for each in measured(script, folder))
            out(f"| {how} | {row} |\n")


if __name__ == "__main__":
    main()
