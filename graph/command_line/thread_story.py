"""The story of one thread: what was asked, said and done, and where it stands."""

from collections.abc import Iterator, Sequence

from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage

from daruma.graph.command_line.asking_person import follow_command, resume_command
from daruma.graph.command_line.audit_lines import failover_text
from daruma.graph.command_line.call_lines import change_lines
from daruma.graph.command_line.context_lines import cost_line
from daruma.graph.command_line.paper import Line, Paper
from daruma.graph.command_line.plan_lines import plan_lines
from daruma.graph.command_line.printable import beginning, one_line
from daruma.graph.command_line.questions import how_to_answer, question_lines
from daruma.graph.command_line.recovery_lines import confidence_of
from daruma.graph.command_line.savepoint_lines import savepoint_lines
from daruma.graph.command_line.session import Stop
from daruma.graph.command_line.summary import print_summary
from daruma.graph.command_line.thread_view import ThreadView
from daruma.graph.command_line.timeline_lines import timeline_lines, when_lines
from daruma.graph.pictures.call_title import call_title


def print_story(paper: Paper, view: ThreadView, tail: int | None = None) -> None:
    """Print a thread's story, ending with its result, its open questions, or how to go on.

    Of its timeline, all is told or the last ``tail`` moments.
    """
    paper.put(Line("head", f"thread {view.thread}", view.status), *_asked_lines(view))
    if view.plan:
        paper.put(Line("head", "Plan"))
        paper.put(*plan_lines([phase.to_dict() for phase in view.plan.phases]))
    paper.put(*_told_lines(view, tail))
    if view.savepoints:
        kept = savepoint_lines(view.thread, view.savepoints, view.titles)
        paper.put(Line("head", "Savepoints", "states that the files can be put back to"), *kept)
    print_end(paper, view)


def _asked_lines(view: ThreadView) -> Iterator[Line]:
    if view.task:
        place = f" in {view.task.workspace}" if view.task.workspace else ""
        model = f" with {view.model}" if view.model else ""
        yield Line("line", view.task.goal)
        yield Line("note", f"{view.task.mode}{place}{model}")
    if view.timeline:
        yield from when_lines(view.timeline)


def _told_lines(view: ThreadView, tail: int | None) -> Iterator[Line]:
    """Yield the timeline; where there is none, what messages and setbacks tell."""
    if view.timeline:
        yield from timeline_lines(view.timeline, tail)
        return
    if view.messages:
        yield Line("head", "What was said and done")
        yield from message_lines(view.messages)
    if setbacks := [*setback_lines(view)]:
        yield Line("head", "Setbacks")
        yield from setbacks


def setback_lines(view: ThreadView) -> Iterator[Line]:
    """Return what the newest task got over: large and failed requests, and recoveries."""
    costs = view.stop.result.context_cost if view.stop and view.stop.result else ()
    yield from (cost_line(each.to_dict()) for each in costs)
    audits = view.stop.result.audit if view.stop and view.stop.result else ()
    for audit in audits:
        if audit.failover:
            yield Line("note", one_line(failover_text(audit.failover.to_dict())))
    for each in view.recoveries:
        about = f"{each.code}, {each.tool}" if each.tool else each.code
        helped = "" if each.worked is None else (", to no avail", ", and it helped")[each.worked]
        text = f"{about}: {each.strategy}, {each.carried}{helped}"
        yield Line("note", text, confidence_of(each.confidence, each.by))


def message_lines(messages: Sequence[AnyMessage]) -> Iterator[Line]:
    """Return a history as lines: each call with its outcome, longer texts by their beginning."""
    results = {message.id: message for message in messages if isinstance(message, ToolMessage)}
    for message in messages:
        if isinstance(message, ToolMessage):
            continue
        if text := message.text.strip():
            words = isinstance(message, AIMessage)
            yield Line("words" if words else "note", beginning(text, 4))
        if isinstance(message, AIMessage):
            for call in message.tool_calls:
                yield _call_line(call, results.get(f"{message.id}:{call['id']}"))
                yield from change_lines(call["args"])


def _call_line(call: ToolCall, result: ToolMessage | None) -> Line:
    text = one_line(call_title(call["name"], call["args"]))
    if result is None:
        return Line("note", text, "no result yet")
    failed = result.status == "error"
    return Line("bad" if failed else "ok", text, one_line(result.text) if failed else "")


def print_end(paper: Paper, view: ThreadView) -> None:
    """Print where a thread stands: its result, its open questions, or how to go on."""
    if view.trouble:
        paper.put(Line("bad", one_line(view.trouble, 1000)))
    if view.is_busy:
        paper.put(Line("head", view.status.capitalize(), f"see {follow_command(view.thread)}"))
    elif view.stop:
        _print_stop(paper, view, view.stop)
    else:
        paper.put(Line("head", "Unfinished", f"go on with {resume_command(view.thread)}"))


def _print_stop(paper: Paper, view: ThreadView, stop: Stop) -> None:
    if stop.result:
        print_summary(paper, view.thread, stop.result, stop.savepoints)
        if view.traceback:
            paper.put(Line("head", "Traceback"))
            paper.put(*(Line("line", line) for line in view.traceback.splitlines()))
    if stop.questions:
        for question in stop.questions:
            paper.put(*question_lines(question.value, known=True, checks=stop.checks))
        commands = how_to_answer(view.thread, stop.questions)
        paper.put(Line("head", "Answer with"), *(Line("line", text) for text in commands))
    elif stop.result is None:
        paper.put(Line("head", "Unfinished", f"go on with {resume_command(view.thread)}"))
