"""The machine as a part of another graph: a node of it, or called in one of its nodes (FA-08)."""

import operator
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver as StockSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver as AsyncStockSaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph, add_messages
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, Send
from pydantic import BaseModel
from tests.graph.middleware.agents import Says, calling
from tests.graph.middleware.agents import call as agent_call
from tests.parts import settings
from tests.scripted_runs import call, calls, phases, say
from typing_extensions import TypedDict

from daruma import aopen_postgres, open_postgres
from daruma.graph.build import build_graph
from daruma.graph.models import ScriptedChatModel
from daruma.graph.requests import RequestRefused
from daruma.state.errors import DamagedState
from daruma.state.result import TaskResult

PLAIN = settings(verification={"enabled": False}, evolution={"enabled": False})
YES = {"decision": "confirm"}
NAMED: Any = {"configurable": {"thread_id": "t"}}


def daruma(*turns: Any, tools: Any = (), **given: Any) -> Any:
    """A graph whose model plans one phase where it is asked to, and then says this."""
    model = ScriptedChatModel(script={"plan": [phases("Look")], "main": list(turns or [say()])})
    return build_graph(model, tools, PLAIN, **given)


class Around(TypedDict, total=False):
    """The state of the graph around it; Daruma knows all of its keys but two."""

    messages: Annotated[list[Any], add_messages]
    mode: str
    result: Any
    notes: Annotated[list[str], operator.add]
    user: str


def around(node: Any, schema: Any = Around, saver: Any = None, **given: Any) -> Any:
    """A graph of one node."""
    graph: Any = StateGraph(schema, **given)
    return graph.add_node("daruma", node).add_edge(START, "daruma").compile(checkpointer=saver)


def asks(text: str = "Do it", **more: Any) -> dict[str, Any]:
    return {"messages": [("user", text)], **more}


def plans(text: str = "Do it", **more: Any) -> dict[str, Any]:
    return asks(text, mode="plan_exec", **more)


def said(out: Any) -> list[str]:
    return [message.text for message in out["messages"]]


def answered(out: Any, reply: Any = YES) -> Command[Any]:
    """The reply to every open question, by its id."""
    return Command(resume={each.id: reply for each in out["__interrupt__"]})


# --- Keys that are the other graph's own are left alone, whatever form its state has.


@dataclass
class InADataclass:
    messages: Annotated[list[Any], add_messages] = field(default_factory=list)
    mode: str = ""
    workspace: str | None = None
    result: Any = None
    user: str = "Ann"


class InAModel(BaseModel):
    messages: Annotated[list[Any], add_messages] = []
    mode: str = ""
    result: Any = None
    user: str = "Ann"


class WithMessages(MessagesState):
    result: Any
    user: str


def as_node(graph: Any) -> Any:
    return graph


def in_a_function(graph: Any) -> Any:
    def node(state: Any) -> dict[str, Any]:
        out = graph.invoke(state)
        return {"messages": out["messages"], "result": out["result"]}

    return node


def in_an_async_function(graph: Any) -> Any:
    async def node(state: Any, config: RunnableConfig) -> dict[str, Any]:
        out = await graph.ainvoke(state, config)
        return {"messages": out["messages"], "result": out["result"]}

    return node


@pytest.mark.parametrize("schema", [Around, WithMessages, InADataclass, InAModel])
@pytest.mark.parametrize("put", [as_node, in_a_function, in_an_async_function])
async def test_turns_of_another_graph(schema: Any, put: Callable[[Any], Any]) -> None:
    """The result of turn one and keys of its own stand in its state: turn two runs with them."""
    graph = around(put(daruma(say("Looked."))), schema, InMemorySaver())

    await graph.ainvoke(asks("One", user="Ann"), NAMED)
    out = await graph.ainvoke(asks("Two"), NAMED)

    assert said(out) == ["One", "Looked.", "Two", "Looked."]
    assert out["user"] == "Ann"
    assert out["result"].status == "completed"


def test_a_state_without_a_place_for_the_result() -> None:
    graph = around(daruma(), MessagesState, InMemorySaver())

    graph.invoke(asks("One"), NAMED)

    assert said(graph.invoke(asks("Two"), NAMED)) == ["One", "Done.", "Two", "Done."]


def test_a_misspelt_key_of_a_caller_is_still_refused() -> None:
    with pytest.raises(RequestRefused, match="did you mean 'messages'"):
        daruma().invoke({"message": [("user", "Do it")]})


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"mode": "chat"}, "unknown mode 'chat'"),
        ({"workspace": "/no/such/folder"}, "'/no/such/folder' is not a folder"),
        ({"workspace": 7}, "'7' is not a folder"),
        ({"continuity": "a text"}, "continuity is a dict"),
        ({"messages": []}, "a request needs messages"),
        ({"messages": [("ai", "Hi.")]}, "one of the messages of a request has to be the user's"),
    ],
)
def test_a_key_that_means_something_else_there(given: dict[str, Any], line: str) -> None:
    """One line says what was wrong and what to do; with less of the state it runs."""

    class Other(TypedDict, total=False):
        messages: list[Any]
        mode: Any
        workspace: Any
        continuity: Any

    class Request(TypedDict):
        messages: list[Any]

    with pytest.raises(RequestRefused, match=rf"{line}.*; in another graph .* input_schema") as no:
        around(daruma(), Other).invoke(asks() | given)
    less: Any = StateGraph(Other).add_node("daruma", daruma(), input_schema=Request)
    out = less.add_edge(START, "daruma").compile().invoke({**given, **asks()})

    assert "\n" not in str(no.value)
    assert said(out) == ["Do it", "Done."]


def test_keys_named_like_what_the_machine_remembers() -> None:
    """Only the keys of a request are read; the others of the machine's are its own."""

    class Other(Around, total=False):
        task: str
        steps: int
        error: str
        calls: list[str]

    own: dict[str, Any] = {"task": "mine", "steps": 3, "error": "none", "calls": ["a"]}
    out = around(daruma(), Other, InMemorySaver()).invoke(asks(**own), NAMED)

    assert {key: out[key] for key in own} == own


def test_schemas_of_what_goes_in_and_out() -> None:
    class In(TypedDict):
        messages: list[Any]

    class Out(TypedDict):
        result: Any

    graph = around(daruma(), Around, InMemorySaver(), input_schema=In, output_schema=Out)

    assert graph.invoke(asks(), NAMED)["result"].status == "completed"
    assert [*graph.invoke(asks(), NAMED)] == ["result"]


# --- Questions: the other graph is resumed, with any saver, and goes on.


@contextmanager
def in_memory(_: str) -> Iterator[Any]:
    yield InMemorySaver()


@contextmanager
def in_ours(url: str) -> Iterator[Any]:
    with open_postgres(url) as pg:
        yield pg.checkpointer


@contextmanager
def in_stock(url: str) -> Iterator[Any]:
    with StockSaver.from_conn_string(url) as saver:
        saver.setup()
        yield saver


@asynccontextmanager
async def in_ours_async(url: str) -> AsyncIterator[Any]:
    async with aopen_postgres(url) as pg:
        yield pg.checkpointer


@asynccontextmanager
async def in_stock_async(url: str) -> AsyncIterator[Any]:
    async with AsyncStockSaver.from_conn_string(url) as saver:
        await saver.setup()
        yield saver


@pytest.mark.sampled(1)
@pytest.mark.parametrize("put", [as_node, in_a_function])
@pytest.mark.parametrize("opened", [in_memory, in_ours, in_stock])
def test_resumed(opened: Any, put: Callable[[Any], Any], empty_postgres_url: str) -> None:
    """Also from a graph that was built anew, and on with the next turn."""
    with opened(empty_postgres_url) as saver:
        given = plans(notes=["a"])
        asked = around(put(daruma(say("One."))), Around, saver).invoke(given, NAMED)
        out = around(put(daruma(say("One."))), Around, saver).invoke(answered(asked), NAMED)
        after = around(put(daruma(say("Two."))), Around, saver).invoke(asks(mode="react"), NAMED)

    assert [each.value["type"] for each in asked["__interrupt__"]] == ["spec_review_request"]
    assert out["result"].status == "completed"
    assert said(out)[-1] == "One."
    assert said(after) == [*said(out), "Do it", "Two."]
    assert after["notes"] == ["a"]


@pytest.mark.long
@pytest.mark.parametrize("opened", [in_ours_async, in_stock_async])
async def test_resumed_on_a_loop(opened: Any, empty_postgres_url: str) -> None:
    """By the reply alone, as LangGraph allows where one question is open; members save, too."""
    script = {"plan": [phases({"title": "A", "expert": "developer"})], "main": [say("Two.")]}
    async with opened(empty_postgres_url) as saver:
        graph = around(daruma(say("One.")), Around, saver)
        await graph.ainvoke(plans(), NAMED)
        out = await graph.ainvoke(Command(resume=YES), NAMED)
        other: Any = {"configurable": {"thread_id": "team"}}
        team = build_graph(ScriptedChatModel(script=script), settings=PLAIN)
        graph = around(team, Around, saver)
        await graph.ainvoke(asks(mode="team_collab"), other)
        both = await graph.ainvoke(Command(resume=YES), other)

    assert said(out)[-1] == "One."
    assert both["result"].status == "completed"


@pytest.mark.long
def test_a_reply_that_does_not_fit_leaves_the_question_open() -> None:
    """No door stands before it: the question says why."""
    graph = around(daruma(), Around, InMemorySaver())
    asked = graph.invoke(plans(), NAMED)

    again = graph.invoke(answered(asked, {"decision": "perhaps"}), NAMED)
    out = graph.invoke(answered(again), NAMED)

    assert "spec_review_request has the form" in again["__interrupt__"][0].value["refused"]
    assert "refused" not in asked["__interrupt__"][0].value
    assert out["result"].status == "completed"


def test_only_what_was_shown_is_approved(tmp_path: Path) -> None:
    """TL-13a: neither the digest of something else nor an unknown call lets anything run."""
    given = settings(sandbox={"require": "none"}, verification={"enabled": False})
    command = call("run_command", "c", command="echo ran > ran")
    model = ScriptedChatModel(script=[calls(command), say()])
    graph = around(build_graph(model, settings=given), Workspace, InMemorySaver())
    out = graph.invoke(asks(workspace=str(tmp_path)), NAMED)
    (approval,) = out["__interrupt__"][0].value["approvals"]
    right = {"approval_id": "c", "digest": approval["digest"], "decision": "approve"}

    for wrong in ({"digest": "0"}, {"approval_id": "d"}, {"decision": "edit"}):
        out = graph.invoke(answered(out, {"decisions": [{**right, **wrong}]}), NAMED)
        assert not (tmp_path / "ran").exists()
    out = graph.invoke(answered(out, {"decisions": [right]}), NAMED)

    assert (tmp_path / "ran").read_text() == "ran\n"
    assert out["result"].status == "completed"


class Workspace(Around, total=False):
    """The same, with a place for files."""

    workspace: str


# --- Several on one thread: one after the other, at once, the same graph twice.


class Branches(TypedDict, total=False):
    """What two branches write at once."""

    messages: Annotated[list[Any], add_messages]
    mode: str
    results: Annotated[list[str], operator.add]


def side_by_side(one: Any, other: Any, saver: Any) -> Any:
    graph: Any = StateGraph(Branches)
    graph.add_node("a", one).add_node("b", other)
    return graph.add_edge(START, "a").add_edge(START, "b").compile(checkpointer=saver)


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("opened", [in_memory, in_ours])
def test_two_questions_in_branches(opened: Any, at_once: bool, postgres_url: str) -> None:
    """Each is answered by its id, at once or one by one; what is answered is not asked again."""
    with opened(postgres_url) as saver:
        same = daruma(checkpointer=saver)
        graph = side_by_side(same, same, saver)
        out = graph.invoke(plans(), NAMED)
        first, second = out["__interrupt__"]
        if at_once:
            out = graph.invoke(answered(out), NAMED)
        else:
            left = graph.invoke(Command(resume={first.id: YES}), NAMED)
            assert [each.id for each in left["__interrupt__"]] == [second.id]
            out = graph.invoke(answered(left), NAMED)

    assert "__interrupt__" not in out
    assert said(out).count("Done.") == 2
    assert len({each.id for each in out["messages"]}) == len(out["messages"]) == 7


@pytest.mark.parametrize("opened", [in_ours_async, in_stock_async])
async def test_branches_on_a_loop(opened: Any, empty_postgres_url: str) -> None:
    async with opened(empty_postgres_url) as saver:
        same = daruma()
        graph = side_by_side(same, same, saver)
        out = await graph.ainvoke(plans(), NAMED)
        out = await graph.ainvoke(answered(out), NAMED)

    assert said(out).count("Done.") == 2


def test_a_call_runs_once_whatever_the_branch_beside_it_asks() -> None:
    """The other graph begins its open branches anew; what has run, has run."""
    ran: list[str] = []

    @tool
    def note(text: str) -> str:
        """Write it down."""
        ran.append(text)
        return "noted"

    wrote = daruma(calls(call("note", text="x")), say("Noted."), tools=[note])

    def at_once(state: Any) -> Any:
        return {"messages": wrote.invoke({"messages": state["messages"]})["messages"]}

    graph = side_by_side(at_once, daruma(), InMemorySaver())
    out = graph.invoke(answered(graph.invoke(plans(), NAMED)), NAMED)

    assert ran == ["x"]
    assert {"Noted.", "Done."} < {*said(out)}


def test_a_supervisor_of_two() -> None:
    """It hands on by ``Command(goto=...)``; the second works on what the user asked the first."""

    def supervisor(state: Any) -> Command[Any]:
        spoken = sum(message.type == "ai" for message in state["messages"])
        return Command(goto=("coder", "writer", END)[spoken], update={"notes": [str(spoken)]})

    graph: Any = StateGraph(Around).add_node("supervisor", supervisor)
    graph.add_node("coder", daruma(say("Code."))).add_node("writer", daruma(say("Words.")))
    graph.add_edge(START, "supervisor")
    graph.add_edge("coder", "supervisor").add_edge("writer", "supervisor")
    out = graph.compile(checkpointer=InMemorySaver()).invoke(asks("Go"), NAMED)

    assert said(out) == ["Go", "Code.", "Words."]
    assert out["notes"] == ["0", "1", "2"]
    assert out["result"].output == "Words."


def test_one_that_fails_behind_another_does_not_answer_with_its_words() -> None:
    graph: Any = StateGraph(Around).add_node("a", daruma(say("Right.")))
    broken = ScriptedChatModel(script=[{"raise": "connection"}] * 9)
    graph.add_node("b", build_graph(broken, settings=PLAIN))
    out = graph.add_edge(START, "a").add_edge("a", "b").compile().invoke(asks())

    assert out["result"].status == "failed"
    assert out["result"].answer == ""


async def test_sent_out_in_parallel(tmp_path: Path) -> None:
    """By ``Send``, each with a state and a workspace of its own; reducers join what comes back."""
    create = call("str_replace_editor", command="create", path="ran", file_text="ran")
    same = daruma(calls(create), say("Ran."))
    names = ["a", "b", "c"]
    for name in names:
        (tmp_path / name).mkdir()

    def out_to(_: Any) -> list[Send]:
        return [Send("daruma", asks(name, workspace=str(tmp_path / name))) for name in names]

    graph: Any = StateGraph(Branches).add_node("daruma", same)
    graph.add_conditional_edges(START, out_to, ["daruma"])
    out = await graph.compile(checkpointer=InMemorySaver()).ainvoke({}, NAMED)

    assert said(out).count("Ran.") == 3
    assert all((tmp_path / name / "ran").exists() for name in names)


def test_called_twice_in_one_node() -> None:
    graph = daruma()

    def node(state: Any) -> dict[str, Any]:
        once = graph.invoke(state)["messages"]
        return {"messages": graph.invoke({"messages": [*once, ("user", "More")]})["messages"]}

    out = around(node, Around, InMemorySaver()).invoke(asks(), NAMED)

    assert said(out) == ["Do it", "Done.", "More", "Done."]


def test_messages_given_back_by_a_caller_without_a_thread() -> None:
    """The ids of what was said before stay those of what was said before."""
    graph = daruma()
    first = graph.invoke(asks("One"))

    out = graph.invoke({"messages": [*first["messages"], HumanMessage("Two")]})

    assert said(out) == ["One", "Done.", "Two", "Done."]


# --- In other kinds of graphs: a tool of an agent, tasks, a graph in a graph, itself.


def test_as_a_tool_of_an_agent() -> None:
    """Two calls at once ask two questions; the agent is resumed with both answers."""
    inner = daruma(say("Coded."))

    @tool
    def code(what: str) -> str:
        """Have code written."""
        return str(inner.invoke(plans(what))["result"].output)

    said_first = calling(agent_call("code", "1", what="a"), agent_call("code", "2", what="b"))
    agent: Any = create_agent(
        Says(answers=[said_first, "Done."]), [code], checkpointer=InMemorySaver()
    )
    out = agent.invoke(answered(agent.invoke(asks(), NAMED)), NAMED)

    assert said(out)[-3:] == ["Coded.", "Coded.", "Done."]


def test_in_tasks_of_the_functional_form() -> None:
    inner = daruma()

    @task
    def have_done(what: str) -> str:
        return str(inner.invoke(asks(what))["result"].output)

    @entrypoint(checkpointer=InMemorySaver())
    def flow(what: str) -> list[str]:
        both = [have_done(what), have_done(what)]
        return [*(each.result() for each in both), inner.invoke(plans(what))["result"].output]

    asked = flow.invoke("a", NAMED)

    assert flow.invoke(answered(asked), NAMED) == ["Done."] * 3


def test_two_graphs_deep() -> None:
    graph = around(around(daruma(), Around), Around, InMemorySaver())

    out = graph.invoke(answered(graph.invoke(plans(user="Ann"), NAMED)), NAMED)
    out = graph.invoke(asks(mode="react"), NAMED)

    assert said(out)[-2:] == ["Do it", "Done."]
    assert out["user"] == "Ann"


def test_in_a_tool_of_its_own() -> None:
    inner = daruma(say("Inner."))

    @tool
    async def helper(what: str) -> str:
        """Have it done."""
        return str((await inner.ainvoke(asks(what)))["result"].output)

    out = daruma(
        calls(call("helper", what="x")), say("Outer."), tools=[helper], checkpointer=InMemorySaver()
    ).invoke(asks(), NAMED)

    assert said(out) == ["Do it", "", "Inner.", "Outer."]


# --- Whose thread it is: the other graph's, unless the call names one.


@pytest.mark.parametrize("kept", [None, False, "own"])
def test_what_it_was_built_with_makes_no_difference_to_a_thread_of_another(kept: Any) -> None:
    """The saver of the other graph is used, and nothing is held twice."""
    own = InMemorySaver()
    inner = daruma(checkpointer=own if kept == "own" else kept)
    graph = around(inner, Around, InMemorySaver())
    graph.invoke(asks("One"), NAMED)

    assert said(graph.invoke(asks("Two"), NAMED)) == ["One", "Done.", "Two", "Done."]
    assert [*own.list(None)] == []


def test_one_that_remembers_on_the_thread_of_another() -> None:
    """LangGraph's ``checkpointer=True``: its second task comes after its first."""
    graph = around(daruma(say("One."), say("Two."), checkpointer=True), Around, InMemorySaver())
    graph.invoke(asks(), NAMED)
    out = graph.invoke(asks(), NAMED)

    assert said(out) == ["Do it", "One.", "Do it", "Two."]
    assert out["result"].task_id.endswith("/2")


def test_a_thread_of_its_own_within_another_graph() -> None:
    """A call that names a thread is a run of its own, with the saver that the graph was given."""
    inner = daruma(checkpointer=InMemorySaver())
    own: Any = {"configurable": {"thread_id": "own"}}

    def node(_: Any) -> dict[str, Any]:
        asked = inner.invoke(plans(), own)
        return {"result": inner.invoke(answered(asked), own)["result"]}

    out = around(node, Around, InMemorySaver()).invoke(asks(), NAMED)

    assert out["result"].task_id == "own/1"
    assert inner.get_state(own).values["result"] == out["result"]


def test_its_own_store_where_the_other_graph_has_none() -> None:
    store = InMemoryStore()
    remembers = calls(call("memory_store", text="Tests are run with tox."))
    inner = daruma(remembers, say(), store=store)
    around(inner, Around, InMemorySaver()).invoke(asks(), NAMED)

    assert store.search(())


def test_only_its_own_types_are_read_back_within_another_graph(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """DU-05: LangGraph's own way imports what a row names, and says so."""
    graph = around(daruma(), MessagesState, InMemorySaver())
    stateful = around(daruma(checkpointer=True), MessagesState, InMemorySaver())
    for each in (graph, stateful):
        each.invoke(asks(), NAMED)
        each.invoke(asks(), NAMED)

    assert "daruma" not in caplog.text


# --- What the other graph shows: streams, history, its checkpoints.


def test_streams() -> None:
    """With the parts of what runs within, and without."""
    graph = around(daruma(say("Looked.")), Around, InMemorySaver())

    def parts(mode: str, **given: Any) -> list[Any]:
        thread: Any = {"configurable": {"thread_id": f"{mode}{given}"}}
        return [*graph.stream(asks(), thread, stream_mode=mode, **given)]

    within = {
        mode: parts(mode, subgraphs=True) for mode in ("values", "updates", "custom", "messages")
    }
    updates = [name for _, part in within["updates"] for name in part]
    events = [part["type"] for _, part in within["custom"]]
    chunks = [part[0] for ns, part in within["messages"] if ns and part[0].type == "AIMessageChunk"]
    spoken = "".join(each.text for each in chunks)

    assert updates == ["intake", "main", "finish", "daruma"]
    assert (events[0], events[-1]) == ("task_started", "task_completed")
    assert spoken == "Looked."
    assert {bool(ns) for ns, _ in within["values"]} == {True, False}
    assert [[*part] for part in parts("updates")] == [["daruma"]]
    assert said(parts("values")[-1]) == ["Do it", "Looked."]


async def test_events() -> None:
    graph = around(daruma(say("Looked.")), Around, InMemorySaver())
    seen = [each async for each in graph.astream_events(asks(), NAMED, version="v2")]
    text = "".join(
        each["data"]["chunk"].text for each in seen if each["event"] == "on_chat_model_stream"
    )

    assert text == "Looked."
    assert {"intake", "main", "daruma"} < {each["name"] for each in seen}


def test_time_travel() -> None:
    """Replayed from before it began, forked with another request, and looked into while it asks."""
    graph = around(daruma(), Around, InMemorySaver())
    asked = graph.invoke(plans("One"), NAMED)
    within = graph.get_state(NAMED, subgraphs=True).tasks[0].state
    graph.invoke(answered(asked), NAMED)
    before = next(each for each in graph.get_state_history(NAMED) if each.next == ("daruma",))

    again = graph.invoke(None, before.config)
    replayed = graph.invoke(answered(again), NAMED)
    fork = graph.update_state(before.config, asks("Two", mode="react"), as_node=START)
    forked = graph.invoke(None, fork)

    assert within.next == ("spec_review",)
    assert within.values["plan"].goal == "One"
    assert replayed["result"].status == "completed"
    assert said(forked) == ["One", "Two", "Done."]


def test_what_it_remembers_is_edited_from_outside() -> None:
    """By the config that the other graph's state gives for it; a value that is none is refused."""
    graph = around(daruma(), Around, InMemorySaver())
    graph.invoke(plans(), NAMED)
    within = graph.get_state(NAMED, subgraphs=True).tasks[0].state.config

    graph.update_state(within, {"messages": [HumanMessage("Mind the gap", id="gap")]})
    with pytest.raises(RequestRefused, match="plan"):
        graph.update_state(within, {"plan": "none"})
    after = graph.get_state(NAMED, subgraphs=True).tasks[0].state.values

    assert after["messages"][-1].text == "Mind the gap"


def test_a_thread_is_deleted_with_what_ran_within(postgres_url: str) -> None:
    with open_postgres(postgres_url) as pg:
        graph = around(daruma(), Around, pg.checkpointer)
        graph.invoke(plans(), NAMED)
        pg.checkpointer.delete_thread("t")

        assert [*pg.checkpointer.list(NAMED)] == []
        assert graph.get_state(NAMED).values == {}


@dataclass
class Ticket:
    """A value of the other graph's own."""

    number: int


def test_values_of_another_graphs_own_classes(postgres_url: str) -> None:
    """Our saver reads them where they are named; not those that nobody named (DU-05)."""

    class WithTicket(Around, total=False):
        ticket: Ticket

    with open_postgres(postgres_url) as pg:
        named = pg.checkpointer.with_allowlist([Ticket])
        graph = around(daruma(checkpointer=pg.checkpointer), WithTicket, named)
        asked = graph.invoke(plans(ticket=Ticket(7)), NAMED)
        out = graph.invoke(answered(asked), NAMED)
        unnamed = around(daruma(), WithTicket, pg.checkpointer)
        with pytest.raises(DamagedState, match=r"Ticket.*with_allowlist"):
            unnamed.get_state(NAMED)
        machine = daruma(checkpointer=pg.checkpointer).checkpointer
        assert machine.with_allowlist([Ticket]).serde is machine.serde

    assert out["ticket"] == Ticket(7)
    assert isinstance(out["result"], TaskResult)


# --- A process that is killed, and another one that goes on.

KILLED = """
import os, sys
from pathlib import Path
from tests.graph.test_in_another_graph import NAMED, asks, on_postgres
place = Path(sys.argv[2])
begin = lambda graph: graph.invoke(asks(notes=["a"]), NAMED)
on_postgres(sys.argv[1], place, lambda: os._exit(9), begin)
"""


def on_postgres(url: str, place: Path, end: Callable[[], Any], use: Callable[[Any], Any]) -> Any:
    """Use a graph of three nodes; before its ``place`` is ready, the process ends there."""

    class Dying(ScriptedChatModel):
        def answer(self, messages: Any, **given: Any) -> AIMessage:
            if messages[-1].type == "tool" and not (place / "main").exists():
                (place / "main").touch()
                end()
            return super().answer(messages, **given)

    def note(text: str) -> str:
        """Write it down."""
        with (place / "notes").open("a") as notes:
            notes.write(f"{text}\n")
        return "noted"

    def last(_: Any) -> dict[str, Any]:
        if not (place / "last").exists():
            (place / "last").touch()
            end()
        return {"notes": ["last"]}

    model = Dying(script=[calls(call("note", text="x")), say("Noted.")])
    with open_postgres(url) as pg:
        graph: Any = StateGraph(Around).add_node("daruma", build_graph(model, [note], PLAIN))
        graph.add_node("last", last).add_edge(START, "daruma").add_edge("daruma", "last")
        return use(graph.compile(checkpointer=pg.checkpointer))


@pytest.mark.long
@pytest.mark.parametrize("ready", ["last", "main"])
def test_killed_and_gone_on(postgres_url: str, tmp_path: Path, ready: str) -> None:
    """DU-01, within it and behind it: what was done is not done again, the state is whole."""
    (tmp_path / ready).touch()
    killed = [sys.executable, "-c", KILLED, postgres_url, str(tmp_path)]
    assert subprocess.run(killed, check=False, cwd=Path(__file__).parents[2]).returncode == 9

    out = on_postgres(
        postgres_url,
        tmp_path,
        lambda: pytest.fail("ended"),
        lambda graph: graph.invoke(None, NAMED),
    )

    assert (tmp_path / "notes").read_text() == "x\n"
    assert said(out) == ["Do it", "", "noted", "Noted."]
    assert out["notes"] == ["a", "last"]
