"""The compiled graph as the development server runs it."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextvars import Context
from dataclasses import replace
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command
from typing_extensions import override

from daruma.graph.compiled import Machine
from daruma.graph.door import open_questions, thread_id_of
from daruma.graph.raising import closing
from daruma.graph.replies import replies_of
from daruma.graph.starting_point import newest, start_of, without_start
from daruma.graph.studio.addressing import Sent, by_ids, named
from daruma.graph.studio.run_settings import settings_of, without_settings
from daruma.graph.studio.shown_model import ashown
from daruma.graph.studio.superseded import is_superseded, what_stays
from daruma.graph.studio.told import as_told
from daruma.state.errors import DarumaError
from daruma.state.interrupts import ReplyRefused

REQUESTED_AT = "__request_start_time_ms__"
"""Where the server notes when a run was asked for."""


class StudioMachine(Machine):
    """Daruma's graph for a server whose clients know less of a thread than a program does.

    Over the plain graph it takes replies that name no question, as far as they can mean but one,
    and the decisions of a chat client's inbox; settings that a run does not give are the folder's;
    the server's default of writing behind the run's back is replaced by ours; errors of ours reach
    the client with their text; and without a model an example is played.
    """

    @classmethod
    def over(cls, machine: Machine) -> Self:
        """Make the server's form of a graph."""
        studio = cls.__new__(cls)
        studio.__dict__.update(machine.__dict__)
        return studio

    @override
    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **options: Any
    ) -> AsyncIterator[Any]:
        try:
            settings = settings_of(self.settings, options.get("context"))
            options |= {"context": settings, "durability": self._durability(options)}
            config = without_settings(config)
            if isinstance(input, Command):
                input, config = await self._answer(input, config)  # noqa: A001 - LangGraph's name
            elif isinstance(input, Mapping):
                input = await ashown(input) if settings.llm.model is None else input  # noqa: A001
                await self._put_aside(config)
            async with closing(super().astream(input, config, **options)) as parts:
                async for part in parts:
                    yield part
        except DarumaError as error:
            raise as_told(error) from error

    async def _put_aside(self, config: RunnableConfig | None) -> None:
        """End what a thread was at, where a request comes in its place."""
        if not self._remembers(config) or start_of(self._thread(config)):
            return
        thread = RunnableConfig(configurable={"thread_id": self._thread_id(config)})
        snapshot = await self.aget_state(thread)
        if is_superseded(snapshot):
            # Outside of the run: LangGraph goes on from a checkpoint of the same run, unasked.
            ending = self.aupdate_state(thread, what_stays(snapshot), as_node="finish")
            await asyncio.create_task(ending, context=Context())

    async def _answer(
        self, given: Command[Any], config: RunnableConfig | None
    ) -> tuple[Command[Any], RunnableConfig | None]:
        """Return a reply by the id of its question, and where on the thread it is given."""
        if given.resume is None or not self._remembers(config):
            return given, config
        thread = self._thread(config)
        shown = thread["configurable"].get("checkpoint_id")
        snapshot = await self.aget_state(newest(thread))
        if shown and shown != snapshot.config["configurable"].get("checkpoint_id"):
            if not by_ids(given.resume):
                raise ReplyRefused("the thread has gone on since what this reply answers was shown")
            return given, config
        sent = Sent(
            at=_requested_at(thread),
            seen=bool(shown),
            approved_before=await replies_of(self.checkpointer).adecided(thread_id_of(snapshot)),
        )
        replies = named(given.resume, open_questions(snapshot), sent)
        return replace(given, resume=replies), without_start(config)

    def _durability(self, options: Mapping[str, Any]) -> str | None:
        """Return how a run is written: step by step, unless only its end is to be.

        The server says "async" where the client has said nothing: the two can not be told apart.
        """
        given: str | None = options.get("durability")
        return "sync" if given == "async" and self.checkpointer else given


def _requested_at(config: RunnableConfig) -> float | None:
    milliseconds = config.get("configurable", {}).get(REQUESTED_AT)
    return milliseconds / 1000 if milliseconds else None
