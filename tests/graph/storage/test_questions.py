"""The inbox: what waits for a person, over all threads of a database."""

import json
from collections.abc import Mapping
from contextlib import suppress
from math import inf, nan
from typing import Any

import psycopg
import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from tests.scripted_runs import call, calls, phases, say, shout

from daruma.graph.build import build_graph
from daruma.graph.command_line import main
from daruma.graph.models import ScriptedChatModel
from daruma.graph.storage import Postgres, open_postgres
from daruma.graph.workers import submit, sweep
from daruma.state.settings import Settings

KEY = bytes(range(32))
PLANNED: Mapping[str, Any] = {"messages": [("user", "Do it")], "mode": "plan_exec"}
ASKED: Mapping[str, Any] = {"messages": [("user", "Say it")]}

ODD: Any = [{"kind": "a\0"}, {"kind": "\ud83d"}, *({"older_than": n} for n in (nan, inf, 1e300))]
"""What nothing that waits is; a driver would refuse it."""


def pick(text: str) -> str:
    """Pick."""
    return str(interrupt({"choose": text}))


def graph_over(pg: Postgres, *main_: Any, **settings: Any) -> Any:
    """A graph whose plans and calls of ``shout`` wait for a person."""
    script = {"plan": [phases("one")] * 3, "main": [*main_, say(), say()]}
    given = {"tools": {"policy": {"shout": "confirm"}}, "verification": {"enabled": False}}
    model = ScriptedChatModel(script=script)
    return build_graph(model, [shout, pick], Settings(**{**given, **settings}), persistence=pg)


def thread(name: str) -> Any:
    return {"configurable": {"thread_id": name}}


def waiting(pg: Postgres, **which: Any) -> list[tuple[str, str]]:
    return [(each.thread_id, each.kind) for each in pg.inbox(**which)]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("key", [None, KEY], ids=["in clear", "sealed"])
def test_what_waits_is_there_until_it_is_answered(empty_postgres_url: str, key: Any) -> None:
    """PL-04: on every path: asked, looked at, answered, parked, copied, deleted."""
    with open_postgres(empty_postgres_url, key=key) as pg:
        graph = graph_over(pg)
        graph.invoke(PLANNED, thread("plan"))
        graph_over(pg, calls("shout")).invoke(ASKED, thread("call"))
        graph_over(pg, calls(call("pick", text="a"))).invoke(ASKED, thread("own"))
        pg.checkpointer.copy_thread("plan", "copy")
        before = pg.inbox()
        assert build_graph(ScriptedChatModel(script=[]), persistence=pg).inbox() == before
        graph.invoke(None, thread("plan"))  # which only asks again

        assert [(each.thread_id, each.kind) for each in before] == [
            ("copy", "plan"),
            ("plan", "plan"),
            ("call", "approval"),
            ("own", "tool"),
        ]
        assert [each.since for each in pg.inbox()] == [each.since for each in before]
        assert [each.text for each in before][1:3] == [
            "Do it (1 phase)",
            'shout: { "text": "hello" }',
        ]
        assert before[1].reply.startswith('{"decision": "confirm"}')
        assert waiting(pg, kind="approval") == [("call", "approval")]
        for none in ({"older_than": 3600}, *ODD):
            assert waiting(pg, **none) == []

        graph.invoke(Command(resume={before[1].interrupt_id: {"decision": "park"}}), thread("plan"))
        assert waiting(pg, kind="plan") == [("copy", "plan"), ("plan", "plan")]
        (parked,) = [each for each in pg.inbox() if each.thread_id == "plan"]
        submit(pg, Command(resume={parked.interrupt_id: {"decision": "confirm"}}), "plan")
        pg.checkpointer.delete_thread("copy")
        graph.invoke(Command(resume={before[3].interrupt_id: "a"}), thread("own"))
        assert waiting(pg) == [("call", "approval")]


@pytest.mark.long
def test_what_has_ended_costs_it_nothing(postgres_url: str) -> None:
    """One query over what waits: answered questions are not even looked at."""
    with open_postgres(postgres_url) as pg:
        for number in range(5):
            graph = graph_over(pg)
            asked = graph.invoke(PLANNED, thread(f"t{number}"))["__interrupt__"][0]
            graph.invoke(Command(resume={asked.id: {"decision": "confirm"}}), thread(f"t{number}"))
        graph_over(pg).invoke(PLANNED, thread("waits"))
        with psycopg.connect(postgres_url) as connection:
            (rows,) = connection.execute("SELECT count(*) FROM daruma_questions").fetchone() or ()

        assert rows == 1
        assert waiting(pg) == [("waits", "plan")]


def test_a_question_that_another_graph_has_answered_is_passed(postgres_url: str) -> None:
    """FA-08: there no reply is on record, but what came after is."""
    with open_postgres(postgres_url) as pg:
        inner = build_graph(
            ScriptedChatModel(script=[calls("shout"), say()]),
            [shout],
            {"tools": {"policy": {"shout": "confirm"}}},
        )
        outer: Any = StateGraph(MessagesState)
        outer.add_node("agent", inner)
        outer.add_edge(START, "agent")
        around = outer.compile(checkpointer=pg.checkpointer)
        around.invoke({"messages": [("user", "Go")]}, thread("outer"))
        (asked,) = pg.inbox()
        each = asked.value["approvals"][0]
        decision = {"approval_id": each["approval_id"], "digest": each["digest"]}
        reply = {"decisions": [decision | {"decision": "approve"}]}
        around.invoke(Command(resume=reply), thread("outer"))

        assert (asked.thread_id, asked.kind) == ("outer", "approval")
        assert pg.inbox() == []


def test_a_serializer_of_the_applications_reads_questions_too(postgres_url: str) -> None:
    """It was chosen on purpose, and makes of them what LangGraph does."""
    with open_postgres(postgres_url) as pg:
        pg.checkpointer.serde = JsonPlusSerializer()
        graph_over(pg, calls(call("pick", text="a"))).invoke(ASKED, thread("own"))

        (asked,) = pg.inbox()

        assert asked.value == {"choose": "a"}


def test_a_damaged_question_hides_no_other(postgres_url: str) -> None:
    """DU-05: it is told, and the sweep goes by the same list."""
    with open_postgres(postgres_url) as pg:
        for name in ("bad", "good"):
            graph_over(pg, spec_review={"timeout": 0.001}).invoke(PLANNED, thread(name))
        with psycopg.connect(postgres_url) as connection:
            connection.execute(
                "UPDATE daruma_writes SET blob = 'x' WHERE thread_id = 'bad' AND slot < 0"
            )
        bad, good = pg.inbox()

        assert bad.text.startswith("damaged")
        assert (good.text, good.kind) == ("Do it (1 phase)", "plan")
        assert sweep(graph_over(pg)) == ["good"]


def test_the_command_line_says_how_each_is_answered(
    postgres_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """FA-04: the same as a table and as JSON, and the command that is shown does answer."""
    monkeypatch.setenv("DARUMA_POSTGRES_URL", postgres_url)
    with open_postgres(postgres_url) as pg:
        graph_over(pg, calls("shout")).invoke(ASKED, thread("call"))
        graph_over(pg).invoke(PLANNED, thread("plan"))

    def said(*words: str) -> str:
        with suppress(SystemExit):
            main(["inbox", *words])
        return capsys.readouterr().out

    first, second = said("--tsv").splitlines()
    assert first.split("\t")[:2] == ["call", "approval"]
    assert second.split("\t")[3:] == ["Do it (1 phase)", "daruma answer plan --confirm"]
    (told,) = json.loads(said("--json", "--kind", "plan"))
    assert told["answers"][0] == "daruma answer plan --confirm"
    assert json.loads(said("--json", "--older", "1h")) == []
    assert said("--kind", "no") == ""
