"""The compiled machine: LangGraph's graph behind a door, with the defaults that make it durable."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Self

from langchain_core.callbacks import Callbacks
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateSnapshot
from typing_extensions import override

from daruma.graph.answered_once import aaddressed, addressed, aonce, once
from daruma.graph.at_once import at_once
from daruma.graph.background import background_loop
from daruma.graph.bridge import refuse_own, run
from daruma.graph.common_ground import CommonGround
from daruma.graph.crossing import alone, crosses
from daruma.graph.door import aadmit, admit
from daruma.graph.evolution import Evolution
from daruma.graph.first_look import FirstLook
from daruma.graph.followed_machine import FollowedMachine
from daruma.graph.handing_over import HandingOver
from daruma.graph.held import workspace_of
from daruma.graph.interrupting import interruptible
from daruma.graph.members import MemberMachine, Members, no_members
from daruma.graph.pictures.notebook import show_in_notebooks
from daruma.graph.quick_runtime import quickly
from daruma.graph.raising import Raised, closing
from daruma.graph.starting_point import newest, start_of, without_start
from daruma.graph.tracing.switch import run_traced
from daruma.graph.turns import RunTurns
from daruma.state.channels import Input, Output, State
from daruma.state.errors import DamagedState
from daruma.state.messages import plain
from daruma.state.settings import Settings
from daruma.tools.calls.schema import checks_at_hand
from daruma.tools.files.workspace import aworkspace_locked, workspace_locked
from daruma.tools.threads import in_thread


class Machine(FollowedMachine):
    """Daruma's compiled graph.

    ``invoke``, ``ainvoke`` and all kinds of streaming come through ``stream`` and ``astream``, so
    the door stands there; an ``invoke`` may be an ``ainvoke`` on the background loop
    (``crossing.py``). A run without a context gets the graph's settings, also when resumed; a run
    with a checkpointer is durable step by step unless it asks for less. ``check`` raises what is
    wrong with a run's own settings, before anything is done. Where settings switch off what comes
    after a failure, a run raises (``tiers.py``). ``evolution`` learns from ended tasks beside the
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
        refuse_own(background_loop())
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
            raised, handing = Raised(), self._handing_over(config)
            config = at_once(config, self._thread(config).get("max_concurrency"))
            with run_traced(config, snapshot, self._bound) as config:
                parts = super().stream(admitted, self._run(raised, handing, config), **options)
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
            options = await in_thread(self._checked, options)
        else:
            options = self._checked(options)
        async with self._aheld(config) as holder:
            own, config = await holder._apast_damage(config)
            async with closing(own._aparts(input, config, options)) as told:
                async for part in told:
                    yield part

    async def _aparts(
        self, given: Any, config: RunnableConfig | None, options: dict[str, Any]
    ) -> AsyncIterator[Any]:
        await checks_at_hand()
        known = self._remembers(config)
        snapshot = await self.aget_state(self._thread(config)) if known else None
        if given is None and snapshot and _blocked(snapshot):
            config = (config or RunnableConfig()) | await self.areopen(self._thread(config))
            snapshot = await self.aget_state(config)
        given = await aaddressed(self.checkpointer, given, snapshot) if snapshot else given
        admitted = await aadmit(given, snapshot)
        async with aworkspace_locked(workspace_of(admitted, snapshot)):
            if snapshot:
                admitted = await aonce(self.checkpointer, admitted, snapshot)
            raised, handing = Raised(), self._handing_over(config)
            with run_traced(config, snapshot, self._bound) as config:
                parts = super().astream(admitted, self._run(raised, handing, config), **options)
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
        self, raised: Raised, handing: HandingOver, config: RunnableConfig | None
    ) -> RunnableConfig:
        """Return the config of a run, with the live things that are its own."""
        noted = FirstLook().noted(RunTurns().noted(raised.noted(handing.noted(config))))
        return quickly(Members(self.member).noted(CommonGround().noted(noted)), self.store)

    def _checked(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the options with our defaults, once the settings among them were checked."""
        if options.get("context"):
            self.check(Settings.model_validate(options["context"]))
        defaults: dict[str, Any] = {"context": self.settings}
        if self.checkpointer:
            defaults["durability"] = "sync"
        return options | {key: options.get(key) or value for key, value in defaults.items()}


def _blocked(snapshot: StateSnapshot) -> bool:
    result = snapshot.values.get("result")
    return not snapshot.tasks and result is not None and result.status == "blocked"
