"""What LangGraph would take silently and get wrong is refused at the door, and changes nothing."""

import asyncio
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.types import Command, interrupt
from tests.parts import memory, settings
from tests.scripted_runs import Run, calls, illegal, phases, say, shout
from typing_extensions import override

from daruma import submit
from daruma.graph.build import build_graph
from daruma.graph.follow import status_of
from daruma.graph.requests import RequestRefused, admit, request
from daruma.graph.storage import open_postgres
from daruma.state.errors import DarumaError
from daruma.state.interrupts import ReplyRefused

SCRIPT: dict[str, Any] = {"plan": [phases("a"), phases("b")], "main": [calls("shout"), say()]}


def refused(run: Run, given: Any, said: str, **config: Any) -> None:
    """The run is refused with one line that says this, and the thread is as it was."""
    before, history = run.snapshot, list(run.graph.get_state_history(run.config))
    nodes = list(run.nodes)

    with pytest.raises(DarumaError) as error:
        run.send(given, **config)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert run.snapshot == before
    assert list(run.graph.get_state_history(run.config)) == history
    assert run.nodes == nodes


def new() -> Run:
    return Run(SCRIPT, tools=[shout])


def waiting() -> Run:
    """A thread whose plan waits for a person."""
    return new().ask(mode="plan_exec")


@pytest.fixture
def unfinished() -> Run:
    """A thread that was stopped between two nodes."""
    run = new()
    for _ in run.graph.stream({"messages": "Do it"}, run.config, interrupt_before=["tool"]):
        pass
    return run


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"message": "hi"}, "unknown key 'message' in the request; did you mean 'messages'?"),
        ({"messages": "hi", "zz": 1}, "unknown key 'zz' in the request; known: messages, mode"),
        ({"messages": "hi", 7: 1}, "unknown key 7 in the request"),
        ({}, "a request needs messages"),
        ({"messages": []}, "a request needs messages"),
        ({"messages": [("alien", "hi")]}, "the messages can not be read"),
        ({"messages": [42]}, "the messages can not be read"),
        ({"messages": [AIMessage("hi")]}, "the last message of a request has to be the user's"),
        ({"messages": [("user", "a"), ("assistant", "b")]}, "has to be the user's"),
        ({"messages": "hi", "mode": "team"}, "unknown mode 'team'; there are: direct_chat, react"),
        ({"messages": "hi", "mode": ["react"]}, "unknown mode ['react']"),
        ({"messages": "hi", "continuity": ["a"]}, "continuity is a dict, what the application"),
        ({"messages": "hi", "workspace": "/no/such/folder"}, "'/no/such/folder' is not a folder"),
        ({"messages": "hi", "workspace": __file__}, "is not a folder that is there"),
        ({"messages": "hi", "workspace": "a\0b"}, "is not a folder that is there"),
        ({"messages": "hi", "workspace": ""}, "is not a folder that is there"),
        ("hi", "a request is a dict with messages, not str"),
        ([HumanMessage("hi")], "a request is a dict with messages, not list"),
    ],
)
def test_a_request_that_can_not_be_run_is_refused(given: Any, said: str) -> None:
    """One line each, with what would do; the thread does not come into being."""
    refused(new(), given, said)


@pytest.mark.parametrize(
    "messages",
    [
        "hi",
        ("user", "hi"),
        ["hi"],
        [("user", "hi")],
        {"role": "user", "content": "hi"},
        HumanMessage("hi"),
        [HumanMessage("hi")],
    ],
)
def test_messages_may_have_any_usual_form(messages: Any) -> None:
    """As LangGraph's users write them."""
    (message,) = request({"messages": messages})["messages"]

    assert isinstance(message, HumanMessage)
    assert message.text == "hi"
    assert message.id


def test_a_request_is_stored_clean() -> None:
    """NUL and lone surrogates break databases and providers; ids are settled before storing.

    What the user said is not a tool's output: nothing of it is cut.
    """
    own = HumanMessage("a\0b\ud800", id="own")
    parts = HumanMessage([{"type": "text", "text": "a\0b\ud800"}])

    first, second = (request({"messages": each})["messages"][0] for each in (own, parts))

    assert (first.text, first.id) == ("a\N{REPLACEMENT CHARACTER}b?", "own")
    assert second.text == "a\N{REPLACEMENT CHARACTER}b?"
    assert own.text == "a\0b\ud800"
    assert len(request({"messages": "x" * 100_000})["messages"][0].text) == 100_000


def test_a_workspace_is_stored_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may have another current folder."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path)

    assert request({"messages": "hi", "workspace": "work"})["workspace"] == str(tmp_path / "work")
    assert request({"messages": "hi", "workspace": Path("work")})["workspace"].endswith("/work")  # type: ignore[union-attr]  # a text


def test_what_is_not_said_is_absent() -> None:
    """A mode of None is no mode, as forms send it."""
    assert set(request({"messages": "hi", "mode": None, "workspace": None})) == {"messages"}


def test_a_new_request_to_a_waiting_thread_is_refused() -> None:
    """LangGraph would drop the question."""
    refused(waiting(), {"messages": "hi"}, "waits for an answer (spec_review_request)")


def test_a_new_request_to_an_unfinished_thread_is_refused(unfinished: Run) -> None:
    """LangGraph would drop the work, results of tools included."""
    refused(unfinished, {"messages": "hi"}, "has unfinished work: resume it first")


def test_an_unfinished_thread_goes_on(unfinished: Run) -> None:
    """With None, as LangGraph has it."""
    unfinished.send(None)

    assert unfinished.nodes == ["tool", "main", "finish"]


@pytest.mark.parametrize("given", [None, Command(resume={"x": 1})])
def test_a_thread_that_is_not_there_is_refused(given: Any) -> None:
    """LangGraph would begin an empty one."""
    refused(new(), given, "there is no thread 't' to go on with")


def test_nothing_open_takes_no_answer() -> None:
    """An answer that comes twice does not start anything."""
    run = new().ask(mode="react")

    refused(run, Command(resume={"x": 1}), "nothing is open on thread 't'")


@pytest.mark.parametrize(
    "resume",
    ["yes", True, {"decision": "confirm"}, {"0" * 32: {"decision": "confirm"}}, {}, ["yes"]],
)
def test_an_answer_without_its_question_is_refused(resume: Any) -> None:
    """A scalar, a bare reply or an unknown id: only the id map says what is answered."""
    refused(waiting(), Command(resume=resume), "answers go by the id of their question")


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("yes", "has the form"),
        ({"decision": "confirm", "spec_review_id": "other"}, "the open review is 't/1/plan-1"),
        ({"decision": "edit", "plan": {"phases": []}}, "the plan has no phases"),
        (
            {"decision": "edit", "plan": {"phases": [{"id": "a", "depends_on": ["a"]}]}},
            "phases depend on each other: a -> a",
        ),
    ],
)
def test_a_reply_that_does_not_fit_is_refused(reply: Any, said: str) -> None:
    """PL-02: the review stays open."""
    run = waiting()
    refused(run, Command(resume={run.question.id: reply}), said)

    run.reply({"decision": "reject", "feedback": "smaller"})
    assert run.nodes[-2:] == ["plan", "__interrupt__"]


def test_the_asynchronous_door_is_the_same() -> None:
    """MO-09: the same words."""
    run = waiting()

    with pytest.raises(RequestRefused, match="waits for an answer"):
        asyncio.run(run.graph.ainvoke({"messages": "hi"}, run.config))
    with pytest.raises(ReplyRefused, match="has the form"):
        asyncio.run(run.graph.ainvoke(Command(resume={run.question.id: "yes"}), run.config))


def test_going_to_a_node_that_is_not_there_is_refused() -> None:
    """LangGraph logs a line and ends silently."""
    refused(new().ask(mode="react"), Command(goto="nowhere"), "nowhere")


def test_a_tool_may_ask_in_its_own_words() -> None:
    """LangGraph's ``interrupt()`` in an application's tool holds any value, and any reply fits."""

    def ask(text: str) -> str:
        """Ask a person."""
        return f"they said {interrupt(text)}"

    run = Run([calls("ask"), say()], tools=[ask]).ask()
    refused(run, {"messages": "hi"}, "waits for an answer")
    run.reply("yes")

    assert run.result.status == "completed"
    assert [m.text for m in run.messages if m.type == "tool"] == ["they said yes"]


@pytest.mark.parametrize(
    "messages",
    [
        [HumanMessage("And now?", id="q")],
        [
            HumanMessage("Look."),
            AIMessage("", tool_calls=[{"name": "shout", "args": {}, "id": "c"}]),
            HumanMessage("And now?"),
        ],
    ],
    ids=["an id that is taken", "a call without a result"],
)
def test_a_request_does_not_spoil_the_history(messages: list[Any]) -> None:
    """TL-03: whether refused or mended, nothing is overwritten and every request stays legal."""
    run = Run([say(), say()])
    run.send({"messages": [HumanMessage("Do it", id="q")]})

    with suppress(RequestRefused):
        run.send({"messages": messages})
    assert run.messages[0].text == "Do it"
    assert [problem for request_ in run.model.requests for problem in illegal(request_)] == []


def test_a_question_that_was_answered_takes_no_other_answer() -> None:
    """One reply for each question: at an earlier checkpoint LangGraph would take the old one."""
    run = waiting()
    earlier, question = run.snapshot.config, run.question
    run.reply({"decision": "confirm"})

    with pytest.raises(RequestRefused, match=r"nothing is open.*fork first"):
        run.graph.invoke(
            Command(resume={question.id: {"decision": "reject", "feedback": "no"}}), earlier
        )


@pytest.mark.parametrize("command", [Command(update={"plan": None}), Command()])
def test_a_command_can_only_answer(command: Command[Any]) -> None:
    """An update would slip past the door, and drop what is open."""
    refused(waiting(), command, "a command can only answer")


def test_a_workspace_that_holds_our_own_data_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The history of edits would be edited with it."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))

    with pytest.raises(RequestRefused, match="holds Daruma's own data"):
        request({"messages": "hi", "workspace": str(tmp_path)})


@pytest.mark.parametrize("key", ["api_key", "OPENAI_API_KEY", "db_password", "token"])
def test_secrets_in_configurable_are_refused(key: str) -> None:
    """LangGraph stores them in clear with every checkpoint."""
    run = new()

    with pytest.raises(RequestRefused, match="stored in clear"):
        run.graph.invoke({"messages": "hi"}, {"configurable": {"thread_id": "t", key: "sk-1"}})


@pytest.mark.parametrize(
    ("args", "said"),
    [({"text": 10**30}, "more than 64 bits"), ({"text": object()}, "is not JSON")],
)
def test_a_reply_that_can_not_be_kept_is_refused(args: Any, said: str) -> None:
    """It would be the one that counts, and no run could ever go on with it."""
    given = settings(tools={"policy": {"shout": "confirm"}})
    run = Run([calls("shout"), say()], settings=given, tools=[shout]).ask()
    (shown,) = run.question.value["approvals"]
    decision = {"approval_id": shown["approval_id"], "digest": shown["digest"]}
    edit = decision | {"decision": "edit", "args": args}

    refused(run, Command(resume={run.question.id: {"decisions": [edit]}}), said)

    run.decide(**{shown["approval_id"]: "approve"})
    assert run.result.status == "completed"


UNKEPT = ["a\0b", "a\ud800b", "a\x1b[2Jb", "a\nb", "x" * 501, None]


@pytest.mark.parametrize("thread_id", UNKEPT, ids=ascii)
def test_a_thread_id_that_no_database_keeps_is_refused(thread_id: str | None) -> None:
    """At the door of every call, before the database says it in words of its own."""
    with pytest.raises(RequestRefused, match=r"can not be stored|at most|None is none") as refused:
        build_graph(checkpointer=memory()).savepoints({"configurable": {"thread_id": thread_id}})

    assert "\n" not in str(refused.value)


FACES: dict[str, Any] = {
    "invoke": lambda graph, _, config: graph.invoke({"messages": "hi"}, config),
    "state": lambda graph, _, config: graph.get_state(config),
    "history": lambda graph, _, config: list(graph.get_state_history(config)),
    "update": lambda graph, _, config: graph.update_state(config, {"mode": "react"}),
    "look": lambda graph, _, config: graph.look(config),
    "follow": lambda graph, _, config: list(graph.follow(config)),
    "undo": lambda graph, _, config: graph.undo(config),
    "reopen": lambda graph, _, config: graph.reopen(config),
    "timeline": lambda graph, _, config: graph.timeline(config),
    "submit": lambda _, pg, config: submit(
        pg, {"messages": "hi"}, config["configurable"]["thread_id"]
    ),
    "delete": lambda _, pg, config: pg.checkpointer.delete_thread(
        config["configurable"]["thread_id"]
    ),
    "copy": lambda _, pg, config: pg.checkpointer.copy_thread(
        "t", config["configurable"]["thread_id"]
    ),
    "prune": lambda _, pg, config: pg.checkpointer.prune([config["configurable"]["thread_id"]]),
}


def test_every_face_refuses_such_an_id_in_one_line(postgres_url: str) -> None:
    """SE-03: no error of a driver reaches whoever embeds the graph."""
    with open_postgres(postgres_url) as pg:
        graph = build_graph(settings=settings(), persistence=pg)
        for thread_id in [each for each in UNKEPT if each is not None]:
            config = {"configurable": {"thread_id": thread_id}}
            for name, face in FACES.items():
                with pytest.raises(DarumaError) as refused:
                    face(graph, pg, config)
                assert "\n" not in str(refused.value), name
                assert status_of(refused.value) == 422, name


class Telling(dict[str, Any]):
    """A request that notes on which threads it is read."""

    threads: ClassVar[set[int]] = set()

    @override
    def get(self, *asked: Any) -> Any:
        self.threads.add(threading.get_ident())
        return super().get(*asked)


@pytest.mark.parametrize(("more", "here"), [({}, True), ({"workspace": "."}, False)])
async def test_only_a_request_that_names_a_folder_is_read_elsewhere(
    more: dict[str, Any], here: bool
) -> None:
    """A disk may be slow; to wake a thread for a few words takes longer than to read them."""
    Telling.threads.clear()

    await admit(Telling({"messages": "hi", **more}), None)

    assert (Telling.threads == {threading.get_ident()}) == here
