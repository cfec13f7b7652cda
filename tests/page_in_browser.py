"""The page of a long run in a real browser: ``python -m tests.page_in_browser [FOLDER]``.

Runs 1,000 steps under a script on Postgres, 500 model calls and 500 tool calls, renders the page in
Chromium without a window, and says how long its script ran and what it asked of the network.
"""

import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.browser import opened
from tests.parts import settings
from tests.scripted_runs import call, calls, say

from daruma.graph.build import build_graph
from daruma.graph.models import ScriptedChatModel
from daruma.graph.storage import open_postgres
from daruma.graph.storage._embedded import embedded_postgres
from daruma.graph.timeline import Timeline

HOSTILE = "</script><img src=x onerror=alert(1)> \u202egpj.exe \x1b[31m 漢字 שלום " + "x" * 300


def long_run(url: str, answers: int, each: int = 1) -> tuple[Timeline, float]:
    """Run so many answers with so many calls each; return the timeline, and seconds to read it."""
    script = [calls(*(call("note", text=f"{n}.{m}") for m in range(each))) for n in range(answers)]
    budgets = {"max_steps": answers + 1, "think": answers + 1}
    given = settings(
        budgets=budgets, evolution={"enabled": False}, tools={"max_calls_per_turn": 100}
    )

    def note(text: str) -> str:
        """Take a note."""
        return f"noted {text}\n{HOSTILE}"

    with open_postgres(url) as postgres:
        model = ScriptedChatModel(script={"main": [*script, say("All is noted.")]})
        graph: Any = build_graph(model, [note], given, postgres)
        config: Any = {"configurable": {"thread_id": "long"}, "recursion_limit": 10_000}
        graph.invoke({"messages": [("user", "Take notes </title>")], "mode": "react"}, config)
        began = time.perf_counter()
        return graph.timeline(config), time.perf_counter() - began


@dataclass(frozen=True)
class Seen:
    """What a browser made of a page. Times are in seconds."""

    script: float
    layout: float
    requested: Sequence[str]
    complaints: Sequence[str]
    came_to_a_host: bool
    values: Mapping[str, Any]


_TRIED = {
    "rows": "document.querySelectorAll('#timeline li').length",
    "images": "document.images.length",
    "found": "(() => {const s=document.getElementById('search'); s.value='noted 7.0';"
    "s.dispatchEvent(new Event('input')); return found.textContent})()",
    "all": "(() => {const s=document.getElementById('search'); s.value='';"
    "s.dispatchEvent(new Event('input'));"
    "return [...document.querySelectorAll('#timeline li')].filter(r => !r.hidden).length})()",
    "filtered": "(() => {document.querySelector('[data-kind=tool]').click();"
    "return [...document.querySelectorAll('#timeline .k-tool')]"
    ".filter(r => getComputedStyle(r).display != 'none').length})()",
}


def seen(page: Path, shot: Path | None = None) -> Seen:
    """Open a page, search and filter in it, and return what that took and asked for."""
    with opened() as tab:
        tab.open(page)
        if shot:
            tab.screenshot(shot)
        values = {name: tab.value(expression) for name, expression in _TRIED.items()}
        return Seen(
            tab.metric("ScriptDuration"),
            tab.metric("LayoutDuration") + tab.metric("RecalcStyleDuration"),
            tab.requested,
            tab.complaints,
            tab.came_to_a_host(within=0.5),
            values,
        )


def main() -> None:
    """Run, render, and print the figures."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    server = Path(tempfile.mkdtemp())
    server.chmod(0o755)
    with embedded_postgres(server) as url:
        timeline, seconds = long_run(url, 500)
    page = folder / "page.html"
    page.write_text(timeline.page(), encoding="utf-8")
    found = seen(page, folder / "page.png")
    sys.stdout.write(
        f"{len(timeline.moments)} moments, read in {seconds:.2f} s; page {page} of "
        f"{page.stat().st_size / 1e6:.1f} MB\nscript {found.script:.3f} s, style and layout "
        f"{found.layout:.3f} s; requests {[*found.requested]}; hosts "
        f"{found.came_to_a_host}; console {[*found.complaints]}; {found.values}\n"
    )


if __name__ == "__main__":
    main()
