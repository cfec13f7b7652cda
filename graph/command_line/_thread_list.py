"""The lists of threads and of what waits: what is known without any history (FA-13)."""

from datetime import datetime
from typing import Any

from langgraph.checkpoint.base import CheckpointTuple

from daruma.graph.command_line._questions import how_to_answer
from daruma.graph.command_line._tables import Cell, Table
from daruma.graph.standing import Standing, read_pending, standings, status_of
from daruma.graph.storage import Postgres
from daruma.state.errors import DamagedState
from daruma.state.result import TaskResult, headline_of
from daruma.state.task import Task

Row = tuple[str, str, datetime, str]


async def list_threads(postgres: Postgres) -> Table:
    """Return the threads, those that wait for a worker first, then the one written last.

    One that is damaged does not hide the others.
    """
    known = await standings(postgres.checkpointer.database)
    rows = list[Row]()
    for each in await postgres.athreads():
        standing = known.pop(each.thread_id, None)
        place = {"thread_id": each.thread_id, "checkpoint_ns": ""}
        try:
            found = await postgres.checkpointer.aget_tuple({"configurable": place})
            if found:  # else it was pruned meanwhile
                rows.append(_row(each.thread_id, found, standing))
        except DamagedState as error:
            status = standing.what if standing and standing.is_busy else "damaged"
            rows.append((each.thread_id, status, each.updated_at, str(error)))
    queued = [(s.thread_id, s.what, s.since.astimezone(), s.request) for s in known.values()]
    return Table(
        ("thread", "status", "when", "goal"),
        [*queued, *rows],
        nothing="there are no threads yet: try `daruma demo`",
        cuts=True,
    )


async def list_questions(postgres: Postgres, kind: str | None, older_than: float) -> Table:
    """Return what waits for a person, each with the command that answers, the longest first."""
    from langgraph.types import Interrupt

    rows, values = list[tuple[Cell, ...]](), list[dict[str, Any]]()
    for each in await postgres.ainbox(kind=kind, older_than=older_than):
        of_tool = each.kind == "tool" or each.value is None
        questions = [] if of_tool else [Interrupt(each.value, id=each.interrupt_id)]
        answers = how_to_answer(each.thread_id, questions)
        rows.append((each.thread_id, each.kind, each.since, each.text, *(answers[:1] or [""])))
        values.append(each.to_dict() | {"answers": answers})
    columns = ("thread", "kind", "since", "question", "answer")
    return Table(columns, rows, values=values, nothing="nothing waits for a person", below=2)


def _row(thread: str, found: CheckpointTuple, standing: Standing | None) -> Row:
    values: dict[str, Any] = {**found.checkpoint["channel_values"]}
    questions, finished = read_pending(found)
    for written in finished:
        values |= written
    task, result = values.get("task"), values.get("result")
    if not isinstance(task, Task | None) or not isinstance(result, TaskResult | None):
        raise DamagedState("it holds a record in the place of another")
    busy = standing.what if standing and standing.is_busy else ""
    status = busy or status_of(result, questions)
    goal = task.goal if task else standing.request if standing else ""
    if result and result.clarification:
        goal += f" (asks: {result.clarification.question})"
    headline = headline_of(status, result.checked.outcome if result else "")
    return thread, headline, datetime.fromisoformat(found.checkpoint["ts"]), goal
