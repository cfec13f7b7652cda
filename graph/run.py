"""The machine: LangGraph's compiled graph, held by one run, set back, looked at, durable."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Self, cast

from langchain_core.callbacks import Callbacks
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph._internal._constants import CONFIG_KEY_CHECKPOINTER
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateSnapshot
from typing_extensions import override

from daruma.graph.answers import aaddressed, addressed, aonce, once
from daruma.graph.errors import Raised, closing
from daruma.graph.fast_path import (
    alone,
    at_once,
    crosses,
    durability_within,
    is_within,
    quickly,
    reading_strictly,
)
from daruma.graph.follow import Following, Look
from daruma.graph.history import (
    UndoRefused,
    brought_back,
    fork_of,
    newest,
    savepoints_of,
    start_of,
    undone,
    without_start,
)
from daruma.graph.learning import Evolution, HandingOver
from daruma.graph.requests import (
    NO_THREADS,
    NoSuchThread,
    RequestRefused,
    aadmit,
    admit,
    edited,
    open_questions,
    refuse_misfit,
    refuse_secrets,
    refuse_unkept_id,
    refuse_unkept_metadata,
    refuse_unknown,
)
from daruma.graph.scope import CommonGround, FirstLook, MemberMachine, Members, RunTurns, no_members
from daruma.graph.standing import standing_of, standings
from daruma.graph.storage import (
    PostgresSaver,
    athread_held,
    explain_saver_errors,
    thread_held,
    workspace_files_id,
    workspace_of,
)
from daruma.graph.sync import background_loop, interruptible, refuse_own, run
from daruma.graph.timeline import (
    Moment,
    Picture,
    Record,
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
from daruma.state.channels import Input, Output, State
from daruma.state.errors import DamagedState, DarumaError
from daruma.state.messages import plain
from daruma.state.savepoint import Savepoint
from daruma.state.settings import Settings
from daruma.tools.calls import McpServers, import_schema_checks
from daruma.tools.files import aworkspace_locked, workspace_locked
from daruma.tools.snapshots import Conflicts, Restored
from daruma.tools.threads import in_thread

# --- The compiled graph as one run holds it: nobody else writes on its thread meanwhile (DU-03).


class HeldMachine(CompiledStateGraph[State, Settings, Input, Output]):
    """A graph whose every way of writing on a thread holds that thread.

    ``holds`` says that this copy of it does so now, through the checkpointer that it has.
    """

    holds: bool = False

    @override
    def copy(self, update: dict[str, Any] | None = None) -> Self:
        # LangGraph's own copy goes through __init__, which drops what is not an argument of it.
        machine = self.__class__.__new__(self.__class__)
        machine.__dict__.update(self.__dict__, **(update or {}))
        return machine

    @override
    def get_state(self, config: RunnableConfig, *, subgraphs: bool = False) -> StateSnapshot:
        config = self._to_read(config)
        with explain_saver_errors():
            return super().get_state(config, subgraphs=subgraphs)

    @override
    async def aget_state(self, config: RunnableConfig, *, subgraphs: bool = False) -> StateSnapshot:
        config = self._to_read(config)
        with explain_saver_errors():
            return await super().aget_state(config, subgraphs=subgraphs)

    @override
    def get_state_history(self, config: RunnableConfig, **options: Any) -> Iterator[StateSnapshot]:
        return super().get_state_history(self._to_read(config), **options)

    @override
    def aget_state_history(
        self, config: RunnableConfig, **options: Any
    ) -> AsyncIterator[StateSnapshot]:
        return super().aget_state_history(self._to_read(config), **options)

    @override
    def bulk_update_state(self, config: RunnableConfig, supersteps: Any) -> RunnableConfig:
        config = self._to_read(config)
        with self._held(config) as own:
            return CompiledStateGraph.bulk_update_state(own, config, edited(supersteps))

    @override
    async def abulk_update_state(self, config: RunnableConfig, supersteps: Any) -> RunnableConfig:
        config = self._to_read(config)
        async with self._aheld(config) as own:
            updates = edited(supersteps)
            return await CompiledStateGraph.abulk_update_state(own, config, updates)

    @contextmanager
    def _held(self, config: RunnableConfig | None) -> Iterator[Self]:
        """Yield the machine as it may write on a thread; who holds it already goes on with that."""
        if self.holds or not self._remembers(config):
            self._refuse_no_thread(config)
            yield self
            return
        refuse_unkept_metadata(self._thread(config))
        with thread_held(self.checkpointer, self._thread_id(config)) as saver:
            yield self.copy({"checkpointer": saver, "holds": True})

    @asynccontextmanager
    async def _aheld(self, config: RunnableConfig | None) -> AsyncIterator[Self]:
        """Do the same, asynchronously."""
        if self.holds or not self._remembers(config):
            self._refuse_no_thread(config)
            yield self
            return
        refuse_unkept_metadata(self._thread(config))
        async with athread_held(self.checkpointer, self._thread_id(config)) as saver:
            yield self.copy({"checkpointer": saver, "holds": True})

    def _refuse_no_thread(self, config: RunnableConfig | None) -> None:
        """What a checkpointer keeps, it keeps by the name of a thread."""
        own = isinstance(self.checkpointer, BaseCheckpointSaver)
        if own and not self.holds and not is_within(self._thread(config)):
            raise RequestRefused(
                'say which thread it is, as in {"configurable": {"thread_id": "..."}}: this graph '
                "keeps threads"
            )

    def _to_read(self, config: RunnableConfig | None) -> RunnableConfig:
        """Return a config of state that is kept, by this graph or by one around it."""
        thread = self._thread(config)
        if CONFIG_KEY_CHECKPOINTER not in thread.get("configurable", {}):
            if not isinstance(self.checkpointer, BaseCheckpointSaver):
                raise RequestRefused(NO_THREADS)
            if not self._remembers(config):
                self._refuse_no_thread(config)
        return config if config and "configurable" in config else thread

    def _refuse_own_loops(self) -> None:
        """A synchronous run would wait for a loop that waits for it. Raises :class:`OwnLoop`."""
        stored_on = (getattr(each, "loop", None) for each in (self.checkpointer, self.store))
        for loop in filter(None, (background_loop(), *stored_on)):
            refuse_own(loop)

    def _remembers(self, config: RunnableConfig | None) -> bool:
        """Whether the thread is this graph's to keep: within another graph it is that one's."""
        thread = self._thread(config)
        kept = isinstance(self.checkpointer, BaseCheckpointSaver) and not is_within(thread)
        return kept and "thread_id" in thread.get("configurable", {})

    def _thread_id(self, config: RunnableConfig | None) -> str:
        if not self._remembers(config):
            self._refuse_no_thread(config)
        return str(self._thread(config)["configurable"]["thread_id"])

    def _thread(self, config: RunnableConfig | None) -> RunnableConfig:
        refuse_misfit(config)
        merged = merge_configs(self.config, config)
        refuse_secrets(merged.get("configurable", {}))
        refuse_unkept_id(merged.get("configurable", {}))
        return merged


# --- What a thread can be set back to: where its task failed, and its files at any savepoint.


class ReversibleMachine(HeldMachine):
    """A graph whose threads can be reopened, and whose work can be undone."""

    settings: Settings

    def reopen(self, config: RunnableConfig, *, call: str | None = None) -> RunnableConfig:
        """Set a thread back to where its newest task failed; ``invoke(None, config)`` goes on.

        The files of its workspace go back with it, but for what somebody else changed.
        ``call`` is the id of a tool call, to run that one again or to have it asked for again.
        Returns the config of the thread. Raises
        :class:`~daruma.graph.history.NothingToReopen`.
        """
        with self._held(config) as own:
            history = [*own.get_state_history(newest(self._thread(config)))]
            fork = fork_of(history, call, self.settings)
            if call is None:
                with workspace_locked(workspace_of(None, history[0])):
                    brought_back(history[0], self._files_id(config))
            given = merge_configs(fork.config, _kept(config))
            own.update_state(given, fork.values, as_node=fork.as_node)
        return newest(config)

    async def areopen(self, config: RunnableConfig, *, call: str | None = None) -> RunnableConfig:
        """Do the same, asynchronously."""
        async with self._aheld(config) as own:
            thread = newest(self._thread(config))
            history = [past async for past in own.aget_state_history(thread)]
            fork = fork_of(history, call, self.settings)
            if call is None:
                async with aworkspace_locked(workspace_of(None, history[0])):
                    await in_thread(brought_back, history[0], self._files_id(config))
            given = merge_configs(fork.config, _kept(config))
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
        given = self._to_undo(config)
        with self._held(config) as own:
            past = own.get_state(given)
            return undone(
                past, to, conflicts, thread=self._files_id(config), travelled=_travelled(given)
            )

    async def aundo(
        self, config: RunnableConfig, *, to: str | None = None, conflicts: Conflicts = "refuse"
    ) -> Restored:
        """Do the same, asynchronously."""
        given = self._to_undo(config)
        async with self._aheld(config) as own:
            past = await own.aget_state(given)
            return await in_thread(
                undone,
                past,
                to,
                conflicts,
                thread=self._files_id(config),
                travelled=_travelled(given),
            )

    def savepoints(self, config: RunnableConfig) -> tuple[Savepoint, ...]:
        """Return the states that a thread's files can be put back to, oldest first.

        Raises :class:`~daruma.graph.history.UndoRefused` where there is no such thread.
        """
        return savepoints_of(self.get_state(self._to_undo(config)))

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


def _travelled(config: RunnableConfig) -> bool:
    return bool(config.get("configurable", {}).get("checkpoint_id"))


def _kept(config: RunnableConfig) -> RunnableConfig:
    return RunnableConfig(metadata=config.get("metadata", {}))


# --- The compiled graph as something to look at: the timeline of a thread, the picture of it all.


class NothingToSee(DarumaError):
    """Raised for a thread that there is none of, and where no threads are kept."""


class SeenMachine(ReversibleMachine):
    """A graph whose threads can be looked at; looking changes nothing."""

    member: Any

    def timeline(self, config: RunnableConfig) -> Timeline:
        """Return what happened on a thread, up to a ``checkpoint_id`` where the config has one.

        Raises :class:`NothingToSee` for an unknown thread or a graph that keeps none,
        :class:`~daruma.state.errors.DamagedState`.
        """
        given, thread = self._to_see(config)
        snapshot = self.get_state(given)
        if snapshot.created_at is None:
            raise _unknown(thread)
        supersteps = self._supersteps(thread)
        record = record_of(thread, snapshot, supersteps)
        members = [
            member_record(record, self.member().get_state(self._at(given, name)), own)
            for name, own in members_in(supersteps, record.walk).items()
        ]
        return timeline_of(record, snapshot, _there(members))

    async def atimeline(self, config: RunnableConfig) -> Timeline:
        """Do the same, asynchronously."""
        given, thread = self._to_see(config)
        snapshot = await self.aget_state(given)
        if snapshot.created_at is None:
            raise _unknown(thread)
        supersteps = await self._asupersteps(thread)
        record = record_of(thread, snapshot, supersteps)
        members = [
            member_record(record, await self.member().aget_state(self._at(given, name)), own)
            for name, own in members_in(supersteps, record.walk).items()
        ]
        return timeline_of(record, snapshot, _there(members))

    def picture(self, config: RunnableConfig | None = None) -> Picture:
        """Return the machine; with a thread's config, what that thread walked is lit.

        Raises what :meth:`timeline` does.
        """
        return _picture(self.timeline(config)) if config else Picture()

    async def apicture(self, config: RunnableConfig | None = None) -> Picture:
        """Do the same, asynchronously."""
        return _picture(await self.atimeline(config)) if config else Picture()

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """Show it in a notebook; LangGraph's own would send the graph to mermaid.ink."""
        return self.picture()._repr_mimebundle_()

    def _to_see(self, config: RunnableConfig) -> tuple[RunnableConfig, str]:
        if not self.checkpointer:
            raise NothingToSee("this graph keeps no threads: build it with persistence=")
        if not self._remembers(config):
            raise NothingToSee('say which thread: {"configurable": {"thread_id": ...}}')
        return self._thread(config), self._thread_id(config)

    def _at(self, config: RunnableConfig, namespace: str) -> RunnableConfig:
        place = {"thread_id": config["configurable"]["thread_id"], "checkpoint_ns": namespace}
        return RunnableConfig(configurable={**place, CONFIG_KEY_CHECKPOINTER: self.checkpointer})

    def _supersteps(self, thread: str) -> list[Superstep]:
        saver: Any = self.checkpointer
        if isinstance(saver, PostgresSaver):
            from daruma.graph.timeline import supersteps_in

            return supersteps_in(saver, thread)
        return supersteps_of(saver.list(_named(thread)))

    async def _asupersteps(self, thread: str) -> list[Superstep]:
        saver: Any = self.checkpointer
        if isinstance(saver, PostgresSaver):
            from daruma.graph.timeline import asupersteps_in

            return await asupersteps_in(saver, thread)
        return supersteps_of([each async for each in saver.alist(_named(thread))])


def _picture(timeline: Timeline) -> Picture:
    return Picture(nodes_walked(timeline.path), edges_walked(timeline.path))


def _named(thread: str) -> RunnableConfig:
    return RunnableConfig(configurable={"thread_id": thread})


def _unknown(thread: str) -> NothingToSee:
    return NothingToSee(f"there is no thread {thread!r} in this storage")


def _there(records: Sequence[Record | None]) -> list[Record]:
    return [each for each in records if each is not None]


# --- The machine as others see it: what a thread's run tells, and where the thread stands.


class NotFollowed(DarumaError):
    """Raised for a graph whose threads no other process can get at."""


class FollowedMachine(SeenMachine):
    """A graph whose threads can be looked at and followed by who does not run them."""

    async def afollow(self, config: RunnableConfig, *, after: int | None = None) -> Following:
        """Return the events of a thread, from what it does now, or will do next, until it stops.

        They come from any process where a worker runs the thread, and are kept for a day. ``after``
        is the id of an event to go on from. To hear all of what you are about to submit, follow
        first. Raises :class:`NotFollowed` for a graph that was built without Postgres.
        """
        saver, thread_id = self._shared(), self._thread_id(config)
        if after is None:
            busy = await standing_of(saver.database, thread_id)
            log = saver.events
            after = await (log.newest_stop(thread_id) if busy else log.newest(thread_id))
        machine = cast("Machine", self)
        return Following(machine, saver.database, saver.events, thread_id, after)

    async def alook(self, config: RunnableConfig) -> Look:
        """Return where a thread stands, whoever runs it.

        Raises :class:`~daruma.graph.requests.NoSuchThread` where there is no such thread.
        """
        saver, thread_id = self._shared(), self._thread_id(config)
        standing = (await standings(saver.database, thread_id)).get(thread_id)
        snapshot = await self.aget_state(newest(self._thread(config)))
        if standing is None and snapshot.created_at is None:
            raise NoSuchThread(f"there is no thread {thread_id!r}")
        answered = await saver.replies.aaccepted(thread_id, open_questions(snapshot))
        heard = await saver.events.of_newest_run(thread_id)
        events = [each.event for each in heard]
        told = await self._moments(config, snapshot)
        return Look.of(thread_id, snapshot, standing, answered, events, told)

    async def _moments(self, config: RunnableConfig, snapshot: StateSnapshot) -> tuple[Moment, ...]:
        if snapshot.created_at is None:  # it is only queued yet
            return ()
        return (await self.atimeline(newest(self._thread(config)))).moments

    def look(self, config: RunnableConfig) -> Look:
        """Do the same on a thread that may wait."""
        self._refuse_own_loops()
        return run(self.alook(config))

    def follow(self, config: RunnableConfig, *, after: int | None = None) -> Following:
        """Do the same on a thread that may wait."""
        self._refuse_own_loops()
        return run(self.afollow(config, after=after))

    def _shared(self) -> PostgresSaver:
        if not isinstance(self.checkpointer, PostgresSaver):
            raise NotFollowed("only threads in Postgres can be followed: persistence=pg")
        return self.checkpointer


# --- The compiled machine: LangGraph's graph behind a door, with the defaults that make it durable.


@contextmanager
def _ended(turns: RunTurns) -> Iterator[None]:
    """End the MCP servers of a run of synchronous nodes: they live on the background loop."""
    try:
        yield
    finally:
        if turns.servers and turns.servers.were_started:
            run(turns.servers.__aexit__())


class Machine(FollowedMachine):
    """Daruma's compiled graph, the same however it is run (MO-09).

    ``invoke``, ``ainvoke`` and all kinds of streaming come through ``stream`` and ``astream``, so
    the door stands there; an ``invoke`` may be an ``ainvoke`` on the background loop
    (``fast_path.py``). A run without a context gets the graph's settings, also when resumed; a run
    with a checkpointer is durable step by step unless it asks for less. ``check`` raises what is
    wrong with a run's own settings, before anything is done. Where settings switch off what comes
    after a failure, a run raises (``errors.py``). ``evolution`` learns from ended tasks beside the
    runs; it counts what became of them, and can be waited for.
    """

    settings: Settings
    check: Callable[[Settings], None]
    member: Callable[[], MemberMachine]
    evolution: Evolution

    @classmethod
    def of(
        cls,
        compiled: CompiledStateGraph[State, Settings, Input, Output],
        settings: Settings,
        check: Callable[[Settings], None],
        member: Callable[[], MemberMachine] = no_members,
        evolution: Evolution | None = None,
    ) -> Self:
        """Make the machine of a compiled graph."""
        machine = cls.__new__(cls)
        machine.__dict__.update(compiled.__dict__, settings=settings, check=check, member=member)
        machine.evolution = evolution or Evolution()
        show_in_notebooks()
        return machine

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Any:
        self._refuse_own_loops()
        refuse_misfit(config)
        with alone() as nobody_else:
            if nobody_else and crosses(self.checkpointer, merge_configs(self.config, config)):
                return run(self.ainvoke(input, config, **options))
        return plain(super().invoke(input, config, **options))

    @override
    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **options: Any
    ) -> Any:
        return plain(await super().ainvoke(input, config, **options))

    @override
    def stream(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        **options: Any,
    ) -> Iterator[Any]:
        self._refuse_own_loops()
        options = self._checked(options, config)
        with self._held(config) as holder:
            own, config = holder._past_damage(config)
            yield from own._parts(input, config, options)

    def _parts(
        self, given: Any, config: RunnableConfig | None, options: dict[str, Any]
    ) -> Iterator[Any]:
        """Run the machine, which holds its thread."""
        snapshot = self.get_state(self._thread(config)) if self._remembers(config) else None
        if given is None and snapshot and _blocked(snapshot):
            config = (config or RunnableConfig()) | self.reopen(self._thread(config))
            snapshot = self.get_state(config)
        given = addressed(self.checkpointer, given, snapshot) if snapshot else given
        admitted = admit(given, snapshot, within=is_within(config))
        with workspace_locked(workspace_of(admitted, snapshot)):
            if snapshot:
                admitted = once(self.checkpointer, admitted, snapshot)
            raised, handing = Raised(), self._handing_over(config)
            config = at_once(config, self._thread(config).get("max_concurrency"))
            turns = RunTurns(servers=McpServers())
            with _ended(turns), run_traced(config, snapshot, self._bound) as config:
                noted = self._run(raised, handing, turns, config)
                parts = super().stream(admitted, noted, **options)
                with handing.after():
                    with raised.noted_leaving():
                        yield from interruptible(parts)
                    raised.raise_end()

    @override
    async def astream(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        **options: Any,
    ) -> AsyncIterator[Any]:
        if options.get("context"):  # a model's client, an expert's file may be looked at
            options = await in_thread(self._checked, options, config)
        else:
            options = self._checked(options, config)
        async with self._aheld(config) as holder:
            own, config = await holder._apast_damage(config)
            async with closing(own._aparts(input, config, options)) as told:
                async for part in told:
                    yield part

    async def _aparts(
        self, given: Any, config: RunnableConfig | None, options: dict[str, Any]
    ) -> AsyncIterator[Any]:
        await import_schema_checks()
        known = self._remembers(config)
        snapshot = await self.aget_state(self._thread(config)) if known else None
        if given is None and snapshot and _blocked(snapshot):
            config = (config or RunnableConfig()) | await self.areopen(self._thread(config))
            snapshot = await self.aget_state(config)
        given = await aaddressed(self.checkpointer, given, snapshot) if snapshot else given
        admitted = await aadmit(given, snapshot, within=is_within(config))
        async with aworkspace_locked(workspace_of(admitted, snapshot)):
            if snapshot:
                admitted = await aonce(self.checkpointer, admitted, snapshot)
            raised, handing = Raised(), self._handing_over(config)
            async with McpServers() as servers:
                turns = RunTurns(servers=servers)
                with run_traced(config, snapshot, self._bound) as config:
                    noted = self._run(raised, handing, turns, config)
                    parts = super().astream(admitted, noted, **options)
                    with handing.after():
                        with raised.noted_leaving():
                            async with closing(parts) as told:
                                async for part in told:
                                    yield part
                        raised.raise_end()

    def _past_damage(self, config: RunnableConfig | None) -> tuple[Self, RunnableConfig | None]:
        """Return how to go on from the checkpoint that was asked for, where newer ones are damaged.

        LangGraph reads the newest one in any case; it could not go on from any other.
        """
        given = self._start(config)
        if given:
            try:
                self.get_state(newest(config))
            except DamagedState:
                return self._from(given), without_start(config)
        return self, config

    async def _apast_damage(
        self, config: RunnableConfig | None
    ) -> tuple[Self, RunnableConfig | None]:
        """Do the same, asynchronously."""
        given = self._start(config)
        if given:
            try:
                await self.aget_state(newest(config))
            except DamagedState:
                return self._from(given), without_start(config)
        return self, config

    def _start(self, config: RunnableConfig | None) -> tuple[str, str] | None:
        chooses = hasattr(self.checkpointer, "going_on_from") and self._remembers(config)
        return start_of(self._thread(config)) if chooses else None

    def _from(self, start: tuple[str, str]) -> Self:
        saver: Any = self.checkpointer
        return self.copy({"checkpointer": saver.going_on_from(*start)})

    @property
    def _bound(self) -> Callbacks:
        return (self.config or {}).get("callbacks")

    def _handing_over(self, config: RunnableConfig | None) -> HandingOver:
        return HandingOver(self.evolution.hand_over, remembered=self._remembers(config))

    def _run(
        self,
        raised: Raised,
        handing: HandingOver,
        turns: RunTurns,
        config: RunnableConfig | None,
    ) -> RunnableConfig:
        """Return the config of a run, with the live things that are its own."""
        config = reading_strictly(config) if is_within(config) else config
        noted = FirstLook().noted(turns.noted(raised.noted(handing.noted(config))))
        return quickly(Members(self.member).noted(CommonGround().noted(noted)), self.store)

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


def _blocked(snapshot: StateSnapshot) -> bool:
    result = snapshot.values.get("result")
    return not snapshot.tasks and result is not None and result.status == "blocked"
