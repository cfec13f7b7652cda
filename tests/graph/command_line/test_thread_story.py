"""The story of a thread tells what it took."""

from datetime import UTC, datetime
from io import StringIO

from rich.console import Console
from tests.parts import a_task

from daruma.graph.command_line.paper import Paper
from daruma.graph.command_line.session import Stop
from daruma.graph.command_line.thread_story import print_story
from daruma.graph.command_line.thread_view import ThreadView
from daruma.state.audit import Audit
from daruma.state.failover import Attempt, Failover
from daruma.state.recovery import Recovered
from daruma.state.result import TaskResult


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
