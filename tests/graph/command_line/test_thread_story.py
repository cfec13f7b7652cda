"""The story of a thread tells what it took."""

from datetime import UTC, datetime
from io import StringIO

from rich.console import Console
from tests.parts import a_savepoint, a_task

from daruma.graph.command_line.output import Paper
from daruma.graph.command_line.session import Stop
from daruma.graph.command_line.thread_story import print_story
from daruma.graph.command_line.thread_view import ThreadView
from daruma.state.recovery import Recovered
from daruma.state.result import TaskResult
from daruma.state.steps import Audit
from daruma.state.usage import Attempt, Failover


def test_a_story_tells_what_was_got_over() -> None:
    """FA-04: a recovery, with who chose it and what became of it."""
    recovered = Recovered(
        code="timeout",
        strategy="retry",
        by="model",
        carried="approved",
        confidence=0.6,
        tool="pay",
        worked=True,
    )
    failover = Failover(
        requested="a", used="b", attempts=(Attempt(model="a", error="503", then="next model"),)
    )
    result = TaskResult(
        task_id="t/1",
        status="completed",
        output="Done.",
        budgets={},
        usage={},
        timings={},
        audit=(Audit(message_id="m", failover=failover),),
    )
    view = ThreadView(
        "t",
        datetime.fromtimestamp(0, UTC),
        task=a_task(),
        recoveries=(recovered,),
        stop=Stop("t", result, ()),
    )
    file = StringIO()

    print_story(Paper(Console(file=file, width=200)), view)

    assert (
        "timeout, pay: retry, approved, and it helped  confidence 0.60, chosen by model"
        in file.getvalue()
    )
    assert "b answered; requests that failed: 1 of a" in file.getvalue()
    assert view.to_dict()["recoveries"][0]["carried"] == "approved"


def test_a_story_tells_where_can_be_gone_back_to() -> None:
    """RO-07: each savepoint once, as it was taken last; the newest task's undo at the end."""
    kept = (a_savepoint("1", at=1.0), a_savepoint("1", at=3.0), a_savepoint("1/p1", at=2.0))
    result = TaskResult(
        task_id="t/1", status="failed", output="It fell.", budgets={}, usage={}, timings={}
    )
    view = ThreadView(
        "t",
        datetime.fromtimestamp(0, UTC),
        task=a_task(),
        stop=Stop("t", result, (), kept),
        titles={("t/1", None): "Mend it"},
    )
    file = StringIO()

    print_story(Paper(Console(file=file, width=200)), view)

    assert file.getvalue().count("before Mend it") == 1
    assert "daruma undo t --to ID" in file.getvalue()
    assert "undo     daruma undo t\n" in file.getvalue()
    assert [each["id"] for each in view.to_dict()["savepoints"]] == ["1/p1", "1"]
