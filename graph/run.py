"""The machine: LangGraph's compiled graph, run in one way, held by one run, set back, looked at."""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from time import time
from typing import Any, ClassVar, Self, TypeVar, cast

from langchain_core.callbacks import Callbacks
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateSnapshot
from typing_extensions import override

from daruma.graph.errors import Failures, closing
from daruma.graph.fast_path import SAVER_KEY, durability_within, is_within, with_saver
from daruma.graph.follow import Following, Look
from daruma.graph.history import (
    UndoRefused,
    fork_of,
    newest,
    restore_failed_files,
    restore_files,
    savepoints_of,
    start_of,
    without_start,
)
from daruma.graph.learning import Evolution, HandingOver
from daruma.graph.notify import notify
from daruma.graph.requests import (
    NO_THREADS,
    NoSuchThread,
    RequestRefused,
    accept_reply,
    admit,
    check_updates,
    is_served,
    open_questions,
    question_ids,
    readdress_reply,
    refuse_misfit,
    refuse_secrets,
    refuse_unkept_id,
    refuse_unkept_metadata,
    refuse_unknown,
    send,
    send_again,
)
from daruma.graph.scope import FirstLook, MemberMachine, RunScope, no_members
from daruma.graph.standing import standing_of, standings
from daruma.graph.storage import (
    OpenQuestion,
    PostgresSaver,
    athread_held,
    explain_saver_errors,
    note_of,
    read_inbox,
    workspace_files_id,
    workspace_of,
)
from daruma.graph.sync import iterate, refuse_own, run
from daruma.graph.timeline import (
    Moment,
    Picture,
    Superstep,
    Timeline,
    edges_walked,
    member_record,
    members_in,
    nodes_walked,
    record_of,
    show_in_notebooks,
    supersteps_of,
    timeline_of,
)
from daruma.graph.tracing import run_traced
from daruma.state.channels import Input, Output, State, state_of
from daruma.state.data_dir import write_private
from daruma.state.errors import DamagedState, DarumaError
from daruma.state.messages import plain
from daruma.state.result import TaskResult
from daruma.state.savepoint import Savepoint
from daruma.state.settings import Settings
from daruma.state.steering import told_since
from daruma.state.steps import ContextUsage
from daruma.tools.calls import McpServers, ResponseFormat, import_schema_checks
from daruma.tools.files import aworkspace_locked
from daruma.tools.hooks import protect_programs
from daruma.tools.snapshots import Conflicts, Restored
from daruma.tools.threads import in_thread

T = TypeVar("T")


class NothingToSee(DarumaError):
    """Raised for a thread that there is none of, and where no threads are kept."""


class NotFollowed(DarumaError):
    """Raised for a graph whose threads no other process can get at."""


class NotServed(DarumaError, ValueError):
    """Raised for a graph that a server runs as it is: any client could loosen its settings."""


class Sections(dict[str, Any]):
    """Those of the settings' form; LangGraph's server leaves out other keys, without a word."""

    left_out: frozenset[str] = frozenset()

    @override
    def __contains__(self, key: object) -> bool:
        if not (known := super().__contains__(key)):
            self.left_out |= {str(key)}
        return known


async def _unmeasured(_: State) -> ContextUsage | None:
    return None


class Machine(CompiledStateGraph[State, Settings, Input, Output]):
    """Daruma's compiled graph, the same however it is run (MO-09): every run is asynchronous.

    A synchronous method waits for its asynchronous twin, which runs on the background loop
    (``sync.py``): callbacks are told there, and Ctrl-C cancels the run. All that writes on a thread
    holds it: ``holds`` says that this copy does so now, through the checkpointer that it has
    (DU-03). A run without a context gets the graph's settings, also when resumed; a run with a
    checkpointer is durable step by step unless it asks for less. ``check`` raises what is wrong
    with a run's own settings, before anything is done. Where settings switch off what comes after a
    failure, a run raises (``errors.py``). ``evolution`` learns from ended tasks beside the runs; it
    counts what became of them, and can be waited for. ``response_format`` makes instances of
    structured answers, where they leave the machine; ``measured`` counts what a request holds.
    """

    settings: Settings
    check: Callable[[Settings], None]
    member: Callable[[], MemberMachine]
    evolution: Evolution
    response_format: ResponseFormat | None = None
    measured: Callable[[State], Awaitable[ContextUsage | None]]
    holds: bool = False
    served: ClassVar["type[Machine] | None"] = None
    """The form in which LangGraph's server runs any of these; ``studio/entry.py`` says which."""
    sections: Sections = Sections()

    @classmethod
    def of(
        cls,
        compiled: CompiledStateGraph[State, Settings, Input, Output],
        settings: Settings,
        check: Callable[[Settings], None],
        member: Callable[[], MemberMachine] = no_members,
        evolution: Evolution | None = None,
        response_format: ResponseFormat | None = None,
        measured: Callable[[State], Awaitable[ContextUsage | None]] = _unmeasured,
    ) -> Self:
        """Make the machine of a compiled graph."""
        machine = cls.__new__(cls)
        machine.__dict__.update(compiled.__dict__, settings=settings, check=check, member=member)
        machine.evolution, machine.measured = evolution or Evolution(), measured
        machine.response_format = response_format
        show_in_notebooks()
        return machine

    @classmethod
    def over(cls, machine: "Machine", **update: Any) -> Self:
        """Make a machine of this class that is another one, but for what is updated."""
        made = cls.__new__(cls)
        made.__dict__.update(machine.__dict__, **update)
        return made

    @override
    def copy(self, update: dict[str, Any] | None = None) -> Self:
        # LangGraph's own copy goes through __init__, which drops what is not an argument of it.
        return self.over(self, **(update or {}))

    @override
    def get_context_jsonschema(self) -> dict[str, Any] | None:
        form = super().get_context_jsonschema() or {}
        self.sections = form["properties"] = Sections(form["properties"])
        return form

    # --- Running: `invoke` waits for `ainvoke`, `stream` iterates `astream`.

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Any:
        return self._wait(self.ainvoke(input, config, **options))

    @override
    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **options: Any
    ) -> Any:
        return plain(await super().ainvoke(input, config, **options))

    @override
    def stream(
        self, input: Any, config: RunnableConfig | None = None, **options: Any
    ) -> Iterator[Any]:
        return self._iterate(self.astream(input, config, **options))

    @override
    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **options: Any
    ) -> AsyncIterator[Any]:
        if is_served(config):
            if self.served is None:
                raise NotServed(
                    "LangGraph's server runs this graph, and nothing holds its clients to the "
                    "graph's settings: name daruma.graph.studio.entry in langgraph.json, as the "
                    "one that ships does"
                )
            form = self.served.over(self)
            async with closing(form.astream(input, config, **options)) as parts:
                async for part in parts:
                    yield part
            return
        if options.get("context"):  # a model's client, an expert's file may be looked at
            options = await in_thread(self._checked, options, config)
        else:
            options = self._checked(options, config)
        async with self._held(config) as holder:
            own, config = await holder._past_damage(config)
            async with closing(own._parts(input, config, options)) as told:
                async for part in told:
                    yield self._typed(part)

    async def _parts(
        self, given: Any, config: RunnableConfig | None, options: dict[str, Any]
    ) -> AsyncIterator[Any]:
        """Run the machine, which holds its thread."""
        await import_schema_checks()
        known = self._remembers(config)
        snapshot = await self.aget_state(self._thread(config)) if known else None
        result = snapshot.values.get("result") if snapshot and not snapshot.tasks else None
        if given is None and result is not None and result.status == "blocked":
            config = (config or RunnableConfig()) | await self.areopen(self._thread(config))
            snapshot = await self.aget_state(config)
        given = await readdress_reply(self.checkpointer, given, snapshot) if snapshot else given
        admitted = await admit(given, snapshot, within=is_within(config))
        workspace = workspace_of(admitted, snapshot)
        if programs := self._programs(options):
            await in_thread(protect_programs, programs, workspace)
        async with aworkspace_locked(workspace):
            if known and workspace and isinstance(self.checkpointer, PostgresSaver):
                note = await note_of(self.checkpointer, self._thread_id(config), workspace)
                with suppress(OSError):  # where nothing can be kept, nothing is
                    await in_thread(write_private, note, "")
            if snapshot:
                admitted = await accept_reply(self.checkpointer, admitted, snapshot)
            failures = Failures()
            handing = HandingOver(self.evolution.hand_over, remembered=known)
            bound: Callbacks = (self.config or {}).get("callbacks")
            async with McpServers() as servers:
                with run_traced(config, snapshot, bound) as config:
                    scope = RunScope(
                        failures=failures,
                        handing=handing,
                        member_machine=self.member,
                        servers=servers,
                        streams_events=self._streams_events(options) or is_within(config),
                        look=FirstLook(),
                        opened=question_ids(snapshot) if snapshot else {},
                    )
                    parts = super().astream(admitted, scope.attach(config), **options)
                    with handing.after():
                        with failures.noted_exit():
                            async with closing(parts) as told:
                                async for part in told:
                                    yield part
                        failures.raise_end()
        if known:
            notify(self.checkpointer, self.settings.notify, workspace, self._thread_id(config))

    def _programs(self, options: dict[str, Any]) -> list[tuple[str, ...]]:
        """Return the programs of settings that run outside of the sandbox beside a run."""
        hooks = Settings.model_validate(options["context"]).hooks
        of_hooks = [each.run for commands in hooks.values() for each in commands]
        return [each for each in (*of_hooks, self.settings.notify.command) if each]

    def _typed(self, part: Any) -> Any:
        """Return what leaves the machine, with structured answers as their class has them (FA-10).

        They are kept as JSON: any process may read them, with that class or without it.
        """
        form = self.response_format
        if form is None:
            return part
        if isinstance(part, TaskResult):
            return replace(part, structured=form.typed(part.structured))
        if isinstance(part, StateSnapshot):
            return part._replace(values=self._typed(part.values))
        if isinstance(part, dict):
            return {key: self._typed(value) for key, value in part.items()}
        return tuple(map(self._typed, part)) if type(part) is tuple else part

    def _streams_events(self, options: dict[str, Any]) -> bool:
        """Whether anybody reads the events of a run of its own."""
        read = (options.get("stream_mode") or self.stream_mode, options.get("print_mode") or ())
        return any("custom" in ([modes] if isinstance(modes, str) else modes) for modes in read)

    def _checked(self, options: dict[str, Any], config: RunnableConfig | None) -> dict[str, Any]:
        """Return the options with our defaults, once the settings among them were checked."""
        refuse_misfit(config)
        refuse_unknown(options)
        if options.get("context"):
            self.check(Settings.model_validate(options["context"]))
        defaults: dict[str, Any] = {"context": self.settings}
        if self.checkpointer is not False and is_within(config):
            defaults["durability"] = durability_within(config)
        elif self.checkpointer:
            defaults["durability"] = "sync"
        return options | {key: options.get(key) or value for key, value in defaults.items()}

    async def _past_damage(
        self, config: RunnableConfig | None
    ) -> tuple[Self, RunnableConfig | None]:
        """Return how to go on from the checkpoint that was asked for, where newer ones are damaged.

        LangGraph reads the newest one in any case; it could not go on from any other.
        """
        saver: Any = self.checkpointer
        chooses = hasattr(saver, "going_on_from") and self._remembers(config)
        if chooses and (given := start_of(self._thread(config))):
            try:
                await self.aget_state(newest(config))
            except DamagedState:
                own = self.copy({"checkpointer": saver.going_on_from(*given)})
                return own, without_start(config)
        return self, config

    # --- What is kept of a thread: read by anybody, written by who holds it.

    @override
    def get_state(self, config: RunnableConfig, *, subgraphs: bool = False) -> StateSnapshot:
        return self._wait(self.aget_state(config, subgraphs=subgraphs))

    @override
    async def aget_state(self, config: RunnableConfig, *, subgraphs: bool = False) -> StateSnapshot:
        config = self._to_read(config)
        with explain_saver_errors():
            found = await super().aget_state(config, subgraphs=subgraphs)
        return cast("StateSnapshot", self._typed(found))

    @override
    def get_state_history(self, config: RunnableConfig, **options: Any) -> Iterator[StateSnapshot]:
        return self._iterate(self.aget_state_history(config, **options))

    @override
    async def aget_state_history(
        self, config: RunnableConfig, **options: Any
    ) -> AsyncIterator[StateSnapshot]:
        async for past in super().aget_state_history(self._to_read(config), **options):
            yield self._typed(past)

    @override
    def bulk_update_state(self, config: RunnableConfig, supersteps: Any) -> RunnableConfig:
        return self._wait(self.abulk_update_state(config, supersteps))

    @override
    async def abulk_update_state(self, config: RunnableConfig, supersteps: Any) -> RunnableConfig:
        config = self._to_read(config)
        async with self._held(config) as own:
            updates = check_updates(supersteps)
            return await CompiledStateGraph.abulk_update_state(own, config, updates)

    @asynccontextmanager
    async def _held(self, config: RunnableConfig | None) -> AsyncIterator[Self]:
        """Yield the machine as it may write on a thread; who holds it already goes on with that."""
        if self.holds or not self._remembers(config):
            self._refuse_no_thread(config)
            yield self
            return
        refuse_unkept_metadata(self._thread(config))
        async with athread_held(self.checkpointer, self._thread_id(config)) as saver:
            yield self.copy({"checkpointer": saver, "holds": True})

    def _refuse_no_thread(self, config: RunnableConfig | None) -> None:
        """What a checkpointer keeps, it keeps by the name of a thread."""
        own, thread = isinstance(self.checkpointer, BaseCheckpointSaver), self._thread(config)
        named = "thread_id" in thread.get("configurable", {})
        if own and not self.holds and not is_within(thread) and not named:
            raise RequestRefused(
                'say which thread it is, as in {"configurable": {"thread_id": "..."}}: this graph '
                "keeps threads"
            )

    def _to_read(self, config: RunnableConfig | None) -> RunnableConfig:
        """Return a config of state that is kept, by this graph or by one around it."""
        thread = self._thread(config)
        if SAVER_KEY not in thread.get("configurable", {}):
            if not isinstance(self.checkpointer, BaseCheckpointSaver):
                raise RequestRefused(NO_THREADS)
            self._refuse_no_thread(config)
        return config if config and "configurable" in config else thread

    def _remembers(self, config: RunnableConfig | None) -> bool:
        """Whether the thread is this graph's to keep: within another graph it is that one's."""
        thread = self._thread(config)
        kept = isinstance(self.checkpointer, BaseCheckpointSaver) and not is_within(thread)
        return kept and "thread_id" in thread.get("configurable", {})

    def _thread_id(self, config: RunnableConfig | None) -> str:
        self._refuse_no_thread(config)
        return str(self._thread(config)["configurable"]["thread_id"])

    def _thread(self, config: RunnableConfig | None) -> RunnableConfig:
        refuse_misfit(config)
        merged = merge_configs(self.config, config)
        refuse_secrets(merged.get("configurable", {}))
        refuse_unkept_id(merged.get("configurable", {}))
        return merged

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Wait for a coroutine. Raises :class:`OwnLoop` where that waits for whoever waits."""
        try:
            self._refuse_own_loops()
        except BaseException:
            coroutine.close()
            raise
        return run(coroutine)

    def _iterate(self, parts: AsyncIterator[T]) -> Iterator[T]:
        self._refuse_own_loops()
        yield from iterate(cast("Any", parts))

    def _refuse_own_loops(self) -> None:
        for each in (self.checkpointer, self.store):
            if loop := getattr(each, "loop", None):
                refuse_own(loop)

    # --- What a person says to a task at work.

    def steer(
        self, config: RunnableConfig, text: str, *, stop: bool = False, goal: str | None = None
    ) -> str:
        """Say something to a thread's open task; the model's next request has it (FA-14).

        It comes after all results of the calls before it, and is kept until then, whoever runs the
        thread. ``stop`` has the task stand still before that request, and ask what to do; ``goal``
        takes the place of its goal. Returns the id that ``message_received`` tells. Raises
        :class:`~daruma.graph.requests.RequestRefused` for a thread that is not there, where no task
        is open on it, and for a text that is empty or longer than 20,000 characters.
        """
        return self._wait(self.asteer(config, text, stop=stop, goal=goal))

    async def asteer(
        self, config: RunnableConfig, text: str, *, stop: bool = False, goal: str | None = None
    ) -> str:
        """Do the same, asynchronously."""
        snapshot = await self.aget_state(newest(self._to_read(config)))
        thread = self._thread_id(config)
        with explain_saver_errors():
            return await send(self.checkpointer, thread, snapshot, text, stop=stop, goal=goal)

    # --- What a thread can be set back to: where its task failed, and its files at any savepoint.

    def reopen(self, config: RunnableConfig, *, call: str | None = None) -> RunnableConfig:
        """Set a thread back to where its newest task failed; ``invoke(None, config)`` goes on.

        The files of its workspace go back with it, but for what somebody else changed.
        ``call`` is the id of a tool call, to run that one again or to have it asked for again.
        What a person said to the task since then is told again (FA-14).
        Returns the config of the thread. Raises
        :class:`~daruma.graph.history.NothingToReopen`.
        """
        return self._wait(self.areopen(config, call=call))

    async def areopen(self, config: RunnableConfig, *, call: str | None = None) -> RunnableConfig:
        """Do the same, asynchronously."""
        async with self._held(config) as own:
            thread = newest(self._thread(config))
            history = [past async for past in own.aget_state_history(thread)]
            fork = fork_of(history, call, self.settings, time())
            if call is None:
                async with aworkspace_locked(workspace_of(None, history[0])):
                    await in_thread(restore_failed_files, history[0], self._files_id(config))
            said = told_since(fork.before(history), State(**history[0].values))
            await send_again(self.checkpointer, self._thread_id(config), said)
            told = RunnableConfig(metadata=config.get("metadata", {}))
            given = merge_configs(fork.config, told)
            await own.aupdate_state(given, fork.values, as_node=fork.as_node)
        return newest(config)

    def undo(
        self, config: RunnableConfig, *, to: str | None = None, conflicts: Conflicts = "refuse"
    ) -> Restored:
        """Put the files of a thread's workspace back; the thread's state stays as it is (RO-07).

        ``to`` is the id of a savepoint, such as ``2/p1``, or of a snapshot, such as
        ``Restored.before``, which undoes an undo. None means the start of the newest task; with a
        ``checkpoint_id`` in the config, the newest savepoint of that checkpoint. ``conflicts`` says
        what becomes of files that both the thread's work and somebody else changed.

        Raises :class:`~daruma.graph.history.UndoRefused` where that state can not be had,
        :class:`~daruma.tools.snapshots.RestoreRefused` for conflicts, before anything is
        changed.
        """
        return self._wait(self.aundo(config, to=to, conflicts=conflicts))

    async def aundo(
        self, config: RunnableConfig, *, to: str | None = None, conflicts: Conflicts = "refuse"
    ) -> Restored:
        """Do the same, asynchronously."""
        given = self._to_undo(config)
        async with self._held(config) as own:
            return await in_thread(
                restore_files,
                await own.aget_state(given),
                to,
                conflicts,
                thread=self._files_id(config),
                travelled=bool(given.get("configurable", {}).get("checkpoint_id")),
            )

    def savepoints(self, config: RunnableConfig) -> tuple[Savepoint, ...]:
        """Return the states that a thread's files can be put back to, oldest first.

        Raises :class:`~daruma.graph.history.UndoRefused` where there is no such thread.
        """
        return self._wait(self.asavepoints(config))

    async def asavepoints(self, config: RunnableConfig) -> tuple[Savepoint, ...]:
        """Do the same, asynchronously."""
        return savepoints_of(await self.aget_state(self._to_undo(config)))

    def _files_id(self, config: RunnableConfig) -> str:
        return workspace_files_id(self.checkpointer, self._thread_id(config))

    def _to_undo(self, config: RunnableConfig) -> RunnableConfig:
        if not self.checkpointer:
            raise UndoRefused(
                "this graph keeps no threads, so nothing can be undone: build it with persistence="
            )
        return self._thread(config)

    # --- Looking at threads, which changes nothing: timelines, pictures, and what a worker does.

    def inbox(self, *, kind: str | None = None, older_than: float = 0.0) -> list[OpenQuestion]:
        """Return what waits for a person, over all threads: what has waited longest first.

        ``older_than`` is in seconds. Raises :class:`~daruma.graph.requests.RequestRefused` where
        threads are kept elsewhere than in Postgres.
        """
        return self._wait(self.ainbox(kind=kind, older_than=older_than))

    async def ainbox(
        self, *, kind: str | None = None, older_than: float = 0.0
    ) -> list[OpenQuestion]:
        """Do the same, asynchronously."""
        if not isinstance(self.checkpointer, PostgresSaver):
            raise RequestRefused(
                "the inbox is of threads in Postgres: build_graph(persistence=...) with what "
                "open_postgres() yields"
            )
        with explain_saver_errors():
            return await read_inbox(self.checkpointer, kind=kind, older_than=older_than)

    def timeline(self, config: RunnableConfig) -> Timeline:
        """Return what happened on a thread, up to a ``checkpoint_id`` where the config has one.

        Raises :class:`NothingToSee` for an unknown thread or a graph that keeps none,
        :class:`~daruma.state.errors.DamagedState`.
        """
        return self._wait(self.atimeline(config))

    async def atimeline(self, config: RunnableConfig) -> Timeline:
        """Do the same, asynchronously."""
        if not self.checkpointer:
            raise NothingToSee("this graph keeps no threads: build it with persistence=")
        if not self._remembers(config):
            raise NothingToSee('say which thread: {"configurable": {"thread_id": ...}}')
        given, thread = self._thread(config), self._thread_id(config)
        snapshot = await self.aget_state(given)
        if snapshot.created_at is None:
            raise NothingToSee(f"there is no thread {thread!r} in this storage")
        supersteps = await self._supersteps(thread)
        record = record_of(thread, snapshot, supersteps)
        members = []
        for namespace, own in members_in(supersteps, record.walk).items():
            place = {"thread_id": given["configurable"]["thread_id"], "checkpoint_ns": namespace}
            at = with_saver(RunnableConfig(configurable=place), self.checkpointer)
            members.append(member_record(record, await self.member().aget_state(at), own))
        return timeline_of(record, snapshot, [each for each in members if each is not None])

    async def _supersteps(self, thread: str) -> list[Superstep]:
        saver: Any = self.checkpointer
        if isinstance(saver, PostgresSaver):
            from daruma.graph.timeline import read_supersteps

            return await read_supersteps(saver, thread)
        named = RunnableConfig(configurable={"thread_id": thread})
        return supersteps_of([each async for each in saver.alist(named)])

    def context_cost(self, config: RunnableConfig) -> ContextUsage | None:
        """Return what the window is spent on as a thread stands (CX-08); None before a task.

        What an ended task's result holds as ``context_usage``, at any time. Raises what
        :meth:`timeline` does.
        """
        return self._wait(self.acontext_cost(config))

    async def acontext_cost(self, config: RunnableConfig) -> ContextUsage | None:
        """Do the same, asynchronously."""
        if not self._remembers(config):
            raise NothingToSee("say which thread of a graph that keeps them (persistence=)")
        snapshot = await self.aget_state(self._thread(config))
        if snapshot.created_at is None:
            raise NothingToSee(f"there is no thread {self._thread_id(config)!r} in this storage")
        return await self.measured(state_of(snapshot.values))

    def picture(self, config: RunnableConfig | None = None) -> Picture:
        """Return the machine; with a thread's config, what that thread walked is lit.

        Raises what :meth:`timeline` does.
        """
        return self._wait(self.apicture(config))

    async def apicture(self, config: RunnableConfig | None = None) -> Picture:
        """Do the same, asynchronously."""
        if config is None:
            return Picture()
        path = (await self.atimeline(config)).path
        return Picture(nodes_walked(path), edges_walked(path))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """Show it in a notebook; LangGraph's own would send the graph to mermaid.ink."""
        return Picture()._repr_mimebundle_()

    def follow(self, config: RunnableConfig, *, after: int | None = None) -> Following:
        """Return the events of a thread, from what it does now, or will do next, until it stops.

        They come from any process where a worker runs the thread, and are kept for a day. ``after``
        is the id of an event to go on from. To hear all of what you are about to submit, follow
        first. Raises :class:`NotFollowed` for a graph that was built without Postgres.
        """
        return self._wait(self.afollow(config, after=after))

    async def afollow(self, config: RunnableConfig, *, after: int | None = None) -> Following:
        """Do the same, asynchronously."""
        saver, thread_id = self._shared(), self._thread_id(config)
        if after is None:
            busy = await standing_of(saver.database, thread_id)
            log = saver.events
            after = await (log.newest_stop(thread_id) if busy else log.newest(thread_id))
        return Following(self, saver.database, saver.events, thread_id, after)

    def look(self, config: RunnableConfig) -> Look:
        """Return where a thread stands, whoever runs it.

        Raises :class:`~daruma.graph.requests.NoSuchThread` where there is no such thread.
        """
        return self._wait(self.alook(config))

    async def alook(self, config: RunnableConfig) -> Look:
        """Do the same, asynchronously."""
        saver, thread_id = self._shared(), self._thread_id(config)
        thread = newest(self._thread(config))
        standing = (await standings(saver.database, thread_id)).get(thread_id)
        snapshot = await self.aget_state(thread)
        if standing is None and snapshot.created_at is None:
            raise NoSuchThread(f"there is no thread {thread_id!r}")
        answered = await saver.replies.find(thread_id, open_questions(snapshot))
        heard = [each.event for each in await saver.events.of_newest_run(thread_id)]
        queued_only = snapshot.created_at is None
        told: tuple[Moment, ...] = () if queued_only else (await self.atimeline(thread)).moments
        return Look.of(thread_id, snapshot, standing, answered, heard, told)

    def _shared(self) -> PostgresSaver:
        if not isinstance(self.checkpointer, PostgresSaver):
            raise NotFollowed("only threads in Postgres can be followed: persistence=pg")
        return self.checkpointer
