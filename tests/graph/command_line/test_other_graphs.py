"""What an application's tools and other graphs ask on a thread: shown, and answered there."""

from collections.abc import Mapping
from typing import Any

from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from tests.daruma_command import Daruma
from tests.parts import settings
from tests.scripted_runs import call, calls, phases, say

from daruma.graph.build import build_graph
from daruma.graph.models import ScriptedChatModel
from daruma.graph.storage import Postgres, open_postgres

PLANNED: Mapping[str, Any] = {"messages": [("user", "Do it")], "mode": "plan_exec"}
ASKED: Mapping[str, Any] = {"messages": [("user", "Say it")]}
PLAIN = settings(verification={"enabled": False}, evolution={"enabled": False})


class Asking(MessagesState):
    """The state of a graph around Daruma."""

    mode: str


def claim(word: str) -> str:
    """Ask under the name of one of Daruma's questions."""
    return str(interrupt({"type": word, "id": 7, "options": 3}))


def graph_over(pg: Postgres, *main: Any) -> Any:
    model = ScriptedChatModel(script={"plan": [phases("one")], "main": [*main, say()]})
    return build_graph(model, [claim], PLAIN, persistence=pg)


def thread(name: str) -> Any:
    return {"configurable": {"thread_id": name}}


def test_what_a_tool_asks_in_the_name_of_ours_hides_no_other(daruma: Daruma) -> None:
    """FA-08: it is its own question: in the inbox, `show` and timelines, answered by any words."""
    words = ("approval_request", "spec_review_request", "recovery_request", "question")
    with open_postgres(daruma.url) as pg:
        graph_over(pg).invoke(PLANNED, thread("plan"))
        for word in words:
            graph = graph_over(pg, calls(call("claim", word=word)))
            graph.invoke(ASKED, thread(word))

        assert [(each.thread_id, each.kind) for each in pg.inbox()] == [
            ("plan", "plan"),
            *((word, "tool") for word in words),
        ]
        assert "id&#39;: 7" in graph.timeline(thread("question")).page()
    assert len(daruma("inbox").out.splitlines()) == 5
    assert "1. one" in daruma("show", "plan", "--follow").out
    assert [word for word in words if "'id': 7" not in daruma("show", word).out] == []
    assert "answered in your program" in daruma("answer", "question", "--text", "yes").complaint
    with open_postgres(daruma.url) as pg:
        (asked,) = (each for each in pg.inbox() if each.thread_id == "question")
        graph = graph_over(pg, calls(call("claim", word="question")))
        answered = graph.invoke(Command(resume={asked.interrupt_id: "any"}), thread("question"))
        assert answered["result"].status == "completed"


def test_what_another_graph_asks_is_shown_whole_and_answered_there(daruma: Daruma) -> None:
    """FA-04: the plan is in the question, and no command is printed that would be refused."""
    outer: Any = StateGraph(Asking)
    with open_postgres(daruma.url) as pg:
        model = ScriptedChatModel(script={"plan": [phases("Look closely")], "main": [say()]})
        outer.add_node("agent", build_graph(model, settings=PLAIN)).add_edge(START, "agent")
        key = f"sk-proj-{'a1B2' * 8}"
        given = {"messages": [("user", f"Do it with {key}")], "mode": "plan_exec"}
        outer.compile(checkpointer=pg.checkpointer).invoke(given, thread("outer"))
    shown = daruma("show", "outer").out

    assert "Look closely" in shown
    assert "daruma answer" not in shown
    assert "00:00:00" not in shown
    assert key not in shown + daruma("threads").out + daruma("show", "outer", "--json").out
    assert "Do it with [key]" in shown
