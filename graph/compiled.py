"""The compiled machine: LangGraph's graph behind a door, with the defaults that make it durable."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateSnapshot
from typing_extensions import override

from daruma.graph.answered_once import aaddressed, addressed, aonce, once
from daruma.graph.door import admit, refuse_secrets
from daruma.graph.first_look import FirstLook
from daruma.graph.members import MemberMachine, Members, no_members
from daruma.graph.raising import Raised, closing
from daruma.graph.reopening import fork_of
from daruma.graph.undoing import brought_back, savepoints_of, undone
from daruma.state.channels import Input, Output, State
from daruma.state.savepoint import Savepoint
from daruma.state.settings import Settings
from daruma.tools.files.threads import in_thread
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
        snapshot = self.get_state(self._thread(config)) if self._remembers(config) else None
        if input is None and snapshot and _blocked(snapshot):
            config = (config or RunnableConfig()) | self.reopen(self._thread(config))
            snapshot = self.get_state(config)
        given = addressed(self.checkpointer, input, snapshot) if snapshot else input
        admitted = admit(given, snapshot)
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
        known = self._remembers(config)
        snapshot = await self.aget_state(self._thread(config)) if known else None
        if input is None and snapshot and _blocked(snapshot):
            config = (config or RunnableConfig()) | await self.areopen(self._thread(config))
            snapshot = await self.aget_state(config)
        given = await aaddressed(self.checkpointer, input, snapshot) if snapshot else input
        admitted = admit(given, snapshot)
        if snapshot:
            admitted = await aonce(self.checkpointer, admitted, snapshot)
        raised = Raised()
        parts = super().astream(admitted, self._run(raised, config), **options)
        async with closing(raised.aover(parts)) as told:
            async for part in told:
                yield part

    def reopen(self, config: RunnableConfig, *, call: str | None = None) -> RunnableConfig:
        """Set a thread back to where its newest task failed; ``invoke(None, config)`` goes on.

        The files of its workspace go back with it, but for what somebody else changed.
        ``call`` is the id of a tool call, to run that one again or to have it asked for again.
        Returns the config of the thread. Raises
        :class:`~daruma.graph.reopening.NothingToReopen`.
        """
        history = [*self.get_state_history(newest(self._thread(config)))]
        fork = fork_of(history, call)
        if call is None:
            brought_back(history[0])
        self.update_state(
            merge_configs(fork.config, _kept(config)), fork.values, as_node=fork.as_node
        )
        return newest(config)

    async def areopen(self, config: RunnableConfig, *, call: str | None = None) -> RunnableConfig:
        """Do the same, asynchronously."""
        thread = newest(self._thread(config))
        history = [past async for past in self.aget_state_history(thread)]
        fork = fork_of(history, call)
        if call is None:
            await in_thread(brought_back, history[0])
        await self.aupdate_state(
            merge_configs(fork.config, _kept(config)), fork.values, as_node=fork.as_node
        )
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
        return undone(self.get_state(given), to, conflicts, travelled=_travelled(given))

    async def aundo(
        self, config: RunnableConfig, *, to: str | None = None, conflicts: Conflicts = "refuse"
    ) -> Restored:
        """Do the same, asynchronously."""
        given = self._thread(config)
        past = await self.aget_state(given)
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
        return Members(self.member).noted(FirstLook().noted(raised.noted(config)))

    def _remembers(self, config: RunnableConfig | None) -> bool:
        configurable = self._thread(config).get("configurable", {})
        return bool(self.checkpointer) and "thread_id" in configurable

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


def newest(config: RunnableConfig | None) -> RunnableConfig:
    """Return the config of a thread without any checkpoint of it."""
    given = dict((config or {}).get("configurable", {}))
    kept = {k: v for k, v in given.items() if k not in ("checkpoint_id", "checkpoint_map")}
    return RunnableConfig(configurable=kept)


def _travelled(config: RunnableConfig) -> bool:
    return bool(config.get("configurable", {}).get("checkpoint_id"))


def _kept(config: RunnableConfig) -> RunnableConfig:
    return RunnableConfig(metadata=config.get("metadata", {}))


def _blocked(snapshot: StateSnapshot) -> bool:
    result = snapshot.values.get("result")
    return not snapshot.tasks and result is not None and result.status == "blocked"
