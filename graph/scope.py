"""What hangs on one run, and the context that its nodes are given."""

from asyncio import Lock
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Final, cast
from uuid import uuid4

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph.types import Interrupt

from daruma.graph.errors import Failures, Node, run_node
from daruma.graph.fast_path import SAVER_KEY, is_within, saver_around, with_saver
from daruma.graph.learning import HandingOver
from daruma.graph.models import Asker, Models, check_model, check_models, keys_of, tokens_of
from daruma.graph.storage import (
    Ledger,
    journal_of,
    ledger_of,
    strict_saver,
    workspace_files_id,
)
from daruma.graph.sync import saver_on_any_loop
from daruma.graph.tracing import (
    is_tracing,
    node_traced,
    request_traced,
    trace_metadata,
    with_trace_metadata,
)
from daruma.nodes.main import measure
from daruma.state.budget import hidden_tools
from daruma.state.calls import ToolTask
from daruma.state.channels import State, Update
from daruma.state.events import (
    EVENTS,
    Event,
    PhaseCompleted,
    PhaseFailed,
    TaskCompleted,
    TaskStarted,
)
from daruma.state.interrupts import is_question, request_event
from daruma.state.record import copy_with
from daruma.state.savepoint import Drifted, reduce_drifted
from daruma.state.settings import LLM, Settings
from daruma.state.steering import NoSteering
from daruma.state.steps import ContextUsage
from daruma.state.text import digest
from daruma.tools.calls import (
    ExactCalls,
    McpServers,
    Outputs,
    ProcessOutputs,
    Registry,
    ResponseFormat,
    WorkspaceTurns,
    with_arguments,
)
from daruma.tools.context import Context, not_handed_over, visible_tools
from daruma.tools.hooks import Hook, NodeHooks, hooks_in
from daruma.tools.rollback import drift
from daruma.tools.sandbox import open_sandbox, require_mechanism
from daruma.tools.text import mask_error, mask_keys, note_secrets

# --- What hangs on one run, for all of its nodes.

_KEY: Final = "__pregel_daruma_scope"
"""Where it hangs on the run's config: LangGraph neither stores nor shows keys of this form."""

MemberMachine = CompiledStateGraph[State, Settings, State, State]

_TASKS_OWN = (TaskStarted, TaskCompleted, PhaseCompleted, PhaseFailed)
"""What the task says itself, once a member's work is merged."""


class UndeclaredEvent(Exception):
    """Raised when something is emitted that ``state/events.py`` does not declare (FA-06)."""


def no_members() -> MemberMachine:
    """Stand for the machine of members where there are none."""
    raise LookupError("this machine has no members")


@dataclass(frozen=True)
class Member:
    """The member that a node works for: its phase, and where its events go."""

    phase_id: str
    emit: Callable[[Event], None]

    def tell(self, event: Event) -> None:
        """Send an event to whoever watches the task, with the member's name on it."""
        if not isinstance(event, _TASKS_OWN):
            self.emit(replace(event, member=self.phase_id))


class FirstLook:
    """What changed in the workspace while nobody ran (RO-07): a run looks before its first node.

    Several nodes that begin at once wait for one look.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._taken = False

    async def at(self, node: str, state: Any, context: Context) -> Drifted | None:
        """Return what drifted, for the first node only; ``intake`` looks for itself."""
        if self._taken and not self._lock.locked():
            return None
        async with self._lock:  # a sibling's work must not be taken for what others changed
            first, self._taken = not self._taken, True
            if not first or node == "intake":
                return None
            return await drift(state.task, context, getattr(state, "drifted", None))


@dataclass(frozen=True)
class RunScope:
    """The live things of one run: they hang on its config, and end with it.

    ``failures`` keeps the exceptions behind its failures, ``handing`` what it has come to for
    evolution, ``servers`` the MCP servers that it calls (FA-11), which whoever started the run
    ends. ``streams_events`` says whether anybody reads events. ``member`` is whom the nodes of a
    team member's machine work for. ``run_id`` is what journals know the run by, ``turns`` says
    whose call may change the workspace. ``said_no`` are the models that will not answer in it,
    ``common`` is what its contexts have in common. ``opened`` are the ids of the questions that
    are known to be open, by those of their interrupts.
    """

    failures: Failures = field(default_factory=Failures)
    handing: HandingOver | None = None
    member_machine: Callable[[], MemberMachine] = no_members
    servers: McpServers | None = None
    streams_events: bool = True
    member: Member | None = None
    run_id: str = field(default_factory=lambda: uuid4().hex)
    turns: WorkspaceTurns = field(default_factory=WorkspaceTurns)
    look: FirstLook | None = None
    said_no: set[str] = field(default_factory=set)
    common: list[tuple[Context, Ledger | None]] = field(default_factory=list)
    opened: dict[str, object] = field(default_factory=dict)

    def tell_opened(self, asked: Interrupt, emit: Callable[[Event], None]) -> None:
        """Tell that a question opens (PL-04): once, however often its node stops at it.

        A member's question stops the node that the member works in, too.
        """
        value = asked.value
        if is_question(value) and self.opened.get(asked.id) != value["id"]:
            self.opened[asked.id] = value["id"]
            emit(request_event(asked))

    @classmethod
    def of(cls, config: RunnableConfig) -> "RunScope":
        """Return that of the run which a node is called in; a new one outside of any."""
        found = config.get("configurable", {}).get(_KEY)
        return found if isinstance(found, cls) else cls()

    def attach(self, config: RunnableConfig | None) -> RunnableConfig:
        """Return the config of a run that this is the scope of.

        What another graph lends to keep the run in reads back as one of the machine's own would.
        """
        lent = saver_around(config) if is_within(config) else None
        given = with_saver(config, saver_on_any_loop(strict_saver(lent))) if lent else config or {}
        configurable = {**given.get("configurable", {}), _KEY: self}
        return RunnableConfig(**{**given, "configurable": configurable})

    def emitter(self, runtime: Runtime[Any]) -> Callable[[Event], None]:
        """Return what sends typed events to the run's ``custom`` stream, if anybody reads that."""
        send = runtime.stream_writer

        def emit(event: Event) -> None:
            if EVENTS.get(event.type) is not type(event):
                raise UndeclaredEvent(f"{type(event).__name__} is not declared in state/events.py")
            if self.streams_events:
                send(mask_keys(event.to_dict()))

        return emit

    async def carry_out(
        self,
        config: RunnableConfig,
        emit: Callable[[Event], None],
        state: State,
        settings: Settings,
        /,
    ) -> State:
        """Run a member's machine once more, within a node of a run of the machine (PL-06).

        Where it was interrupted or killed, it goes on from there.
        """
        phase = state.plan.current if state.plan else None
        own = replace(self, member=Member(phase or "", emit), handing=None, common=[])
        given = {each.name: getattr(state, each.name) for each in fields(state)}
        given = {name: value for name, value in given.items() if value not in (None, (), [])}
        machine: Any = self.member_machine()
        ended = await machine.ainvoke(given, own.attach(config), context=settings)
        return State(**ended)


# --- Giving nodes what they work with: the graph's own live things, under the run's settings.

COUNTING: Final = frozenset({"main", "plan", "reflect", "compress", "finish"})
"""The nodes that count tokens, where there is a budget of them."""

_OUTPUTS: Final = 50
"""Large outputs that are kept for runs without a checkpointer."""


class Contexts:
    """Makes the context of every node call.

    Raises :class:`~daruma.graph.models.ModelUnavailable` for a model that is none,
    :class:`~daruma.tools.sandbox.SandboxUnavailable` for settings that ask for
    more than there can be (whether it holds is proved when the first command is run), and what
    :meth:`~daruma.tools.calls.Registry.check` raises.
    """

    def __init__(
        self,
        model: BaseChatModel | str | None,
        tools: Registry,
        settings: Settings,
        store: BaseStore | None = None,
        response_format: ResponseFormat | None = None,
        hooks: Sequence[Hook] = (),
    ) -> None:
        check_model(model)
        note_secrets(keys_of(model))
        self._model = model
        self._tools = tools
        self._store = store
        self._response_format = response_format
        self._hooks = tuple(hooks)
        self.settings = settings
        self._askers: dict[str, Asker] = {}
        self._newest: tuple[LLM | None, Asker | None] = None, None
        self._outputs = ProcessOutputs(most=_OUTPUTS)
        self._exact = ExactCalls()
        self.check(settings)
        require_mechanism(settings.sandbox.require)

    def check(self, settings: Settings) -> None:
        """Check that a run's settings fit the tools and name models that could be made.

        Raises what the registry's ``check`` and :func:`~daruma.graph.models.check_models` do.
        """
        self._tools.check(settings.tools)
        check_models(settings, self._main(settings.llm))

    def bound(self, node: Node) -> Callable[..., Coroutine[Any, Any, Update]]:
        """Return a node in the form that LangGraph calls: its context comes from the run."""
        # No function: LangGraph would read its source, to find graphs.
        return partial(self.call, node)

    async def call(
        self, node: Node, state: Any, runtime: Runtime[Settings], config: RunnableConfig
    ) -> Update:
        """Call a node with its context, in the trace of the run if there is one."""
        scope = RunScope.of(config)
        member = scope.member.phase_id if scope.member else ""
        told = partial(trace_metadata, node.__name__, state, member)
        with_trace_metadata(config, told)
        context = self._context(runtime, config, scope)
        if not is_tracing(config):
            return await self._called(node, state, context, scope)
        nested = scope.member is not None
        with node_traced(config, told, context, nested=nested) as (context, span):
            update = await self._called(node, state, context, scope)
            span.returned(update, state)
            return update

    async def _called(self, node: Node, state: Any, context: Context, scope: RunScope) -> Update:
        name, handing = node.__name__, scope.handing
        if name in COUNTING and context.settings.llm.context_window_tokens:
            model = self.asker(context.settings.llm).model
            context = copy_with(context, tokens=await tokens_of(model))
        if handing:
            handing.entered(name, state, context)
        found = await scope.look.at(name, state, context) if scope.look else None
        if found and isinstance(state, State):
            state = replace(state, drifted=reduce_drifted(state.drifted, found))
        try:
            update = await self._hooked(node, state, context, scope)
        except GraphInterrupt as asked:
            for each in asked.args[0] if asked.args else ():
                each.value = mask_keys(each.value)
                scope.tell_opened(each, context.emit)
            if handing:
                handing.waits()
            raise
        except GraphBubbleUp as leaving:
            leaving.args = mask_keys(leaving.args)
            raise
        except Exception as error:
            stored = mask_error(error)  # LangGraph stores what a node raised (SE-08)
            if stored is error:
                raise
            raise stored from None
        update = Update(**{**update, "drifted": found}) if found else update
        return self._exact.mask_update(context.thread_id, update)

    async def _hooked(self, node: Node, state: Any, context: Context, scope: RunScope) -> Update:
        """Run a node with the hooks around what it does, if there are any."""
        found = (*self._hooks, *hooks_in(context.settings.hooks))
        if not found:
            return await run_node(node, state, context, scope.failures)
        task = getattr(state, "task", None)
        common = {
            "thread_id": context.thread_id,
            "task_id": task.id if task else "",
            "workspace": task.workspace if task else None,
        }
        hooks = NodeHooks(found, context.emit, common)
        context = copy_with(context, hooks=hooks, ask=hooks.around_model(context.ask))
        update: Any = await run_node(node, state, context, scope.failures)
        after: Any = await hooks.around_update(update, partial(_evaluate, state, context))
        return cast("Update", after)

    def _context(
        self, runtime: Runtime[Settings], config: RunnableConfig, scope: RunScope
    ) -> Context:
        # A run that is resumed without a context gets None from LangGraph, silently.
        settings = runtime.context or self.settings
        # Within a graph that has no store LangGraph gives none, whatever this one was built with.
        store = self._store if runtime.store is None else runtime.store
        if not scope.common or scope.common[0][0].settings is not settings:
            scope.common[:] = [self._in_common(config, scope, settings, store)]
        common, ledger = scope.common[0]
        emit = scope.member.tell if scope.member else scope.emitter(runtime)
        return copy_with(
            common,
            emit=emit,
            carry_out=partial(scope.carry_out, config, emit),
            journal=journal_of(config, ledger, scope.run_id),
            hand_over=scope.handing.ended if scope.handing else not_handed_over,
        )

    def _in_common(
        self, config: RunnableConfig, scope: RunScope, settings: Settings, store: BaseStore | None
    ) -> tuple[Context, Ledger | None]:
        """Return what the contexts of a run have in common, and the ledger of its threads."""
        given = config.get("configurable", {})
        saver, thread_id = given.get(SAVER_KEY), str(given.get("thread_id", "local"))
        ledger = ledger_of(saver) if saver else None
        asker = self.asker(settings.llm)
        member = scope.member.phase_id if scope.member else ""
        context = Context(
            settings=settings,
            ask=asker.noting(scope.failures.note, scope.said_no, member),
            tools=self._tools,
            open_sandbox=partial(open_sandbox, settings.sandbox),
            thread_id=thread_id,
            files_id=workspace_files_id(saver, thread_id),
            namespace=_namespace(config),
            outputs=Outputs(ledger.outputs if ledger else self._outputs, thread_id),
            exact_calls=self._exact,
            turns=scope.turns,
            servers=scope.servers,
            store=store,
            own_auxiliary=asker.own_auxiliary,
            measure=measure,
            can_ask=saver is not None,
            response_format=self._response_format,
            steering=ledger.steering if ledger and not _namespace(config) else NoSteering(),
        )
        return context, ledger

    async def measured(self, state: State) -> ContextUsage | None:
        """Return what a request of a thread is spent on, as it stands (CX-08)."""
        config, scope = RunnableConfig(), RunScope()
        context, _ = self._in_common(config, scope, self.settings, self._store)
        if self.settings.llm.context_window_tokens:
            context = copy_with(
                context, tokens=await tokens_of(self.asker(self.settings.llm).model)
            )
        return measure(state, context)

    def _main(self, llm: LLM) -> BaseChatModel | str | None:
        own = self.settings.llm.model
        return self._model or own if llm.model in (None, own) else llm.model

    def asker(self, llm: LLM) -> Asker:
        """Return what asks models under these settings: the same one for the same settings."""
        last, asker = self._newest
        if last is llm and asker:
            return asker
        key = llm.model_dump_json()
        if key not in self._askers:
            made = Asker(Models.of(llm, self._main(llm)), trace=request_traced)
            self._askers.setdefault(key, made)
        self._newest = llm, self._askers[key]
        return self._askers[key]


def _evaluate(state: State, context: Context, call: ToolTask, args: Mapping[str, Any]) -> ToolTask:
    """Decide anew on a call to which a hook gave other arguments (TL-13)."""
    offer = visible_tools(state.task, context, hidden_tools(state), messages=state.messages)
    return with_arguments(call, args, offer)


def _namespace(config: RunnableConfig) -> str:
    """Return what a run within another graph is called there; empty for one of its own.

    Whoever runs several on one thread, one after the other or at once, gets all their messages:
    none may have the id of another's (FA-08).
    """
    own = str(config.get("configurable", {}).get("checkpoint_ns", "")).rpartition("|")[0]
    return digest(own)[:8] if own else ""
