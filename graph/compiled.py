"""The compiled machine: LangGraph's graph behind a door, with the defaults that make it durable."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateSnapshot
from typing_extensions import override

from daruma.graph.answered_once import aaddressed, addressed, aonce, once
from daruma.graph.door import admit, refuse_secrets
from daruma.graph.first_look import FirstLook
from daruma.graph.held import athread_held, thread_held, workspace_of
from daruma.graph.members import MemberMachine, Members, no_members
from daruma.graph.raising import Raised, closing
from daruma.graph.reopening import fork_of
from daruma.graph.starting_point import newest, start_of, without_start
from daruma.graph.undoing import brought_back, savepoints_of, undone
from daruma.state.channels import Input, Output, State
from daruma.state.savepoint import Savepoint
from daruma.state.settings import Settings
from daruma.state.storage import DamagedState
from daruma.tools.files.threads import in_thread
from daruma.tools.files.workspace_lock import workspace_locked
from daruma.tools.snapshots.outcome import Conflicts, Restored


class Machine(CompiledStateGraph[State, Settings, Input, Output]):
    """Daruma's compiled graph.

    ``invoke``, ``ainvoke`` and all kinds of streaming come through ``stream`` and ``astream``, so
    the door stands there. A run without a context gets the graph's settings, also when resumed; a
    run with a checkpointer is durable step by step unless it asks for less. ``check`` raises what
    is wrong with a run's own settings, before anything is done. Where settings switch off what
    comes after a failure, a run raises (``tiers.py``).
    """

    settings: Settings
    check: Callable[[Settings], None]
    member: Callable[[], MemberMachine]
    holds: bool = False

    @classmethod
    def of(
        cls,
        compiled: CompiledStateGraph[State, Settings, Input, Output],
        settings: Settings,
        check: Callable[[Settings], None],
        member: Callable[[], MemberMachine] = no_members,
    ) -> Self:
        """Make the machine of a compiled graph."""
        machine = cls.__new__(cls)
        machine.__dict__.update(compiled.__dict__, settings=settings, check=check, member=member)
        return machine

    @override
    def copy(self, update: dict[str, Any] | None = None) -> Self:
        # LangGraph's own copy goes through __init__, which drops what is not an argument of it.
        machine = self.__class__.__new__(self.__class__)
        machine.__dict__.update(self.__dict__, **(update or {}))
        return machine

    @override
    def stream(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        **options: Any,
    ) -> Iterator[Any]:
        options = self._checked(options)
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
        admitted = admit(given, snapshot)
        with workspace_locked(workspace_of(admitted, snapshot)):
            if snapshot:
                admitted = once(self.checkpointer, admitted, snapshot)
            raised = Raised()
            yield from raised.over(super().stream(admitted, self._run(raised, config), **options))

    @override
    async def astream(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        **options: Any,
    ) -> AsyncIterator[Any]:
        options = self._checked(options)
        async with self._aheld(config) as holder:
            own, config = await holder._apast_damage(config)
            async with closing(own._aparts(input, config, options)) as told:
                async for part in told:
                    yield part

    async def _aparts(
        self, given: Any, config: RunnableConfig | None, options: dict[str, Any]
    ) -> AsyncIterator[Any]:
        known = self._remembers(config)
        snapshot = await self.aget_state(self._thread(config)) if known else None
        if given is None and snapshot and _blocked(snapshot):
            config = (config or RunnableConfig()) | await self.areopen(self._thread(config))
            snapshot = await self.aget_state(config)
        given = await aaddressed(self.checkpointer, given, snapshot) if snapshot else given
        admitted = admit(given, snapshot)
        with workspace_locked(workspace_of(admitted, snapshot)):
            if snapshot:
                admitted = await aonce(self.checkpointer, admitted, snapshot)
            raised = Raised()
            parts = super().astream(admitted, self._run(raised, config), **options)
            async with closing(raised.aover(parts)) as told:
                async for part in told:
                    yield part

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

    @override
    def bulk_update_state(self, config: RunnableConfig, supersteps: Any) -> RunnableConfig:
        with self._held(config) as own:
            return CompiledStateGraph.bulk_update_state(own, config, supersteps)

    @override
    async def abulk_update_state(self, config: RunnableConfig, supersteps: Any) -> RunnableConfig:
        async with self._aheld(config) as own:
            return await CompiledStateGraph.abulk_update_state(own, config, supersteps)

    @contextmanager
    def _held(self, config: RunnableConfig | None) -> Iterator[Self]:
        """Yield the machine as it may write on a thread; who holds it already goes on with that."""
        if self.holds or not self._remembers(config):
            yield self
            return
        with thread_held(self.checkpointer, self._thread_id(config)) as saver:
            yield self.copy({"checkpointer": saver, "holds": True})

    @asynccontextmanager
    async def _aheld(self, config: RunnableConfig | None) -> AsyncIterator[Self]:
        """Do the same, asynchronously."""
        if self.holds or not self._remembers(config):
            yield self
            return
        async with athread_held(self.checkpointer, self._thread_id(config)) as saver:
            yield self.copy({"checkpointer": saver, "holds": True})

    def reopen(self, config: RunnableConfig, *, call: str | None = None) -> RunnableConfig:
        """Set a thread back to where its newest task failed; ``invoke(None, config)`` goes on.

        The files of its workspace go back with it, but for what somebody else changed.
        ``call`` is the id of a tool call, to run that one again or to have it asked for again.
        Returns the config of the thread. Raises
        :class:`~daruma.graph.reopening.NothingToReopen`.
        """
        with self._held(config) as own:
            history = [*own.get_state_history(newest(self._thread(config)))]
            fork = fork_of(history, call)
            if call is None:
                with workspace_locked(workspace_of(None, history[0])):
                    brought_back(history[0])
            given = merge_configs(fork.config, _kept(config))
            own.update_state(given, fork.values, as_node=fork.as_node)
        return newest(config)

    async def areopen(self, config: RunnableConfig, *, call: str | None = None) -> RunnableConfig:
        """Do the same, asynchronously."""
        async with self._aheld(config) as own:
            thread = newest(self._thread(config))
            history = [past async for past in own.aget_state_history(thread)]
            fork = fork_of(history, call)
            if call is None:
                with workspace_locked(workspace_of(None, history[0])):
                    await in_thread(brought_back, history[0])
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

        Raises :class:`~daruma.graph.undoing.UndoRefused` where that state can not be had,
        :class:`~daruma.tools.snapshots.outcome.RestoreRefused` for conflicts, before anything is
        changed.
        """
        given = self._thread(config)
        with self._held(config) as own:
            past = own.get_state(given)
            with workspace_locked(workspace_of(None, past)):
                return undone(past, to, conflicts, travelled=_travelled(given))

    async def aundo(
        self, config: RunnableConfig, *, to: str | None = None, conflicts: Conflicts = "refuse"
    ) -> Restored:
        """Do the same, asynchronously."""
        given = self._thread(config)
        async with self._aheld(config) as own:
            past = await own.aget_state(given)
            with workspace_locked(workspace_of(None, past)):
                return await in_thread(undone, past, to, conflicts, travelled=_travelled(given))

    def savepoints(self, config: RunnableConfig) -> tuple[Savepoint, ...]:
        """Return the states that a thread's files can be put back to, oldest first.

        Raises :class:`~daruma.graph.undoing.UndoRefused` where there is no such thread.
        """
        return savepoints_of(self.get_state(self._thread(config)))

    async def asavepoints(self, config: RunnableConfig) -> tuple[Savepoint, ...]:
        """Do the same, asynchronously."""
        return savepoints_of(await self.aget_state(self._thread(config)))

    def _run(self, raised: Raised, config: RunnableConfig | None) -> RunnableConfig:
        """Return the config of a run, with the live things that are its own."""
        noted = FirstLook().noted(RunTurns().noted(raised.noted(config)))
        return Members(self.member).noted(noted)

    def _remembers(self, config: RunnableConfig | None) -> bool:
        configurable = self._thread(config).get("configurable", {})
        return bool(self.checkpointer) and "thread_id" in configurable

    def _thread_id(self, config: RunnableConfig | None) -> str:
        return str(self._thread(config)["configurable"]["thread_id"])

    def _thread(self, config: RunnableConfig | None) -> RunnableConfig:
        merged = merge_configs(self.config, config)
        refuse_secrets(merged.get("configurable", {}))
        return merged

    def _checked(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the options with our defaults, once the settings among them were checked."""
        if options.get("context"):
            self.check(Settings.model_validate(options["context"]))
        defaults: dict[str, Any] = {"context": self.settings}
        if self.checkpointer:
            defaults["durability"] = "sync"
        return options | {key: options.get(key) or value for key, value in defaults.items()}


def _travelled(config: RunnableConfig) -> bool:
    return bool(config.get("configurable", {}).get("checkpoint_id"))


def _kept(config: RunnableConfig) -> RunnableConfig:
    return RunnableConfig(metadata=config.get("metadata", {}))


def _blocked(snapshot: StateSnapshot) -> bool:
    result = snapshot.values.get("result")
    return not snapshot.tasks and result is not None and result.status == "blocked"
