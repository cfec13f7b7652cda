"""The compiled graph as something to look at: the timeline of a thread, the picture of it all."""

from collections.abc import Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph._internal._constants import CONFIG_KEY_CHECKPOINTER

from daruma.graph.pictures.picture import Picture
from daruma.graph.pictures.record import Record, member_record, members_in, record_of
from daruma.graph.pictures.superstep import Superstep
from daruma.graph.pictures.superstep_list import supersteps_of
from daruma.graph.pictures.timeline import Timeline
from daruma.graph.pictures.timeline_of import timeline_of
from daruma.graph.pictures.visit import edges_walked, nodes_walked
from daruma.graph.reversible_machine import ReversibleMachine
from daruma.graph.storage.saver import PostgresSaver
from daruma.state.errors import DarumaError


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
            from daruma.graph.pictures.superstep_rows import supersteps_in

            return supersteps_in(saver, thread)
        return supersteps_of(saver.list(_named(thread)))

    async def _asupersteps(self, thread: str) -> list[Superstep]:
        saver: Any = self.checkpointer
        if isinstance(saver, PostgresSaver):
            from daruma.graph.pictures.superstep_rows import asupersteps_in

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
