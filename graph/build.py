"""Building the graph: the table as a StateGraph, and the error handler of its nodes."""

import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Self, TypeVar, get_type_hints

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.channels import DeltaChannel, EphemeralValue
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.errors import NodeError
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph.types import Checkpointer, Command, Send
from pydantic import BaseModel

from daruma.graph.errors import ExitRun, Node
from daruma.graph.fast_path import add_branch, run_quietly
from daruma.graph.learning import Evolution, ask_with
from daruma.graph.machine import (
    ENTRY,
    MEMBER_ENTRY,
    ON_BUG,
    TABLE,
    Each,
    Router,
    Target,
    node_of,
    of_a_member,
)
from daruma.graph.run import Machine
from daruma.graph.scope import Contexts, RunScope
from daruma.graph.storage import strict_saver
from daruma.graph.sync import saver_on_any_loop
from daruma.state.calls import Dispatch, calls_to_run, set_status
from daruma.state.channels import EPHEMERAL, Delta, Input, Output, State, Update
from daruma.state.emergency import emergency_of, words_of
from daruma.state.errors import CutOff, DarumaError
from daruma.state.events import (
    BudgetSettled,
    ClarificationResolved,
    Event,
    MemberCompleted,
    RecoveryCompleted,
    TaskCompleted,
    ToolCompleted,
)
from daruma.state.failure import Failure, bug_in
from daruma.state.plan import Assignment, Report
from daruma.state.result import TaskResult
from daruma.state.settings import FallbackChain, Settings
from daruma.state.steps import Step
from daruma.tools.assistant import ASSISTANT_TOOLS
from daruma.tools.calls import Registry, ResponseFormat, Tool, tool_result
from daruma.tools.hooks import Hook
from daruma.tools.knowledge import KNOWLEDGE_TOOLS
from daruma.tools.memory import MEMORY_TOOLS
from daruma.tools.planning import PLANNING_TOOLS
from daruma.tools.skills import SKILL_TOOLS
from daruma.tools.team import DELEGATE_TOOLS
from daruma.tools.text import mask_keys
from daruma.tools.verification import CHECK_TOOLS
from daruma.tools.workspace_tools import COMMAND_TOOLS, EDITOR_TOOLS

if TYPE_CHECKING:
    from daruma.graph.storage import Postgres


# --- The last net: what happens when a node raises something that nobody expected.
#
# A handler has to return ``Command(goto=...)``: a plain dict would end the run silently.

Handler = Callable[
    [Any, NodeError, Runtime[Settings], RunnableConfig], Coroutine[Any, Any, Command[Any]]
]


def error_handler(settings: Settings) -> Handler:
    """Return the error handler of all nodes; ``settings`` are the graph's, for a run without any.

    It is one for all: LangGraph adds a node and a channel for each handler, and looks at every
    channel several times in every superstep.

    With the fallback chain switched off it raises
    :class:`~daruma.graph.errors.ExitRun` (EM-05), and for a run that is cut off from its storage.
    """

    async def handle(
        state: State | Dispatch | Assignment,
        error: NodeError,
        runtime: Runtime[Settings],
        config: RunnableConfig,
    ) -> Command[Any]:
        chain, scope = (runtime.context or settings).fallback_chain, RunScope.of(config)
        node, failure = error.node, bug_in(error.node, error.error)
        anew = node == "plan" and isinstance(state, State) and state.plan is not None
        anew &= failure.original_error != "ScriptMismatch"
        if anew and not isinstance(error.error, CutOff):  # it ends as its first failure has it end
            return Command(goto=ON_BUG[node], update={"crowded": None, "calls": ()})
        if isinstance(error.error, BaseException):  # after a crash it is a text
            scope.failures.note(failure, error.error)
        if not chain.enabled or isinstance(error.error, CutOff):
            raise ExitRun(scope.failures.exception_for(failure))
        update = mask_keys(_update(node, state, failure, chain))
        for event in _closing(node, state, update):
            scope.emitter(runtime)(event)
        result = update.get("result")
        if result and scope.handing and isinstance(state, State):
            scope.handing.ended(state, result)
        if result and not chain.has_emergency:
            if isinstance(state, State) and state.error:
                scope.failures.end_with_first(state)
            else:
                scope.failures.end = scope.failures.exception_for(failure)
        return Command(goto=ON_BUG[node], update=dict(update))

    return handle


def _closing(node: str, state: State | Dispatch | Assignment, update: Update) -> Iterator[Event]:
    """Yield what closes events that nobody else would close (PL-04)."""
    if node == "merge" and isinstance(state, State):  # with it the results of helpers' calls
        for call in calls_to_run(state.calls, delegated=True):
            yield ToolCompleted(call_id=call.id, tool=call.name, ok=False, seconds=0.0, output="")
    if node == "consult":
        yield RecoveryCompleted(strategy="give-up", carried="failed")
    if node == "pause":
        yield BudgetSettled(node="pause", scope="task", measure="", stopped=True)
    if node == "clarify":
        yield ClarificationResolved(how="stale", target_action="")
    if isinstance(report := update.get("reports"), Report):
        phase = report.phase
        yield MemberCompleted(phase_id=phase.id, expert=phase.expert or "", outcome="failed")
    if result := update.get("result"):
        yield TaskCompleted(task_id=result.task_id, status="failed", output=result.output)


def _update(
    node: str, state: State | Dispatch | Assignment, failure: Failure, chain: FallbackChain
) -> Update:
    if not isinstance(state, State):
        return _of_one(state, failure)
    unfit = failure.code == "script_mismatch"  # it has to be mended first
    first = failure if unfit else state.origin or state.failure or failure
    if ON_BUG[node] == END:
        return {"result": _bare_result(state, failure, chain)}
    if node == "emergency":
        return {"failure": failure, "origin": first, "error": emergency_of(first, chain)}
    # A person has to be asked; a question that can not be asked twice is given up.
    phase = state.plan.phase(state.plan.current) if state.plan else None
    asked = node == "hold" and state.failure is not None and state.failure.node != "hold"
    if phase and phase.status == "failed" and (node == "rollback" or asked):
        # What a rollback left is not known: nothing may be built on it.
        return {"failure": replace(failure, code="rollback_failed")}
    if node == "intake":  # what it found is that of the task before
        return {"failure": failure, "origin": failure, "plan": None, "verification": None}
    update: Update = {"failure": failure, "origin": first}
    cleared: dict[str, Update] = {"compress": {"crowded": None}, "pause": {"overrun": None}}
    return {**update, **cleared.get(node, {})}


def _of_one(state: Dispatch | Assignment, failure: Failure) -> Update:
    """Answer for one of several that were sent out: its siblings go on."""
    if isinstance(state, Dispatch):
        answer = tool_result(state.call, f"Error: {failure.message}", ok=False)
        return {"messages": [answer], "calls": set_status(state.call, "failed")}
    phase = replace(state.phase, status="failed", outcome="failed", failure=failure)
    return {"reports": Report(phase=phase)}


def _bare_result(state: State, failure: Failure, chain: FallbackChain) -> TaskResult:
    """The result of a task whose result could not be built: nothing but the truth about that."""
    error = state.error or emergency_of(failure, chain)
    return TaskResult(
        task_id=state.task_id,
        status="failed",
        output=words_of(chain).ended.format(status="failed", reason=error.message),
        error_message=error.to_error_message(),
        error_struct=error if chain.has_emergency else None,
        budgets={},
        usage={},
        timings={},
    )


# --- What a graph may be built of: what is none of it is refused by its name.


class PartRefused(DarumaError, TypeError):
    """Raised for what a graph can not be built of; says what belongs there."""


def settings_of(given: object) -> Settings:
    """Return the settings that are meant; None reads them.

    Raises :class:`~daruma.state.settings.SettingsError`, :class:`PartRefused`.
    """
    if given is None:
        return Settings.load()
    if isinstance(given, Settings | Mapping):
        return given if isinstance(given, Settings) else Settings.model_validate(given)
    raise PartRefused(
        f"settings has to be Settings(...) or a dict, not {_kind(given)}; "
        "Settings.load(PATH) reads a file"
    )


def refuse_strangers(
    model: object, tools: object, persistence: object, checkpointer: object, store: object
) -> None:
    """Raise :class:`PartRefused` for the first part that is none of its kind."""
    if isinstance(model, type):
        raise PartRefused(
            f"model is {_kind(model)}, not a model: make one, such as {model.__name__}(model=...)"
        )
    if isinstance(tools, str | BaseModel | Mapping) or not isinstance(tools, Iterable):
        raise PartRefused(
            f"tools has to be a list of functions and LangChain tools, not {_kind(tools)}"
        )
    if not (checkpointer is None or isinstance(checkpointer, bool | BaseCheckpointSaver)):
        raise PartRefused(
            f"checkpointer has to be one of LangGraph's, such as InMemorySaver(), "
            f"not {_kind(checkpointer)}; for Postgres: `with open_postgres() as postgres:`, and "
            "persistence=postgres"
        )
    if not (store is None or isinstance(store, BaseStore)):
        raise PartRefused(f"store has to be one of LangGraph's, not {_kind(store)}")
    kept = getattr(persistence, "checkpointer", None)
    if persistence is None or isinstance(kept, BaseCheckpointSaver):
        return
    saver = isinstance(persistence, BaseCheckpointSaver)
    raise PartRefused(
        f"persistence has to be what `with open_postgres() as postgres:` yields, not "
        f"{_kind(persistence)}" + ("; pass that as checkpointer=" if saver else "")
    )


def response_format_of(given: object) -> ResponseFormat | None:
    """Return the form of answers that is meant (FA-10). Raises :class:`PartRefused`."""
    try:
        return None if given is None else ResponseFormat.of(given)
    except ValueError as error:
        raise PartRefused(f"response_format {error}") from None


def _kind(given: object) -> str:
    if isinstance(given, type):
        return f"the class {given.__name__}"
    if isinstance(given, str):
        return "text"
    if hasattr(type(given), "__enter__") or hasattr(type(given), "__aenter__"):
        return "a database that is not open yet"
    named = getattr(given, "__name__", None) if callable(given) else None
    return f"the function {named}" if named else type(given).__name__


# --- A delta channel whose cost grows with what is new, not with how much there is (DU-08).

V = TypeVar("V", bound=list[Any])

FEW: Final = 64
"""Writes that are not worth a whole copy when a task begins."""


class GrowingDelta(DeltaChannel[V]):
    """Keeps each write, and a whole copy after as many writes as half of what there is.

    LangGraph's own keeps one after every so many writes, so that those of a thread of 1,000 steps
    take several times its history. This one's take twice of it at most, however long it is. The
    first copy comes after ``snapshot_frequency`` writes: until then each step keeps what is new,
    and reading takes some 0.05 ms for each write, a third of which a copy would take, too. A task
    begins with reading: there, copies come after a quarter of what there is, so that the hundredth
    task of a thread costs little more than its first.
    """

    __slots__ = ("_least",)
    _least: int
    _part: ClassVar[int] = 2

    @property
    def snapshot_frequency(self) -> int:
        """How many writes since the last copy make LangGraph keep one."""
        kept = len(self.value) if self.is_available() else 0
        usual = max(self._least, (kept + 1) // self._part)
        return min(usual, max(FEW, kept // 4)) if kept and begins_task(self.value) else usual

    @snapshot_frequency.setter
    def snapshot_frequency(self, least: int) -> None:
        self._least = least

    def copy(self) -> Self:
        new = super().copy()
        new._least = self._least
        return new

    def from_checkpoint(self, checkpoint: Any) -> Self:
        new = super().from_checkpoint(checkpoint)
        new._least = self._least
        return new


def begins_task(values: Sequence[object]) -> bool:
    """Whether the last of a thread's messages is a request, or the last step its task's first."""
    if isinstance(values[-1], Step):
        return len(values) > 1 and values[-1].task_id != getattr(values[-2], "task_id", None)
    return isinstance(values[-1], HumanMessage)


class RareDelta(GrowingDelta[V]):
    """The same for what is seldom written, and little: a whole copy after an eighth as many writes.

    The way back to a copy leads through all that the thread did since.
    """

    __slots__ = ()
    _part: ClassVar[int] = 8


# --- The state as LangGraph's channels: as ``State`` says how each is to be kept.


def _channel_hint(hint: Any) -> Any:
    how = getattr(hint, "__metadata__", (None,))[-1]
    if isinstance(how, Delta):
        kind = next(each for each in (GrowingDelta, RareDelta) if each._part == how.part)
        return Annotated[hint.__origin__, kind(how.reducer, snapshot_frequency=how.first_copy)]
    return Annotated[hint.__origin__, EphemeralValue] if how is EPHEMERAL else hint


_HINTS = {n: _channel_hint(h) for n, h in get_type_hints(State, include_extras=True).items()}
Channels: Final[type[State]] = type("Channels", (State,), {"__annotations__": _HINTS})
"""The schema of the graph. Nodes are given the plain ``State``."""

# --- Building the graph: the table, its nodes, and the live things they work with.

Builder = StateGraph[State, Settings, Input, Output]

LOG: Final = logging.getLogger("daruma.build")

SHIPPED_TOOLS: Final[tuple[Tool, ...]] = (
    *EDITOR_TOOLS,
    *COMMAND_TOOLS,
    *CHECK_TOOLS,
    *MEMORY_TOOLS,
    *SKILL_TOOLS,
    *ASSISTANT_TOOLS,
    *KNOWLEDGE_TOOLS,
    *PLANNING_TOOLS,
    *DELEGATE_TOOLS,
)
"""In the order that the model is shown them."""


def build_graph(  # noqa: PLR0913  # each is a part of the graph
    model: BaseChatModel | str | None = None,
    tools: Iterable[BaseTool | Callable[..., Any]] = (),
    settings: Settings | Mapping[str, Any] | None = None,
    persistence: "Postgres | None" = None,
    *,
    checkpointer: Checkpointer = None,
    store: BaseStore | None = None,
    hooks: Iterable[Hook] = (),
    response_format: type | dict[str, Any] | None = None,
) -> Machine:
    """Build the machine as a compiled LangGraph graph (FA-01).

    ``model`` is a chat model, ``"PROVIDER:NAME"`` as LangChain's ``init_chat_model`` has it (such
    as ``"anthropic:NAME"``), or ``"scripted:FILE"``; None takes the settings'.
    ``tools`` are LangChain tools or functions, shown beside the built-in ones. ``settings`` may
    be a dict; None reads ``daruma.yaml`` and ``DARUMA_*``. ``persistence`` is what
    ``open_postgres`` yields, with its checkpointer and its store; a checkpointer and a store of
    one's own go in their place. ``hooks`` are made with :func:`daruma.hook`, and asked before
    those of the settings.
    ``response_format`` is the structure of answers: a Pydantic class, a dataclass, a TypedDict or a
    JSON schema; ``result.structured`` is then an instance, or a dict (FA-10).
    As a node of another graph it takes that one's; ``checkpointer=True`` then keeps a thread of its
    own there from turn to turn (FA-08).

    Raises :class:`~daruma.state.settings.SettingsError` for settings that can not be used,
    :class:`PartRefused` for a part that is none,
    :class:`~daruma.graph.models.ModelUnavailable` for a model that is none, and for a name
    that means nothing, or whose package or key is missing,
    :class:`~daruma.tools.calls.ToolNameConflictError` for names that could mean two tools,
    and
    its kin for tools that can not work as declared,
    :class:`~daruma.tools.sandbox.SandboxUnavailable` for a level that can not be there.
    """
    settings = settings_of(settings)
    refuse_strangers(model, tools, persistence, checkpointer, store)
    given = persistence.checkpointer if persistence and checkpointer is None else checkpointer
    saver = (
        saver_on_any_loop(strict_saver(given)) if isinstance(given, BaseCheckpointSaver) else given
    )
    store = persistence.store if persistence and store is None else store
    form = response_format_of(response_format)
    hooks = [*hooks]
    if strangers := [each for each in hooks if not isinstance(each, Hook)]:
        raise PartRefused(f"{_kind(strangers[0])} is no hook: decorate it with @hook(POINT)")
    registry = Registry(SHIPPED_TOOLS, tools)
    if settings.tools.mcp_servers and not registry.has_servers:
        LOG.warning(
            "tools.mcp_servers starts nothing here: pass tools=await mcp_tools(servers, workspace) "
            "of daruma.tools.calls"
        )
    contexts = Contexts(model, registry, settings, store, form, hooks)
    compiled = builder(contexts).compile(checkpointer=saver, store=store, name="daruma")
    run_quietly(compiled, TABLE)
    member = cache(partial(member_of, contexts))
    evolution = Evolution(lambda given: ask_with(contexts.asker(given.llm), given))
    measured = contexts.measured
    return Machine.of(compiled, settings, contexts.check, member, evolution, form, measured)


def builder(contexts: Contexts) -> Builder:
    """Turn the table into a graph that is not compiled yet."""
    graph: Builder = StateGraph(
        Channels, context_schema=Settings, input_schema=Input, output_schema=Output
    )
    _fill(graph, TABLE, ENTRY, contexts)
    return graph


def member_of(contexts: Contexts) -> CompiledStateGraph[State, Settings, State, State]:
    """Compile the machine of a team member: the same nodes, on one phase; it saves with its task.

    It is run within the node ``member``, so that its steps are kept in a namespace of their own.
    """
    graph: StateGraph[State, Settings, State, State] = StateGraph(Channels, context_schema=Settings)
    _fill(graph, of_a_member(), MEMBER_ENTRY, contexts)
    compiled = graph.compile(name="member")
    run_quietly(compiled, of_a_member())
    return compiled


def _fill(graph: Any, table: Mapping[str, Any], entry: str, contexts: Contexts) -> None:
    graph.set_node_defaults(error_handler=error_handler(contexts.settings))
    for name, (router, edges) in table.items():
        graph.add_node(name, contexts.bound(node(name)), input_schema=State)
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
