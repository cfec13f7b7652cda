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
from daruma.graph.undoing import savepoints_of, undone
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

        ``call`` is the id of a tool call, to run that one again or to have it asked for again.
        Returns the config of the thread. Raises
        :class:`~daruma.graph.reopening.NothingToReopen`.
        """
        fork = fork_of([*self.get_state_history(newest(self._thread(config)))], call)
        self.update_state(
            merge_configs(fork.config, _kept(config)), fork.values, as_node=fork.as_node
        )
        return newest(config)

    async def areopen(self, config: RunnableConfig, *, call: str | None = None) -> RunnableConfig:
        """Do the same, asynchronously."""
        thread = newest(self._thread(config))
        fork = fork_of([past async for past in self.aget_state_history(thread)], call)
        await self.aupdate_state(
            merge_configs(fork.config, _kept(config)), fork.values, as_node=fork.as_node
        )
        return newest(config)

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
