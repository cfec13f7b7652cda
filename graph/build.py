"""Building the graph: the table, its nodes, and the live things they work with."""

from collections.abc import Callable, Collection, Iterable, Mapping
from copy import copy
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Send

from daruma.graph.branch import add_branch
from daruma.graph.bridge import async_node
from daruma.graph.compiled import Machine
from daruma.graph.contexts import Contexts
from daruma.graph.evolution import Evolution
from daruma.graph.evolving.asking import AskText, ask_with
from daruma.graph.handlers import error_handler
from daruma.graph.journals import journals_of
from daruma.graph.leases import leases_of
from daruma.graph.machine import (
    ENTRY,
    MEMBER_ENTRY,
    TABLE,
    Each,
    Router,
    Target,
    node_of,
    of_a_member,
)
from daruma.graph.node_run import run_quietly
from daruma.graph.outputs import outputs_of
from daruma.graph.replies import replies_of
from daruma.graph.tiers import Node
from daruma.state.channels import KEPT_WHOLE, Input, Output, State, refuse_misfits
from daruma.state.serializer import StrictSerializer
from daruma.state.settings import Settings
from daruma.state.stored import STORED_TYPES
from daruma.tools.calls.registry import Registry

if TYPE_CHECKING:
    from daruma.graph.storage.postgres import Postgres

Builder = StateGraph[State, Settings, Input, Output]


def build_graph(
    model: BaseChatModel | str | None = None,
    tools: Iterable[BaseTool | Callable[..., Any]] = (),
    settings: Settings | None = None,
    persistence: "Postgres | None" = None,
    *,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    store: BaseStore | None = None,
) -> Machine:
    """Build the machine as a compiled LangGraph graph.

    ``model`` is a chat model, ``"openai:NAME"`` or ``"scripted:FILE"``; None takes the settings'.
    ``tools`` are LangChain tools or functions, shown beside the built-in ones. ``settings`` None
    reads ``daruma.yaml`` and ``DARUMA_*``. ``persistence`` is what ``open_postgres`` yields, with
    its checkpointer and its store; a checkpointer and a store of one's own go in their place.

    Raises :class:`~daruma.state.settings.errors.SettingsError` for settings that can not be used,
    :class:`~daruma.graph.models.errors.ModelUnavailable` for a model that is none,
    or a fallback that means nothing,
    :class:`~daruma.tools.calls.names.ToolNameConflictError` for names that could mean two tools,
    and
    its kin for tools that can not work as declared,
    :class:`~daruma.tools.sandbox.sandbox.SandboxUnavailable` for a level that can not be there.
    """
    settings = settings or Settings.load()
    given = persistence.checkpointer if persistence and checkpointer is None else checkpointer
    saver = None if given is None else strict(given)
    store = persistence.store if persistence and store is None else store
    contexts = Contexts(model, Registry(tools), settings)
    compiled = builder(contexts).compile(checkpointer=saver, store=store, name="daruma")
    run_quietly(compiled, TABLE)
    member = cache(partial(member_of, contexts))
    evolution = Evolution(partial(ask_under, contexts))
    return Machine.of(compiled, settings, contexts.check, member, evolution)


def ask_under(contexts: Contexts, settings: Settings) -> AskText:
    """Return what evolution asks the auxiliary model with, under a run's settings."""
    return ask_with(contexts.asker(settings.llm), settings)


@runtime_checkable
class Expecting(Protocol):
    """A checkpointer that can check what it reads."""

    def expecting(
        self, check: Callable[[Mapping[str, Any]], None], passing: Collection[str]
    ) -> BaseCheckpointSaver[Any]:
        """Return one over the same data that does, and knows which channels are kept whole."""


def strict(checkpointer: BaseCheckpointSaver[Any]) -> BaseCheckpointSaver[Any]:
    """Return a checkpointer over the same data that reads back listed types only.

    LangGraph's own serializer imports whatever a row names. One that was chosen on purpose stays.
    Ours refuses what is no value of the machine's channels, too.
    """
    if isinstance(checkpointer, Expecting):
        return checkpointer.expecting(refuse_misfits, KEPT_WHOLE)
    for place_of in (replies_of, outputs_of, leases_of, journals_of):
        place_of(checkpointer)  # made before the copy, which shares it
    if type(checkpointer.serde) is not JsonPlusSerializer:
        return checkpointer
    strictly = copy(checkpointer)
    strictly.serde = StrictSerializer(STORED_TYPES)
    return strictly


def builder(contexts: Contexts) -> Builder:
    """Turn the table into a graph that is not compiled yet."""
    graph: Builder = StateGraph(
        State, context_schema=Settings, input_schema=Input, output_schema=Output
    )
    _fill(graph, TABLE, ENTRY, contexts)
    return graph


def member_of(contexts: Contexts) -> CompiledStateGraph[State, Settings, State, State]:
    """Compile the machine of a team member: the same nodes, on one phase; it saves with its task.

    It is run within the node ``member``, so that its steps are kept in a namespace of their own.
    """
    graph: StateGraph[State, Settings, State, State] = StateGraph(State, context_schema=Settings)
    _fill(graph, of_a_member(), MEMBER_ENTRY, contexts)
    compiled = graph.compile(name="member")
    run_quietly(compiled, of_a_member())
    return compiled


def _fill(graph: Any, table: Mapping[str, Any], entry: str, contexts: Contexts) -> None:
    graph.set_node_defaults(error_handler=async_node(error_handler(contexts.settings)))
    for name, (router, edges) in table.items():
        graph.add_node(name, async_node(contexts.bound(node(name))))
        _add_edges(graph, name, router, edges)
    graph.add_edge(START, entry)


def node(name: str) -> Node:
    """Return the function of a node: it has the name of its file."""
    function: Node = getattr(import_module(f"daruma.nodes.{name}"), name)
    return function


def _add_edges(graph: Any, name: str, router: Router, edges: dict[str, Target]) -> None:
    if len(edges) == 1:  # LangGraph reads the whole state for a router: not for a foregone outcome
        graph.add_edge(name, node_of(*edges.values()))
        return

    def route(state: Any) -> Any:  # LangGraph would work out its type's hints for each
        outcome = router(state)
        target = edges[outcome]
        if isinstance(target, Each):
            return [Send(target.node, item) for item in target.items(state)]
        return outcome

    route.__name__ = router.__name__
    add_branch(graph, name, route, {key: node_of(edges[key]) for key in edges})
