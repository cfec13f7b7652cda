"""What newcomers get wrong in a run: an error for people, one line, with what to do."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver as StockSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver as AsyncStockSaver
from langgraph.types import Command
from tests.parts import settings
from tests.scripted_runs import phases, say

from daruma import aopen_postgres, open_postgres
from daruma.graph.build import build_graph
from daruma.graph.models import ScriptedChatModel
from daruma.state.errors import DarumaError

PLAIN = settings(verification={"enabled": False}, evolution={"enabled": False})
T: Any = {"configurable": {"thread_id": "t"}}
ASK: Any = {"messages": [("user", "Do it")]}
PLAN: Any = {**ASK, "mode": "plan_exec"}
Use = Callable[[Any], Any]


def daruma(**given: Any) -> Any:
    model = ScriptedChatModel(script={"plan": [phases("Look")], "main": [say()] * 3})
    return build_graph(model, [], PLAIN, **given)


def kept() -> Any:
    return daruma(checkpointer=InMemorySaver())


def refused(use: Callable[[], Any]) -> str:
    """What a mistake is answered with: an error for people, in one line."""
    with pytest.raises(DarumaError) as no:
        use()

    assert "\n" not in str(no.value)
    return str(no.value)


# --- A config that names no thread, or is none.

WHICH = "say which thread"
CONFIGS: dict[str, tuple[Any, str]] = {
    "none": (None, WHICH),
    "empty": ({}, WHICH),
    "misspelt": ({"configurable": {"threadId": "t"}}, WHICH),
    "configurable is none": ({"configurable": None}, WHICH),
    "a text": ("t", "a config is a dict, not str"),
    "a list": ([T], "a config is a dict, not list"),
    "configurable is a text": ({"configurable": "t"}, "'configurable' of a config is a dict"),
    "no id": ({"configurable": {"thread_id": None}}, "a thread needs an id"),
    "an empty id": ({"configurable": {"thread_id": ""}}, "a thread needs an id"),
    "spaces": ({"configurable": {"thread_id": " "}}, "a thread needs an id"),
    "bytes": ({"configurable": {"thread_id": b"t"}}, "a thread's id is a text, not bytes"),
    "a list for an id": ({"configurable": {"thread_id": ["t"]}}, "is a text, not list"),
    "a yes": ({"configurable": {"thread_id": True}}, "is a text, not bool"),
    "NUL": ({"configurable": {"thread_id": "a\0"}}, "can not be stored"),
    "metadata": ({**T, "metadata": "x"}, "'metadata' of a config is a dict"),
    "tags": ({**T, "tags": 5}, "'tags' of a config is a list"),
    "a limit": ({**T, "recursion_limit": "9"}, "'recursion_limit' of a config is a whole number"),
    "no limit": ({**T, "recursion_limit": 0}, "'recursion_limit' of a config is a whole number"),
    "at once": ({**T, "max_concurrency": "9"}, "'max_concurrency' of a config is a whole number"),
}
READS: dict[str, Callable[[Any, Any], Any]] = {
    "invoke": lambda graph, config: graph.invoke(ASK, config),
    "ainvoke": lambda graph, config: asyncio.run(graph.ainvoke(ASK, config)),
    "stream": lambda graph, config: [*graph.stream(ASK, config)],
    "get_state": lambda graph, config: graph.get_state(config),
    "aget_state": lambda graph, config: asyncio.run(graph.aget_state(config)),
    "get_state_history": lambda graph, config: [*graph.get_state_history(config)],
    "update_state": lambda graph, config: graph.update_state(config, {"messages": "x"}),
    "timeline": lambda graph, config: graph.timeline(config),
    "undo": lambda graph, config: graph.undo(config),
    "savepoints": lambda graph, config: graph.savepoints(config),
    "reopen": lambda graph, config: graph.reopen(config),
}


@pytest.mark.parametrize("read", READS)
def test_a_config_that_names_no_thread(read: str) -> None:
    graph = kept()

    for name, (config, said) in CONFIGS.items():
        assert said in refused(partial(READS[read], graph, config)), name


@pytest.mark.parametrize(
    "config",
    [*({"configurable": {"thread_id": each}} for each in (7, "t", "Größe 1")), {"thread_id": "t"}],
)
def test_a_config_that_names_one(config: Any) -> None:
    """LangChain puts what a config does not know below ``configurable``: so reading does, too."""
    graph = kept()

    assert graph.invoke(ASK, config)["result"].status == "completed"
    assert graph.get_state(config).values["result"].status == "completed"
    for past in graph.get_state_history(config):  # their metadata are no plain dict
        assert graph.get_state(past.config).created_at == past.created_at


# --- What a run is given, beside what ``test_door.py`` tries.


def after(*runs: Any) -> Use:
    """Run these one after the other on a thread."""

    def use(graph: Any) -> None:
        for given in runs:
            graph.invoke(given, T)

    return use


CAN_ONLY = "a command can only answer"
GIVEN: dict[str, tuple[Use, str]] = {
    "another key": (after({"input": "x"}), "known: messages, mode, workspace, rubric, continuity"),
    "a number said": (after({"messages": [5]}), "can not be read: Unsupported message type"),
    "a role": (after({"messages": [("usr", "x")]}), "Unexpected message type: 'usr'"),
    "content": (
        after({"messages": [{"role": "user", "content": 5}]}),
        "the messages can not be read: content",
    ),
    "no answer": (after(PLAN, Command(resume=None)), CAN_ONLY),
    "going to": (after(ASK, Command(goto="main")), "only the table leads on"),
    "settings": (lambda graph: graph.invoke(ASK, T, context={"mod": 1}), "did you mean 'mode'?"),
    "a stream": (
        lambda graph: [*graph.stream(ASK, T, stream_mode="message")],
        "unknown stream_mode 'message'; did you mean 'messages'?",
    ),
    "streams": (
        lambda graph: [*graph.stream(ASK, T, stream_mode=["values", 5])],
        "unknown stream_mode 5; there are: values, updates",
    ),
    "durability": (
        lambda graph: graph.invoke(ASK, T, durability="synchronous"),
        "unknown durability 'synchronous'; there are: sync, async, exit",
    ),
    "state": (lambda graph: graph.update_state(T, "x"), "the state is changed by a dict, not str"),
}


@pytest.mark.parametrize("name", GIVEN)
def test_what_a_run_is_given(name: str) -> None:
    use, said = GIVEN[name]

    assert said in refused(lambda: use(kept()))


async def test_streams_that_there_are_none_of_on_a_loop() -> None:
    with pytest.raises(DarumaError, match="did you mean 'custom'"):
        await anext(kept().astream(ASK, T, stream_mode="costum"))


def test_a_reply_of_the_wrong_form() -> None:
    graph = kept()
    (question,) = graph.invoke(PLAN, T)["__interrupt__"]
    replies: list[Any] = [True, "yes", 5, [], {}, {"decision": "perhaps"}, {"decison": "confirm"}]
    for reply in replies:
        said = refused(partial(graph.invoke, Command(resume={question.id: reply}), T))
        assert "spec_review_request has the form" in said, reply

    out = graph.invoke(Command(resume={question.id: {"decision": "confirm"}}), T)

    assert out["result"].status == "completed"


def test_a_graph_that_keeps_no_threads() -> None:
    uses: list[Use] = [
        lambda graph: graph.invoke(None, T),
        lambda graph: graph.invoke(Command(resume="x"), T),
        lambda graph: graph.get_state(T),
        lambda graph: [*graph.get_state_history(T)],
        lambda graph: graph.update_state(T, {"messages": "x"}),
        lambda graph: graph.timeline(T),
        lambda graph: graph.undo(T),
        lambda graph: graph.reopen(T),
    ]
    for use in uses:
        assert "persistence" in refused(partial(use, daruma()))


# --- A database that is not open, is open otherwise, or was closed.


async def opens(opening: Any) -> None:
    async with opening:
        pass


async def awaits(opening: Any) -> None:
    await opening


def opens_plainly(opening: Any) -> None:
    with opening:
        pass


def opens_twice(opening: Any) -> None:
    opens_plainly(opening)
    opens_plainly(opening)


OPENED: dict[str, tuple[Use, str]] = {
    "not at all": (
        lambda url: open_postgres(url).checkpointer,  # type: ignore[attr-defined]
        "`with open_postgres() as",
    ),
    "with async": (lambda url: asyncio.run(opens(open_postgres(url))), "it is opened otherwise"),
    "without": (lambda url: opens_plainly(aopen_postgres(url)), "`async with aopen_postgres()"),
    "by await": (lambda url: asyncio.run(awaits(aopen_postgres(url))), "`async with aopen_"),
    "twice": (lambda url: opens_twice(open_postgres(url)), "it was opened before"),
    "a number": (lambda _: opens_plainly(open_postgres(5)), "the Postgres URL is a text, not int"),  # type: ignore[arg-type]
    "a path": (lambda _: opens_plainly(open_postgres("a.db")), "the Postgres URL can not be read"),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", OPENED)
def test_a_database_opened_in_another_way(name: str, postgres_url: str) -> None:
    use, said = OPENED[name]

    assert said in refused(lambda: use(postgres_url))


def _at_t(read: Callable[[Any, Any], Any], graph: Any) -> Any:
    return read(graph, T)


def test_a_graph_used_after_its_database_was_closed(postgres_url: str) -> None:
    with open_postgres(postgres_url) as pg:
        graph = daruma(persistence=pg)
    uses: list[Use] = [
        *(partial(_at_t, read) for read in READS.values()),
        lambda graph: graph.picture(T),
        lambda graph: graph.look(T),
        lambda _: pg.threads(),
        lambda _: pg.store.search(()),
        lambda _: pg.checkpointer.get_tuple(T),
    ]
    for use in uses:
        assert "was closed here" in refused(partial(use, graph))


async def test_a_synchronous_call_on_the_loop_of_its_database(postgres_url: str) -> None:
    """It waited for that loop, which waited for it: nothing ended."""
    async with aopen_postgres(postgres_url) as pg:
        for graph in (daruma(persistence=pg), daruma(store=pg.store)):
            reads = READS if graph.checkpointer else ["invoke", "stream"]
            for read in (each for each in reads if not each.startswith("a")):
                said = refused(partial(READS[read], graph, T))
                assert "on its own event loop can not end: use the async one" in said, read
        out = await daruma(persistence=pg).ainvoke(ASK, T)
        other = await asyncio.to_thread(daruma(persistence=pg).invoke, ASK, T)

    assert out["result"].status == other["result"].status == "completed"


def test_savers_of_langgraphs_own(empty_postgres_url: str) -> None:
    """No raw error of a driver reaches who embeds it."""

    def use(saver: Any) -> str:
        return refused(lambda: daruma(checkpointer=saver).invoke(ASK, T))

    async def on_its_loop() -> str:
        async with AsyncStockSaver.from_conn_string(empty_postgres_url) as saver:
            await saver.setup()
            return use(saver)

    with StockSaver.from_conn_string(empty_postgres_url) as saver:
        assert "the checkpointer can not be used" in use(saver)  # no setup()
    assert "the checkpointer can not be used" in use(saver)
    assert "use the async one" in asyncio.run(on_its_loop())
