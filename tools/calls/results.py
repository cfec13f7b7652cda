"""The one answer that every tool call gets (TL-03), and large outputs beside the state (DU-08)."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable
from unicodedata import category

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from daruma.state.calls import ToolTask
from daruma.state.messages import growing
from daruma.state.progress import UNCHANGED
from daruma.state.text import REFERENCE, left_out

# --- The one answer that every tool call gets, whatever became of it (TL-03).

LIMIT = 30_000
"""Characters of a result that the model is shown: about 8,000 tokens."""


DEFINITION: Final = "definition"
"""Where the result of an MCP tool says what the tool was when it ran."""


def tool_result(
    call: ToolTask,
    text: str,
    *,
    ok: bool = True,
    reference: str = "",
    unchanged: bool = False,
    definition: str = "",
) -> ToolMessage:
    """Return the result message of a call, its text safe to store and cut to ``LIMIT``.

    ``reference`` is the id that the whole text is kept under, if the text is but its ends;
    ``unchanged`` marks what is known to have changed nothing in the workspace. ``definition`` is
    that of an MCP tool which ran.
    """
    noted: dict[str, object] = {REFERENCE: reference} if reference else {}
    noted |= {DEFINITION: definition} if definition else {}
    return ToolMessage(
        storable(text),
        tool_call_id=call.id,
        name=call.name or call.requested_name or "unknown",
        id=call.result_id,
        status="success" if ok else "error",
        additional_kwargs=noted | ({UNCHANGED: True} if unchanged else {}),
    )


def definitions(messages: Sequence[AnyMessage]) -> Mapping[str, str]:
    """Return by name what MCP tools were when they ran last: what was approved of them (SE-06)."""
    return growing(messages).known(_definitions, start={})


def _definitions(known: Mapping[str, str], messages: Sequence[AnyMessage]) -> Mapping[str, str]:
    ran = (each for each in messages if isinstance(each, ToolMessage))
    new = {str(m.name): str(m.additional_kwargs.get(DEFINITION, "")) for m in ran}
    return {**known, **{name: each for name, each in new.items() if each}}


def leave_out(messages: Sequence[AnyMessage]) -> bool:
    """Whether one of the messages is a result that was left out in part."""
    return growing(messages).known(_leave_out, start=False)


def _leave_out(known: bool, messages: Sequence[AnyMessage]) -> bool:  # noqa: FBT001 - a fold
    return known or any(
        isinstance(message, ToolMessage) and REFERENCE in message.additional_kwargs
        for message in messages
    )


def clean(text: str) -> str:
    """Return text without NUL and lone surrogates, which no database takes."""
    text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return text.encode("utf-8", "replace").decode("utf-8")


def storable(text: str) -> str:
    """Return a tool's text as it is stored: clean, and its middle cut where it is too long."""
    text = clean(text)
    if len(text) <= LIMIT:
        return text
    half = LIMIT // 2
    return f"{text[:half]}\n[... {len(text) - LIMIT} characters cut ...]\n{text[-half:]}"


ENDINGS = ("finish_reason", "stop_reason", "done_reason")
"""Where providers say why an answer ended: OpenAI and Google, Anthropic, Ollama."""
_NOT_BY_THE_MODEL = frozenset(
    {"length", "content_filter", "max_tokens", "model_context_window_exceeded", "safety"}
)


def cut_off(message: AIMessage) -> str:
    """Return why an answer was ended by a limit or a filter; empty if by the model itself."""
    said = (str(message.response_metadata.get(key)) for key in ENDINGS)
    return next((why for why in said if why.lower() in _NOT_BY_THE_MODEL), "")


def blank(text: str) -> bool:
    """Whether a text shows nothing: white space, control and zero-width characters only."""
    return all(each.isspace() or category(each) in ("Cf", "Cc") for each in text)


def unanswered(messages: Iterable[AnyMessage]) -> list[ToolMessage]:
    """Return results for the calls that have none, saying that they did not run."""
    messages = list(messages)
    last = next((m for m in reversed(messages) if isinstance(m, AIMessage)), None)
    if last is None:
        return []
    return [
        ToolMessage(
            "Not run: the task ended before.",
            tool_call_id=str(call["id"]),
            name=call["name"] or "unknown",
            id=f"{last.id}:{call['id']}",
            status="error",
        )
        for call in (*last.tool_calls, *last.invalid_tool_calls)
        if f"{last.id}:{call['id']}" not in {m.id for m in messages}
    ]


# --- Large outputs: kept whole beside the thread's state, which holds their two ends (DU-08).

MOST: Final = 10_000_000
"""Characters that are kept of one output; what is beyond is as good as endless."""


@runtime_checkable
class OutputStore(Protocol):
    """Where outputs are kept, by thread and by the digest of what they are."""

    async def keep(self, thread_id: str, id_: str, text: str) -> None:
        """Keep a text; what is kept already stays as it is."""

    async def read(self, thread_id: str, id_: str) -> str | None:
        """Return a text of this thread; None for what it has not kept."""


class ProcessOutputs:
    """Outputs in this process, for checkpointers that have no place for them.

    With ``most`` the oldest goes for each that is more.
    """

    def __init__(self, *, most: int | None = None) -> None:
        self._kept: dict[tuple[str, str], str] = {}
        self._most = most

    async def keep(self, thread_id: str, id_: str, text: str) -> None:
        self._kept[thread_id, id_] = text
        if self._most is not None and len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]

    async def read(self, thread_id: str, id_: str) -> str | None:
        return self._kept.get((thread_id, id_))


@dataclass(frozen=True)
class Outputs:
    """The outputs of one thread."""

    store: OutputStore
    thread_id: str = "local"

    async def keep(self, text: str) -> str:
        """Keep a text that any database takes, and return its id: the same for the same text."""
        id_ = hashlib.sha256(text.encode()).hexdigest()[:16]
        await self.store.keep(self.thread_id, id_, text)
        return id_

    async def note(self, id_: str, text: str) -> None:
        """Keep a text for ourselves, under an id that says what it is about."""
        await self.store.keep(self.thread_id, id_, text)

    async def read(self, id_: str) -> str | None:
        """Return a text by its id; None for one that this thread has not kept."""
        return await self.store.read(self.thread_id, id_)


@dataclass(frozen=True)
class Shown:
    """A result as the model is shown it; ``reference`` is the id of the whole, if that is more."""

    text: str
    reference: str = ""


async def shown(text: str, limit: int, outputs: Outputs) -> Shown:
    """Keep a text of more than ``limit`` characters; return its ends and how to read the rest."""
    text = clean(text)
    if len(text) <= limit:
        return Shown(text)
    whole = text[:MOST]
    id_ = await outputs.keep(whole)
    room = limit - len(left_out(len(text), id_)) - 2
    head, tail = text[: room - room // 2], text[len(text) - room // 2 :]
    return Shown(f"{head}\n{left_out(len(text) - room, id_)}\n{tail}", id_)
