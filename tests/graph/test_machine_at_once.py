"""Calls of one answer go on at once, and tools that block hold up no other run."""

import asyncio
import itertools
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config
from langchain_core.tools import StructuredTool, tool
from langgraph.types import Command
from pydantic import PrivateAttr
from tests.parts import memory
from tests.parts import settings as settings_of
from tests.scripted_runs import Run, call, calls, illegal, say, shout, unclosed
from typing_extensions import override

from daruma.graph.build import build_graph
from daruma.graph.models import AnsweringModel, ScriptedChatModel
from daruma.graph.storage import aopen_postgres, open_postgres
from daruma.state.interrupts import ReplyRefused
from daruma.state.settings import Settings

MANY = 20
"""Calls in one answer: more than Python starts threads for by itself, on a small machine."""

SETTINGS = Settings.model_validate(
    {"tools": {"max_calls_per_turn": 50}, "evolution": {"enabled": False}}
)
GIVEN = {"messages": [("user", "Do it")]}


def thread(name: str) -> Any:
    return {"configurable": {"thread_id": name}}


def graph(function: Any, number: int, effect: str | None = "none", **persistence: Any) -> Any:
    """A machine whose model calls the function so many times in one answer."""
    made = tool(function)
    made.metadata = {"daruma": {"effect": effect}} if effect else None
    turn = calls(*(call(made.name, n=each) for each in range(number)))
    model = ScriptedChatModel(script={"main": [turn, say()]})
    return build_graph(model, [made], SETTINGS, **(persistence or {"checkpointer": memory()}))


class Meeting:
    """A tool whose calls all wait for one another: with one too few at once they never meet."""

    def __init__(self, number: int) -> None:
        self._all = threading.Barrier(number)

    def meet(self, n: int) -> str:
        """Meet the others."""
        self._all.wait(30)
        return str(n)

    async def ameet(self, n: int) -> str:
        """Meet the others."""
        return await asyncio.get_running_loop().run_in_executor(_OWN, self.meet, n)


_OWN = ThreadPoolExecutor(MANY)


def statuses(out: dict[str, Any]) -> set[str]:
    return {each.status for each in out["messages"] if each.type == "tool"}


@pytest.mark.parametrize("effect", ["none", None])
@pytest.mark.parametrize("function", [Meeting.meet, Meeting.ameet])
def test_all_calls_of_an_answer_go_on_at_once_in_a_synchronous_run(
    function: Callable[..., Any], effect: str | None
) -> None:
    """Each has a thread of LangGraph's wait for it: there must be enough of these."""
    meeting = Meeting(MANY)
    meet = getattr(meeting, function.__name__)

    out = graph(meet, MANY, effect).invoke(GIVEN, thread("t"))

    assert statuses(out) == {"success"}


@pytest.mark.parametrize("effect", ["none", None])
async def test_all_calls_of_an_answer_go_on_at_once_in_an_asynchronous_run(
    effect: str | None,
) -> None:
    """Those with an effect too, unless it is one on the same workspace."""
    out = await graph(Meeting(MANY).meet, MANY, effect).ainvoke(GIVEN, thread("t"))

    assert statuses(out) == {"success"}


def test_whoever_asks_for_less_at_once_gets_it() -> None:
    """LangGraph's own ``max_concurrency`` stands, given with the run or with the graph."""
    seen: list[Any] = []

    def work(n: int) -> str:
        """Work."""
        seen.append(ensure_config().get("max_concurrency"))
        return str(n)

    one: RunnableConfig = {"max_concurrency": 1}
    graph(work, 1).invoke(GIVEN, one | thread("t"))
    graph(work, 1).with_config(one).invoke(GIVEN, thread("t"))

    assert seen == [1, 1]


class Blocking:
    """A tool that blocks until it is let go, and knows when all calls of it have begun."""

    def __init__(self, number: int) -> None:
        self.all_begun, self.go = threading.Event(), threading.Event()
        self._number = number
        self._lock = threading.Lock()

    def block(self, n: int) -> str:
        """Block."""
        with self._lock:
            self._number -= 1
            if not self._number:
                self.all_begun.set()
        assert self.go.wait(60)
        return str(n)


def busy() -> Any:
    """A script that asks, calls a tool that blocks, and runs a command."""
    command = calls(call("run_command", command="echo hello"))
    return {"main": [calls("shout"), command, say()]}


ALLOWED = Settings.model_validate(
    {
        "tools": {"policy": {"run_command": "allow"}},
        "evolution": {"enabled": False},
        "rollback": {"snapshots": False},
    }
)


@pytest.mark.parametrize("number", [8, 40])
async def test_blocking_tools_hold_up_no_other_run(
    number: int, postgres_url: str, tmp_path: Path
) -> None:
    """Neither its checkpoints nor its model calls, its own tools and commands."""
    blocking = Blocking(number)
    async with aopen_postgres(postgres_url) as pg:
        held = graph(blocking.block, number, persistence=pg)
        other: Any = build_graph(ScriptedChatModel(script=busy()), [shout], ALLOWED, persistence=pg)
        waiting = asyncio.ensure_future(held.ainvoke(GIVEN, thread("held")))
        await asyncio.get_running_loop().run_in_executor(_OWN, blocking.all_begun.wait)

        out = await other.ainvoke(GIVEN | {"workspace": str(tmp_path)}, thread("other"))
        was_waiting = not waiting.done()
        blocking.go.set()
        ended = await waiting

    assert was_waiting
    assert out["result"].status == ended["result"].status == "completed"
    assert statuses(out) == statuses(ended) == {"success"}


@pytest.mark.long
@pytest.mark.parametrize("number", [8, 40])
def test_blocking_tools_hold_up_no_other_synchronous_run(
    number: int, postgres_url: str, tmp_path: Path
) -> None:
    """All of them share one loop in the background."""
    blocking = Blocking(number)
    with open_postgres(postgres_url) as pg, ThreadPoolExecutor(1) as own:
        held = graph(blocking.block, number, persistence=pg)
        other: Any = build_graph(ScriptedChatModel(script=busy()), [shout], ALLOWED, persistence=pg)
        waiting = own.submit(held.invoke, GIVEN, thread("held"))
        blocking.all_begun.wait()

        out = other.invoke(GIVEN | {"workspace": str(tmp_path)}, thread("other"))
        was_waiting = not waiting.done()
        blocking.go.set()

    assert was_waiting
    assert out["result"].status == waiting.result()["result"].status == "completed"
    assert statuses(out) == statuses(waiting.result()) == {"success"}


@pytest.mark.long
@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
async def test_many_threads_at_once_all_come_to_their_end(way: str, postgres_url: str) -> None:
    """They are many more than there are connections: each waits its turn, none gives up."""
    turn = calls(*(call("shout", text=f"hello {each}") for each in range(2)))

    async def run(pg: Any, n: int) -> Any:
        model = ScriptedChatModel(script={"main": [turn, say()]})
        machine: Any = build_graph(model, [shout], SETTINGS, persistence=pg)
        if way == "ainvoke":
            return await machine.ainvoke(GIVEN, thread(f"t{n}"))
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(own, machine.invoke, GIVEN, thread(f"t{n}"))

    async with aopen_postgres(postgres_url) as pg:
        with ThreadPoolExecutor(25) as own:
            ended = await asyncio.gather(*(run(pg, n) for n in range(40)))

    assert [out["result"].status for out in ended] == ["completed"] * 40


HANGING = """
import threading
from daruma import ScriptedChatModel, Settings, build_graph

def hang(n: int) -> str:
    "Hang for ever."
    threading.Event().wait()

turn = {"calls": [{"name": "hang", "args": {"n": n}} for n in range(100)]}
script = {"main": [turn, {"calls": [{"name": "work", "args": {"n": 0}}]}, {"say": "Done."}]}

def work(n: int) -> str:
    "Work."
    return "worked"

settings = Settings.model_validate(
    {"tools": {"timeout": 1, "max_calls_per_turn": 100}, "evolution": {"enabled": False}}
)
graph = build_graph(ScriptedChatModel(script=script), [hang, work], settings)
out = graph.invoke({"messages": [("user", "Do it")]})
told = [each.text for each in out["messages"] if each.type == "tool"]
print(sum("hang did not end in 1 s" in each for each in told), told[-1], out["result"].status)
"""


@pytest.mark.long
def test_a_hundred_tools_that_hang_hinder_neither_the_run_nor_the_exit() -> None:
    """TL-21: their time is limited, and nothing waits for their threads."""
    done = subprocess.run(
        [sys.executable, "-c", HANGING], capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "100 worked completed\n", "")


# --- Whatever a model sends, every call has exactly one result and the next request is legal.

NAMES = st.sampled_from(
    [
        *("shout", "Shout", "functions.shout", "pay", "banned", "fall", "hidden", "nope", ""),
        *("öß\u202e", "a" * 100, "shout ", "run_command", "\ud800"),
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
ARGS = (
    st.just({"text": "hi"})
    | st.fixed_dictionaries({"text": JSON})
    | st.dictionaries(st.text(max_size=8), JSON, max_size=3)
)
RAW = st.sampled_from(
    [
        '{"text": "hi"',
        "{'text': 'hi'}",
        '{"text": "hi",}',
        '"{\\"text\\": 1}"',
        "",
        "nonsense",
        "[]",
    ]
) | st.text(max_size=30)
IDS = st.sampled_from(["a", "b", "", None, "call_0", "x" * 80])
CALLS = st.tuples(NAMES, ARGS | RAW, IDS)
TEXTS = st.sampled_from(
    [
        "",
        "Done.",
        '{"name": "shout", "arguments": {"text": "hi"}}',
        '{"name": "nope", "arguments": {}}',
        "<tool_call>{oops</tool_call>",
        "  ",
    ]
)
ANSWERS = st.tuples(TEXTS, st.lists(CALLS, max_size=6), st.sampled_from(["stop", "stop", "length"]))
REPAIRS = st.sampled_from(
    [
        "",
        "no",
        '{"repairs": []}',
        '{"repairs": [{"tool_call_id": "a", "name": "shout"}]}',
        '{"repairs": [{"tool_call_id": "a", "name": "hidden"}]}',
        '{"repairs": [{"tool_call_id": "a", "arguments": {"text": "hi"}}]}',
    ]
)


class Babbler(AnsweringModel):
    """A model that says anything at all, and then that it is done."""

    answers: list[Any]
    repair: str
    _requests: list[list[BaseMessage]] = PrivateAttr(default_factory=list)

    @property
    def requests(self) -> list[list[BaseMessage]]:
        return self._requests

    @property
    @override
    def _llm_type(self) -> str:
        return "babbler"

    @override
    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    @override
    def answer(
        self,
        messages: Sequence[BaseMessage],
        *,
        metadata: Mapping[str, Any],
        tools: Sequence[Mapping[str, Any]],
    ) -> AIMessage:
        self._requests.append(list(messages))
        if metadata["daruma_role"] == "repair":
            return AIMessage(self.repair)
        number = metadata["daruma_call"]
        return spoken(*self.answers[number]) if number < len(self.answers) else AIMessage("Done.")


def spoken(text: str, calls: Sequence[Any], finish_reason: str) -> AIMessage:
    return AIMessage(
        text,
        tool_calls=[
            {"name": name, "args": args, "id": id_}
            for name, args, id_ in calls
            if isinstance(args, dict)
        ],
        invalid_tool_calls=[
            {"name": name, "args": args, "id": id_, "error": None}
            for name, args, id_ in calls
            if isinstance(args, str)
        ],
        response_metadata={"finish_reason": finish_reason},
    )


class Tools:
    """Tools that count what really ran."""

    def __init__(self) -> None:
        self.ran: Counter[str] = Counter()

    def all(self) -> list[Any]:
        return [self.named(name) for name in ("shout", "pay", "banned", "hidden")] + [fall]

    def named(self, name: str) -> Any:
        def tool(text: str) -> str:
            self.ran[name] += 1
            return text.upper()

        return StructuredTool.from_function(tool, name=name, description=f"Do {name}.")


def fall(text: str) -> str:
    """Fall over."""
    raise ValueError(text)


SETTINGS_MACHINE_ANY_ANSWER = {
    "policy": {"pay": "confirm", "banned": "deny"},
    "profile": "some",
    "profiles": {"some": ["shout", "pay", "banned", "fall"]},
}


def run_to_the_end(model: Babbler, tools: Tools, limit: int | None, decisions: list[str]) -> Run:
    """A run whose approvals are answered in turn."""
    given_settings = settings_of(tools=SETTINGS_MACHINE_ANY_ANSWER | {"max_calls_per_turn": limit})
    graph = build_graph(model, tools.all(), given_settings, checkpointer=memory())
    run = Run({"main": []}, graph=graph).ask()
    for decision in itertools.cycle(decisions):
        if run.state.result is not None:
            return run
        run.decide(**{a["approval_id"]: decision for a in run.question.value["approvals"]})
    raise AssertionError("there is always another decision")


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    answers=st.lists(ANSWERS, min_size=1, max_size=3),
    repair=REPAIRS,
    limit=st.sampled_from([None, 1, 3]),
    decisions=st.lists(st.sampled_from(["approve", "deny"]), min_size=1, max_size=3),
)
def test_every_call_has_one_result_and_every_request_is_legal(
    answers: list[Any], repair: str, limit: int | None, decisions: list[str]
) -> None:
    """TL-03: and what ran is what the history says was done."""
    model, tools = Babbler(answers=answers, repair=repair), Tools()

    run = run_to_the_end(model, tools, limit, decisions)

    assert [problem for request in model.requests for problem in illegal(request)] == []
    assert unclosed(run.events) == []
    results = [message for message in run.messages if message.type == "tool"]
    said = [message for message in run.messages if isinstance(message, AIMessage)]
    made = [f"{m.id}:{c['id']}" for m in said for c in (*m.tool_calls, *m.invalid_tool_calls)]
    assert sorted(str(message.id) for message in results) == sorted(made)
    assert Counter(str(m.name) for m in results if m.status == "success") == tools.ran
    assert tools.ran["banned"] == tools.ran["hidden"] == 0


# --- What a person must approve does not run before, and what was denied does not run at all.

ASKED = [calls(call(id_="one", text="1"), call(id_="two", text="2")), say()]


REQUIRED = {"decision": "confirm", "required": True}
RAN = "__interrupt__ gate tool main"
BLOCKED = "gate settle emergency finish"


def start(heard: list[str], rule: Any = "confirm", script: Any = None) -> Run:
    def shout(text: str) -> str:
        """Say it loudly."""
        heard.append(text)
        return text.upper()

    given = settings_of(tools={"policy": {"shout": rule}})
    return Run(script or ASKED, settings=given, tools=[shout]).ask()


def check(run: Run) -> None:
    """What holds at every end."""
    assert illegal(run.messages) == []
    assert [problem for request in run.model.requests for problem in illegal(request)] == []
    assert unclosed(run.events) == []


@pytest.mark.parametrize(
    ("rule", "replies", "heard", "nodes", "status"),
    [
        ("confirm", ["approve approve"], "12", f"{RAN.replace('tool', 'tool tool')} finish", None),
        ("confirm", ["- approve", "approve -"], "21", f"{RAN} {RAN} finish", None),
        ("confirm", ["deny approve"], "2", f"{RAN} finish", None),
        ("confirm", ["deny deny"], "", "__interrupt__ gate main finish", None),
        (REQUIRED, ["deny -"], "", f"__interrupt__ {BLOCKED}", "blocked"),
        (REQUIRED, ["approve deny"], "", f"__interrupt__ {BLOCKED}", "blocked"),
        (REQUIRED, ["approve -", "- deny"], "1", f"{RAN} __interrupt__ {BLOCKED}", "blocked"),
        (REQUIRED | {"deny_effect": "continue"}, ["deny approve"], "2", f"{RAN} finish", None),
    ],
)
def test_what_was_decided_is_what_happens(
    rule: Any, replies: list[str], heard: str, nodes: str, status: str | None
) -> None:
    """TL-02, TL-12 to TL-15: at once or one by one; nothing runs before its yes, or behind a no.

    Of one reply nothing runs once a required approval is denied; what ran before it has run.
    """
    said: list[str] = []
    run = start(said, rule)
    first = run.question.value["approvals"]
    assert (said, run.nodes[:2], run.state.result) == ([], ["intake", "main"], None)
    for reply in replies:
        words = zip(("one", "two"), reply.split(), strict=True)
        decided = {id_: word for id_, word in words if word != "-"}
        open_now = [each for each in first if each["approval_id"] in decided or reply == replies[0]]
        assert run.question.value["approvals"] == open_now
        run.decide(**decided)

    assert "".join(sorted(said) if len(replies) == 1 else said) == heard
    assert " ".join(run.nodes[2:]) == nodes
    assert run.result.status == (status or "completed")
    error = run.result.error_struct
    assert (error.error_code if error else None) == ("approval_denied" if status else None)
    results = {m.tool_call_id: m.status for m in run.messages if m.type == "tool"}
    texts = {"one": "1", "two": "2"}
    assert results == {id_: "success" if text in heard else "error" for id_, text in texts.items()}
    check(run)


def test_an_edited_call_runs_as_edited() -> None:
    """TL-14: and never as it was."""
    heard: list[str] = []
    run = start(heard, script=[calls(call(id_="one", text="loud")), say()])
    (approval,) = run.question.value["approvals"]
    decision = {"approval_id": "one", "digest": approval["digest"], "decision": "edit"}
    run.reply({"decisions": [decision | {"args": {"text": "soft"}}]})

    assert heard == ["soft"]
    check(run)


@pytest.mark.parametrize(
    "change", [{"digest": "x"}, {"approval_id": "other"}, {"args": {"text": "never shown"}}]
)
def test_an_answer_to_something_else_changes_nothing(change: dict[str, Any]) -> None:
    """TL-13: a wrong id or digest, or other arguments than shown; the approval stays open."""
    heard: list[str] = []
    run = start(heard)
    before = run.snapshot
    (approval, _) = run.question.value["approvals"]
    decision = {"approval_id": "one", "digest": approval["digest"], "decision": "approve"}

    with pytest.raises(ReplyRefused):
        run.send(Command(resume={run.question.id: {"decisions": [decision | change]}}))
    assert run.snapshot == before
    assert heard == []


def test_equal_ids_in_a_later_answer_are_asked_anew() -> None:
    """Servers repeat ids of calls: an old approval does not speak for a new call."""
    heard: list[str] = []
    again = [calls(call(id_="one", text=text)) for text in ("first", "second")]
    run = start(heard, script=[*again, say()]).decide(one="approve")

    assert heard == ["first"]
    assert run.question.value["approvals"][0]["args"] == {"text": "second"}
    run.decide(one="approve")
    assert heard == ["first", "second"]
    check(run)


def test_arguments_of_a_wrong_type_do_not_end_the_task(tmp_path: Any) -> None:
    """TL-12: they are the model's mistake; it is told, and the loop goes on."""
    script = {
        "main": [calls(call("run_command", command=["ls"])), say()],
        "repair": [say("I can not say what was meant.")],
    }
    run = Run(script)
    run.ask(workspace=str(tmp_path))

    assert run.result.status == "completed"
    check(run)
