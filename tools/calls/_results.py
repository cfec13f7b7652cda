"""The answer that each tool call gets (TL-03), large outputs (DU-08), the journal of effects."""

import hashlib
import re
from base64 import b64decode
from binascii import Error as BadBase64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple, Protocol, runtime_checkable

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from daruma.state.calls import ALLOWED_BY, EXECUTED, UNCHANGED, ToolTask, ToolTaskStatus
from daruma.state.messages import DEFINITION
from daruma.state.text import REFERENCE, left_out, storable_text

# --- The one answer that every tool call gets, whatever became of it (TL-03).

LIMIT = 30_000
"""Characters of a result that the model is shown: about 8,000 tokens."""

IMAGES: Final = 4_000_000
"""Characters of all images of one result, in base64: a provider takes about so much of one."""

_KINDS: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_DATA: Final = re.compile(r"data:([\w/+.-]+);base64,(.*)", re.DOTALL)

Image = dict[str, Any]
"""A content block of LangChain's: ``type``, ``mime_type`` and ``base64``."""


class TextWithImages(str):
    """A tool's text, and the images that belong to it."""

    __slots__ = ("images",)
    images: tuple[Image, ...]

    @classmethod
    def of(cls, parts: Iterable[object]) -> "TextWithImages":
        """Read a result's parts; what can not be shown is named in the text, at its place."""
        lines: list[str] = []
        images: list[Image] = []
        room = IMAGES
        for part in parts:
            if isinstance(part, str) or not isinstance(part, dict):
                lines.append(str(part))
            elif part.get("type") == "text":
                lines.append(str(part.get("text", "")))
            elif (image := _image(part)) and len(image["base64"]) <= room:
                room -= len(image["base64"])
                images.append(image)
                lines.append(f"[image {len(images)}: {image['mime_type']}]")
            else:
                why = "it is too large" if image else "only text and images are shown"
                lines.append(f"[{part.get('type')} left out: {why}]")
        read = cls("\n".join(line for line in lines if line))
        read.images = tuple(images)
        return read


def _image(part: dict[Any, Any]) -> Image | None:
    """Return an image in LangChain's own form, whichever it came in; one by its address is none.

    Nobody is to fetch what a tool names: neither this process nor a provider.
    """
    url = part.get("image_url")
    address = url.get("url") if isinstance(url, dict) else url
    source = part["source"] if isinstance(part.get("source"), dict) else part
    found = _DATA.fullmatch(address) if isinstance(address, str) else None
    kind = found[1] if found else source.get("mime_type") or source.get("media_type")
    data = found[2] if found else source.get("base64") or source.get("data")
    if kind not in _KINDS or not isinstance(data, str):
        return None
    try:
        b64decode(data, validate=True)
    except (ValueError, BadBase64):
        return None
    return {"type": "image", "mime_type": kind, "base64": data} if data else None


def tool_result(
    call: ToolTask,
    text: str,
    *,
    ok: bool = True,
    images: Sequence[Image] = (),
    reference: str = "",
    unchanged: bool = False,
    definition: str = "",
) -> ToolMessage:
    """Return the result message of a call, its text safe to store and cut to ``LIMIT``.

    ``images`` stand beside it as LangChain has them (FA-11). ``reference`` is the id that the whole
    text is kept under, if the text is but its ends; ``unchanged`` marks what is known to have
    changed nothing in the workspace. ``definition`` is that of an MCP tool which ran.
    """
    noted: dict[str, object] = {REFERENCE: reference} if reference else {}
    noted |= {DEFINITION: definition} if definition else {}
    noted |= {ALLOWED_BY: call.allowed_by} if call.allowed_by else {}
    if call.args and (call.repaired_by or call.rungs):
        noted[EXECUTED] = call.args
    said: Any = storable(text)
    return ToolMessage(
        [{"type": "text", "text": said}, *images] if images else said,
        tool_call_id=call.id,
        name=call.name or call.requested_name or "unknown",
        id=call.result_id,
        status="success" if ok else "error",
        additional_kwargs=noted | ({UNCHANGED: True} if unchanged else {}),
    )


def storable(text: str) -> str:
    """Return a tool's text as it is stored: clean, and its middle cut where it is too long."""
    text = storable_text(text)
    if len(text) <= LIMIT:
        return text
    half = LIMIT // 2
    return f"{text[:half]}\n[... {len(text) - LIMIT} characters cut ...]\n{text[-half:]}"


def results_for_unanswered(messages: Iterable[AnyMessage]) -> list[ToolMessage]:
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


class Shortened(NamedTuple):
    """A result as the model is shown it; ``reference`` is the id of the whole, if that is more."""

    text: str
    reference: str = ""


@dataclass(frozen=True)
class Outputs:
    """The outputs of one thread."""

    store: OutputStore = field(default_factory=ProcessOutputs)
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

    async def shorten(self, text: str, limit: int) -> Shortened:
        """Keep a text of more than ``limit`` characters; return its ends and how to read on."""
        text = storable_text(text)
        if len(text) <= limit:
            return Shortened(text)
        id_ = await self.keep(text[:MOST])
        room = limit - len(left_out(len(text), id_)) - 2
        head, tail = text[: room - room // 2], text[len(text) - room // 2 :]
        return Shortened(f"{head}\n{left_out(len(text) - room, id_)}\n{tail}", id_)


# --- The journal of effects, as tools see it: what is about to be done, and what came of it
# (DU-06).
#
# An intent is durable before anything is done, so that a call that was cut short is known as one.
# An outcome is durable before the machine is told of it, so that a killed run need not do it again.

Settles = Literal["again", "restore", "ask", "tell"]
"""What becomes of a call that was cut short. See :func:`daruma.tools.calls._journal.settles`."""


@dataclass(frozen=True)
class Effect:
    """A call that changes something: which one it is, and a digest of exactly what it does."""

    call: str
    digest: str
    settles: Settles
    workspace: str = ""


@dataclass(frozen=True)
class Outcome:
    """What came of a call, as the machine is told; ``reference`` is the id of a longer text.

    ``unchanged`` says that snapshots around it were the same: it changed nothing in the workspace;
    ``seconds`` is how long the call was at work, so that a killed run's time is not lost.
    ``images`` belong to the text.
    """

    status: ToolTaskStatus
    text: str
    reference: str = ""
    unchanged: bool = False
    seconds: float = 0.0
    images: Sequence[Image] = ()

    @classmethod
    def done(cls, text: str, *, unchanged: bool = False) -> "Outcome":
        """Return what came of a call that ended well, with the images that belong to its text."""
        images = text.images if isinstance(text, TextWithImages) else ()
        return cls("done", str(text), unchanged=unchanged, images=images)


@dataclass(frozen=True)
class JournalEntry:
    """What is on record of an effect. ``key`` is its own for ever, through any number of attempts.

    ``cut_short`` says that an earlier run began it, and that nobody knows what came of that.
    """

    effect: Effect
    key: str
    attempt: int = 1
    cut_short: bool = False
    outcome: Outcome | None = None


class Journal(Protocol):
    """The journal at one place of a thread. Raises what its storage does; then nothing may run."""

    async def begin(self, effect: Effect) -> JournalEntry:
        """Put an intent on record, or find what is there of it."""

    async def again(self, entry: JournalEntry) -> JournalEntry:
        """Put on record that a call which was cut short is made once more."""

    async def end(self, entry: JournalEntry, outcome: Outcome) -> None:
        """Put an outcome on record."""

    async def forget(self, entry: JournalEntry) -> None:
        """Take an intent back: nothing was done."""

    async def cut_short(self, workspace: str) -> Sequence[JournalEntry]:
        """Return what earlier runs began in a workspace here, and did not end."""


class NoJournal:
    """The journal of a run that nobody can take up again."""

    async def begin(self, effect: Effect) -> JournalEntry:
        return JournalEntry(effect, key=effect.digest[:16])

    async def again(self, entry: JournalEntry) -> JournalEntry:
        return replace(entry, attempt=entry.attempt + 1, cut_short=False)

    async def end(self, entry: JournalEntry, outcome: Outcome) -> None:
        """Keep nothing."""

    async def forget(self, entry: JournalEntry) -> None:
        """Keep nothing."""

    async def cut_short(self, workspace: str) -> Sequence[JournalEntry]:  # noqa: ARG002 - a Journal
        return ()
