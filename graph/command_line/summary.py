"""How a task ended, on one screen: what was done, how it was checked, what it took."""

import shlex
from collections.abc import Sequence

from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from daruma.graph.command_line.paper import Mark, Paper
from daruma.graph.command_line.printable import shown
from daruma.graph.durations import duration
from daruma.state.result import TaskResult
from daruma.state.savepoint import Savepoint
from daruma.state.verification import excerpt

_NAMES = 9
_EXCERPT = 1500
"""Characters of what the failing checks said."""

_MARKS: dict[str | None, Mark] = {"completed": "ok", "pending": "note", "running": "note"}


def print_summary(
    paper: Paper, thread: str, result: TaskResult, savepoints: Sequence[Savepoint] = ()
) -> None:
    """Print a result. Its texts come from models and tools: nothing in them is obeyed.

    ``savepoints`` are the thread's: they say whether its files can be put back.
    """
    console, colour = paper.console, "green" if result.completed else "red"
    console.print()
    title = Text(f" {paper.symbol('ok' if result.completed else 'bad')} {result.status} ")
    dash = "-" if console.options.ascii_only else "─"
    if paper.terminal:
        console.print(Rule(title, style=colour, align="left", characters=dash))
    else:
        console.print(Text(f"{dash * 3}{title}{dash * 3}"))
    console.print(Text(shown(result.output)), soft_wrap=not paper.terminal)
    console.print()
    _print_rows(paper, [*_rows(paper, thread, result), *_undo_rows(thread, result, savepoints)])
    if result.verification and not result.verification.passed:
        said = excerpt(result.verification, limit=_EXCERPT)
        console.print()
        console.print(Text(shown(said), style="dim"), soft_wrap=not paper.terminal)


def _print_rows(paper: Paper, rows: list[tuple[str, str]]) -> None:
    console = paper.console
    if not paper.terminal:
        for name, text in rows:
            lines = shown(text).replace("\n", "\n" + " " * _NAMES)
            console.print(Text(f"{name:<{_NAMES}}{lines}"), soft_wrap=True)
        return
    grid = Table.grid()
    grid.add_column(style="dim", width=_NAMES)
    grid.add_column(overflow="fold")
    for name, text in rows:
        grid.add_row(name, Text(shown(text)))
    console.print(grid)


def _rows(paper: Paper, thread: str, result: TaskResult) -> list[tuple[str, str]]:
    marked = [
        f"{paper.symbol(_MARKS.get(phase.status, 'bad'))} {phase.title}" for phase in result.phases
    ]
    checks = result.verification.checks if result.verification else ()
    checked = [
        f"{paper.symbol('ok' if check.passed else 'bad')} {check.command}" for check in checks
    ]
    spent = [f"{kind} {number}" for kind, number in result.budgets.items() if number]
    seconds = result.timings.get("total")
    asked = result.clarification
    told = {
        "for": f"{asked.target_action}: {', '.join(asked.missing_fields)}" if asked else "",
        "answer": f'daruma run --thread {shlex.quote(thread)} "..."' if asked else "",
        "phases": "\n".join(marked),
        "checks": "\n".join(checked),
        "try": "\n".join(result.error_struct.suggestions) if result.error_struct else "",
        "told": "\n".join(each.text for each in result.lessons.pitfalls) if result.lessons else "",
        "sandbox": result.sandbox or "",
        "steps": ", ".join(spent),
        "tokens": _tokens(result),
        "time": duration(seconds) if seconds is not None else "",
        "note": "\n".join(result.notes),
        "thread": thread,
    }
    return [(name, text) for name, text in told.items() if text]


def _undo_rows(
    thread: str, result: TaskResult, savepoints: Sequence[Savepoint]
) -> list[tuple[str, str]]:
    of_task = [each for each in savepoints if each.task_id == result.task_id]
    if not any(each.snapshot for each in of_task):
        return []
    return [("undo", f"daruma undo {shlex.quote(thread)}")]


def _tokens(result: TaskResult) -> str:
    read = sum(usage["input_tokens"] for usage in result.usage.values())
    written = sum(usage["output_tokens"] for usage in result.usage.values())
    calls = sum(usage["calls"] for usage in result.usage.values())
    return f"{read:,} read, {written:,} written in {calls} calls" if calls else ""
