"""Building the graph from its table, with what a user gives."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import NodeError
from langgraph.graph import END, START
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command
from tests.parts import (
    a_call,
    a_context,
    a_failure,
    a_phase,
    a_plan,
    a_state,
    a_task,
    memory,
    settings,
)
from tests.scripted_runs import RecordingModel, Run, calls, say, shout

from daruma.graph.build import build_graph, error_handler
from daruma.graph.errors import ExitRun, Failures
from daruma.graph.machine import ON_BUG, TABLE, node_of
from daruma.graph.models import ModelUnavailable, ScriptedChatModel
from daruma.graph.scope import RunScope
from daruma.graph.storage import strict_saver
from daruma.nodes.emergency import emergency
from daruma.state.calls import Dispatch
from daruma.state.channels import State
from daruma.state.emergency import emergency_of
from daruma.state.errors import StorageUnavailable
from daruma.state.failure import Code, Failure, TaskFailed
from daruma.state.serializer import StrictSerializer
from daruma.state.settings import Settings, SettingsError, UntrustedSettings, propose_trust


def test_what_is_drawn_is_the_table() -> None:
    """Every edge, labelled with its outcome where there is a choice."""
    drawn = build_graph(settings=settings()).get_graph()
    edges = {(edge.source, edge.target) for edge in drawn.edges if edge.source in TABLE}

    expected = {(n, node_of(t)) for n, (_, edges_) in TABLE.items() for t in edges_.values()}
    assert edges == expected
    labels = {edge.data for edge in drawn.edges if edge.source == "recovery"}
    assert labels <= set(TABLE["recovery"][1])  # of two that lead to one node it shows one
    assert len(labels) == len({node_of(t) for t in TABLE["recovery"][1].values()})


def test_one_error_handler_serves_all_nodes() -> None:
    """Each would be a node with a channel of its own, looked at in every superstep."""
    graph = build_graph(settings=settings())

    assert len(graph.nodes.keys() - TABLE.keys() - {START}) == 1
    assert len(set(graph.node_error_handler_map.values())) == 1
    assert graph.node_error_handler_map.keys() == TABLE.keys()


def test_nothing_is_needed_to_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No model, no key, no file: they are missed when they are used."""
    monkeypatch.chdir(tmp_path)

    assert build_graph().name == "daruma"


def test_settings_are_read_from_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``daruma.yaml`` is found by itself; what is wrong or not agreed to is said at once."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.yaml").write_text("main: [{say: From the file.}]")
    (tmp_path / "daruma.yaml").write_text(
        "{mode: direct_chat, llm: {model: 'scripted:script.yaml'}}"
    )
    with pytest.raises(UntrustedSettings, match=r"would change llm\.model"):
        build_graph()
    propose_trust(Settings).agree()
    run = Run([], graph=build_graph(checkpointer=memory())).ask("hi")
    (tmp_path / "daruma.yaml").write_text("{mod: direct_chat}")

    assert run.result.output == "From the file."
    with pytest.raises(SettingsError, match="did you mean 'mode'"):
        build_graph()


def test_a_model_may_be_given_by_name(tmp_path: Path) -> None:
    """``scripted:FILE`` here; ``openai:NAME`` likewise."""
    (tmp_path / "script.yaml").write_text("main: [{say: By name.}]")
    graph = build_graph(
        f"scripted:{tmp_path}/script.yaml", settings=settings(), checkpointer=memory()
    )

    assert Run([], graph=graph).ask().result.output == "By name."


@pytest.mark.parametrize("wrapped", ["with_retry", "with_fallbacks", "bind"])
def test_a_wrapped_model_is_refused(wrapped: str) -> None:
    """It has requests of its own that nobody would count; the error says where they belong."""
    model = ScriptedChatModel(script=[])
    given = {"with_fallbacks": ([model],)}.get(wrapped, ())
    wrap: Any = getattr(model, wrapped)

    with pytest.raises(ModelUnavailable, match=r"chat model.*llm.fallback_models"):
        build_graph(wrap(*given), settings=Settings())


def test_a_profile_that_is_not_there_is_refused() -> None:
    """TL-06: when the graph is built; a typing error must not show every tool, or none."""
    with pytest.raises(SettingsError, match="did you mean 'read_only'"):
        build_graph(settings=settings(tools={"profile": "readonly"}))


def test_a_profile_hides_tools_from_the_model(tmp_path: Path) -> None:
    """TL-06: in a whole run; what is called all the same is not there."""
    script = [calls("shout") | {"expect_tools": ["search"]}, say()]
    given = settings(tools={"profile": "read_only", "name_repair_attempts": 0})
    run = Run(script, tools=[shout], settings=given)
    run.ask(workspace=str(tmp_path))

    assert run.result.status == "completed", run.result.output
    assert [m.status for m in run.messages if m.type == "tool"] == ["error"]


def test_a_persistence_brings_its_checkpointer_and_its_store() -> None:
    """What ``open_postgres`` yields; one's own checkpointer and store go before it."""

    class Persistence:
        checkpointer = memory()
        store = InMemoryStore()

    own, kept = memory(), InMemoryStore()
    given: Any = Persistence()

    graph = build_graph(settings=settings(), persistence=given)
    assert (graph.checkpointer, graph.store) == (given.checkpointer, given.store)
    graph = build_graph(settings=settings(), persistence=given, checkpointer=own, store=kept)
    assert (graph.checkpointer, graph.store) == (own, kept)
    assert build_graph(settings=settings(), checkpointer=own).store is None


def test_the_settings_are_the_form_that_studio_shows() -> None:
    """FA-02: the graph's context schema."""
    schema = build_graph(settings=settings()).get_context_jsonschema()

    assert schema is not None
    assert set(schema["properties"]) == set(Settings.model_fields)


def test_the_input_is_what_a_request_may_say() -> None:
    """FA-02: and nothing of what only nodes write."""
    graph: Any = build_graph(RecordingModel(script=[say()]), settings=settings())

    assert set(graph.get_input_jsonschema()["properties"]) == {
        "messages",
        "mode",
        "workspace",
        "rubric",
        "continuity",
    }
    assert set(graph.invoke({"messages": "hi"})) <= {"messages", "plan", "result"}


def test_a_checkpointer_of_ones_own_reads_listed_types_only() -> None:
    """DU-05: LangGraph's imports whatever a row names; one that was chosen on purpose stays."""
    stock, chosen = InMemorySaver(), memory()

    assert isinstance(strict_saver(stock).serde, StrictSerializer)
    assert strict_saver(stock).storage is stock.storage  # type: ignore[attr-defined]  # the same data
    assert strict_saver(chosen) is chosen


# --- Error handlers send a bug on: always by ``Command``, with what the next node needs.

BUG = ZeroDivisionError("planted")


async def handled(
    node: str, state: Any, error: Any = BUG, under: Settings | None = None
) -> tuple[Any, dict[str, Any]]:
    raised = NodeError(node=node, error=error)
    runtime: Runtime[Settings] = Runtime()
    handler = error_handler(under or Settings())
    command: Command[Any] = await handler(state, raised, runtime, {})
    update = command.update
    assert isinstance(update, dict)
    return command.goto, update


@pytest.mark.parametrize("node", sorted(set(TABLE) - {"tool"}))
async def test_a_bug_goes_where_the_machine_says(node: str) -> None:
    """A dict instead of a ``Command`` would end the run silently."""
    goto, update = await handled(node, a_state())

    assert goto == ON_BUG[node]
    assert update


@pytest.mark.parametrize("error", [BUG, "ZeroDivisionError('planted')"])
async def test_the_failure_names_node_and_bug(error: Any) -> None:
    """After a crash in the handler the exception comes as its ``repr``."""
    _, update = await handled("verify", a_state(), error)

    failure: Failure = update["failure"]
    assert (failure.code, failure.node) == ("internal_error", "verify")
    assert "planted" in failure.message


async def test_a_tools_bug_answers_its_call() -> None:
    """TL-03: so that it joins its siblings."""
    dispatch = Dispatch(task=a_task(), call=a_call("c1"))
    goto, update = await handled("tool", dispatch)

    assert goto == "main"
    assert update["calls"].status == "failed"
    (message,) = update["messages"]
    assert (message.tool_call_id, message.status) == ("c1", "error")
    assert message.text == "Error: ZeroDivisionError: planted"


async def test_a_bug_in_merge_closes_the_calls_of_helpers() -> None:
    """PL-04, PL-08: they were told as begun; which of them was in the way nobody knows."""
    told: list[dict[str, Any]] = []
    raised = NodeError(node="merge", error=BUG)
    runtime: Runtime[Settings] = Runtime(stream_writer=told.append)
    calls = tuple(a_call(id_, delegated=True) for id_ in ("a", "b"))

    await error_handler(Settings())(a_state(calls=calls), raised, runtime, {})

    assert [(each["type"], each["call_id"], each["ok"]) for each in told] == [
        ("tool_completed", "a", False),
        ("tool_completed", "b", False),
    ]


async def test_a_bug_at_the_end_still_has_an_error_and_a_result() -> None:
    """Never a silent end: finish needs the one; the first failure is told, if there was one."""
    ending, error = await handled("emergency", a_state())
    goto, update = await handled("finish", a_state())
    _, known = await handled("finish", a_state(error=emergency_of(a_failure())))

    assert (ending, error["error"].error_code) == ("finish", "internal_error")
    assert goto == END
    assert (update["result"].status, update["result"].task_id) == ("failed", "t/1")
    assert update["result"].error_struct.error_code == "internal_error"
    assert known["result"].error_struct.error_code == "llm_failure"


def fallen(failure: Failure | None = None) -> State:
    """The state of a task whose phase has failed."""
    return a_state(plan=a_plan(a_phase("a", status="failed"), current="a"), failure=failure)


async def test_a_bug_in_rollback_has_a_code_of_its_own() -> None:
    """What it left behind is not known: nothing may be built on it."""
    _, update = await handled("rollback", fallen())

    assert update["failure"].code == "rollback_failed"


async def test_a_bug_in_hold_asks_once_more() -> None:
    """RO-03: the thread is still held; one whose question can not be asked is given up at last."""
    _, first = await handled("hold", fallen(a_failure("rollback_failed", "rollback")))
    _, second = await handled("hold", fallen(first["failure"]))

    assert first["failure"].code == "rollback_failed"
    assert second["failure"].code == "internal_error"


async def test_a_bug_in_intake_leaves_nothing_of_the_task_before() -> None:
    """Its plan and its verification are another's."""
    _, update = await handled("intake", a_state(origin=a_failure()))

    assert (update["plan"], update["verification"]) == (None, None)
    assert update["origin"] == update["failure"]


async def test_a_bug_in_recovery_does_not_hide_what_it_recovered_from() -> None:
    """EM-04: the code is that of the first failure, not of the recovery's."""
    state = a_state(failure=a_failure())
    _, update = await handled("recovery", state)
    error = (await emergency(a_state(**{"failure": state.failure} | update), a_context()))["error"]

    assert error is not None
    assert error.error_code == "llm_failure"


FAILURES = st.lists(
    st.sampled_from(["llm_failure", "timeout", "loop_detected", "workspace_conflict"]), min_size=1
)
LATE = st.lists(st.sampled_from(["recovery", "recovery again", "settle", "emergency"]), max_size=4)


@given(FAILURES, LATE)
def test_the_code_is_that_of_the_first_failure(codes: list[Code], late: list[str]) -> None:
    """EM-04: whatever fails after it, and whichever bugs what deals with it has."""

    async def walked() -> str:
        values: dict[str, Any] = {"failure": a_failure(codes[0])}
        for code in codes[1:]:  # recovery keeps the first one as the origin
            values = {"origin": values.get("origin") or values["failure"]}
            values |= {"failure": a_failure(code)}
        for node in late:
            _, update = await handled(node.partition(" ")[0], a_state(**values))
            values |= {key: update[key] for key in ("failure", "origin", "error") if key in update}
        stated = (await emergency(a_state(**values), a_context()))["error"]
        assert stated is not None
        return stated.error_code

    assert asyncio.run(walked()) == codes[0]


@pytest.mark.parametrize("node", ["emergency", "finish"])
async def test_handlers_speak_the_language_of_the_settings(node: str) -> None:
    """EM-03: a bug is told in it too."""
    chinese = settings(fallback_chain={"emergency": {"language": "zh"}})
    _, update = await handled(node, a_state(), under=chinese)

    told = update["error"] if node == "emergency" else update["result"].error_struct
    assert told.message == "内部错误：ZeroDivisionError: planted"
    if node == "finish":
        assert update["result"].output == f"任务以 failed 结束：{told.message}"


async def test_without_the_chain_a_handler_raises_what_it_was_called_for() -> None:
    """EM-05: such as a router's bug; after a crash, what is left of it."""
    off = settings(fallback_chain={"enabled": False})
    with pytest.raises(ExitRun) as live:
        await handled("main", a_state(), under=off)
    with pytest.raises(ExitRun) as stored:
        await handled("main", a_state(), "ZeroDivisionError('planted')", under=off)

    assert live.value.error is BUG
    assert isinstance(stored.value.error, TaskFailed)


async def test_without_emergency_a_bug_in_finish_is_what_the_run_ends_with() -> None:
    """EM-05: but for a failure before it, which comes first (EM-04)."""
    off = settings(fallback_chain={"emergency": {"enabled": False}})
    raised = Failures()
    runtime: Runtime[Settings] = Runtime()
    failed = a_state(failure=a_failure(), error=emergency_of(a_failure()))
    of_run, error = RunScope(failures=raised).attach(None), NodeError(node="finish", error=BUG)

    await error_handler(Settings())(a_state(), error, runtime, of_run)
    assert raised.end is None
    command = await error_handler(off)(a_state(), error, runtime, of_run)
    assert raised.end is BUG
    assert isinstance(command.update, dict)
    assert command.update["result"].error_struct is None
    raised.end = None
    await error_handler(off)(failed, error, runtime, of_run)
    assert raised.end is None


async def test_a_run_that_is_cut_off_from_its_storage_is_left_at_once() -> None:
    """DU-04: also where that was found out beside the node itself."""
    gone = StorageUnavailable("gone")

    with pytest.raises(ExitRun) as left:
        await handled("main", a_state(), gone)

    assert left.value.error is gone
