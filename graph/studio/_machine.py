"""The compiled graph as the development server runs it."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextvars import Context
from dataclasses import replace
from typing import Any, Final, Self

from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, StateSnapshot
from typing_extensions import override

from daruma.graph.errors import closing
from daruma.graph.history import newest, start_of, without_start
from daruma.graph.requests import open_questions, thread_id_of
from daruma.graph.run import Machine
from daruma.graph.storage import replies_of
from daruma.graph.studio._demo_model import ashown
from daruma.graph.studio._inbox import Sent, addressed, by_ids
from daruma.state.errors import DarumaError
from daruma.state.interrupts import ReplyRefused
from daruma.state.settings import (
    Settings,
    SettingsError,
    loosening_changes,
    merge_settings,
    name_changes,
)
from daruma.tools.calls import results_for_unanswered

# --- Errors as the server passes them on.


class Told(DarumaError, ValueError):
    """Raised in the place of any error of ours, with its one line.

    The server tells a client no more than "An internal error occurred" of an error that is none of
    Python's own.
    """


def as_told(error: DarumaError) -> Told:
    """Return an error in the form whose text reaches the client."""
    return Told(f"{type(error).__name__}: {error}")


# --- A run's settings: what the client gave, over those of the folder that the server is in.


def settings_of(own: Settings, given: object) -> Settings:
    """Return the settings of a run: what a client or an assistant has set can only tighten (SE-03).

    Raises :class:`~daruma.state.settings.SettingsError`, naming the keys that would weaken.
    """
    if not given:
        return own
    if isinstance(given, Mapping):
        given = merge_settings(own.model_dump(exclude_unset=True), given)
    wanted = given if isinstance(given, Settings) else Settings.model_validate(given)
    if refused := loosening_changes(own, wanted):
        raise SettingsError(
            f"a client can only make settings stricter than the server has them: "
            f"{name_changes(refused)}; change them in daruma.yaml or DARUMA_* there"
        )
    return wanted


def without_settings(config: RunnableConfig | None) -> RunnableConfig | None:
    """Return a config without the copy of the settings that the server puts into it.

    What stands there is kept in clear with every checkpoint. What a client says of how the command
    line began a thread is left out, too: `daruma resume` would take its model from there.
    """
    if not config:
        return config
    kept = {
        key: value
        for key, value in config.get("configurable", {}).items()
        if key not in Settings.model_fields and key != "__context_provided__"
    }
    told = {
        key: value
        for key, value in (config.get("metadata") or {}).items()
        if not key.startswith("daruma_")
    }
    whole = RunnableConfig(**{**config, "configurable": kept})
    if "metadata" in config:
        whole["metadata"] = told
    return whole


# --- Work that a newer request takes the place of, as the server's clients have it do.
#
# Our own door refuses a request on a thread with unfinished work, so that nothing is lost. A person
# in a chat who writes on means to be heard: what has come of the work is kept, the rest is told.

CUT: Final = (
    "Cut short by a newer request: it may have run in part. Look before you rely on it, or do it "
    "again."
)


def is_superseded(snapshot: StateSnapshot) -> bool:
    """Whether a thread has work that nobody is asked about, which a request would put aside."""
    return bool(snapshot.tasks) and not open_questions(snapshot) and not snapshot.interrupts


def what_stays(snapshot: StateSnapshot) -> dict[str, Any]:
    """Return what is written when work is put aside: each call gets its result, or is told cut."""
    done = [*_results(snapshot)]
    history = [*snapshot.values.get("messages", ()), *done]
    cut = [each.model_copy(update={"content": CUT}) for each in results_for_unanswered(history)]
    return {"messages": [*done, *cut], "calls": ()}


def _results(snapshot: StateSnapshot) -> Iterable[AnyMessage]:
    for task in snapshot.tasks:
        if task.name == "tool" and isinstance(task.result, Mapping):
            yield from task.result.get("messages", ())


# --- The compiled graph as the development server runs it.

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
        replies = addressed(given.resume, open_questions(snapshot), sent)
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
