"""Building the graph from its table, with what a user gives."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START
from langgraph.store.memory import InMemoryStore
from tests.parts import memory, settings
from tests.scripted_runs import RecordingModel, Run, calls, say, shout

from daruma.graph.build import build_graph, strict
from daruma.graph.machine import TABLE, node_of
from daruma.graph.models.faults import ModelUnavailable
from daruma.graph.models.scripted import ScriptedChatModel
from daruma.state.serializer import StrictSerializer
from daruma.state.settings import Settings
from daruma.state.settings.errors import SettingsError
from daruma.tools.calls.names import ToolNameConflictError


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
    """``daruma.yaml`` is found by itself, and what is wrong in it is said at once."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.yaml").write_text("main: [{say: From the file.}]")
    (tmp_path / "daruma.yaml").write_text(
        "{mode: direct_chat, llm: {model: 'scripted:script.yaml'}}"
    )
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


def test_two_tools_of_one_name_are_refused() -> None:
    """TL-05: when the graph is built, not when one of them is called."""

    @tool("shout")
    def other(text: str) -> str:
        """Say it loudly as well."""
        return text

    with pytest.raises(ToolNameConflictError, match="shout"):
        build_graph(tools=[shout, other], settings=settings())


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
        "continuity",
    }
    assert set(graph.invoke({"messages": "hi"})) <= {"messages", "plan", "result"}


def test_a_checkpointer_of_ones_own_reads_listed_types_only() -> None:
    """DU-05: LangGraph's imports whatever a row names; one that was chosen on purpose stays."""
    stock, chosen = InMemorySaver(), memory()

    assert isinstance(strict(stock).serde, StrictSerializer)
    assert strict(stock).storage is stock.storage  # type: ignore[attr-defined]  # the same data
    assert strict(chosen) is chosen
