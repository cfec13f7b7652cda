"""What of a history is sent: all of it, or what its compaction says. Pure.

Messages are only ever added to a history, so what is shown of it between two compactions only ever
grows at its end: providers cache the beginning of a request.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, SystemMessage

from daruma.state.compaction import Compaction
from daruma.state.growing import Growing, growing
from daruma.tools.context_window.shortening import SHRUNK, pruned, shortened

SUMMARY_ID: Final = "daruma:summary"

_SUMMARY: Final = """\
<summary_of_earlier_messages count="{count}">
{text}
</summary_of_earlier_messages>
The {count} messages that stood here are left out; this is a record of them, not a new request."""


def view(messages: Sequence[AnyMessage], compaction: Compaction | None) -> list[AnyMessage]:
    """Return the messages as they are sent. Viewing a view changes nothing.

    A place that is not in the history any more is one that nothing was done through.
    """
    history = growing(messages)
    if compaction is None:
        return history
    shown = history.known(_grown, Shown(compaction), of=compaction)
    return _viewed(history, compaction) if shown.torn else shown.messages


@dataclass(frozen=True)
class Shown:
    """What is sent of a history under a compaction, for as long as the history only grows.

    ``torn``: what was added holds a place of the compaction, and what is before it changes.
    """

    compaction: Compaction
    messages: Growing[AnyMessage] = field(default_factory=Growing)
    begun: bool = False
    torn: bool = False


def _grown(shown: Shown, messages: Sequence[AnyMessage]) -> Shown:
    told = shown.compaction
    if not shown.begun:
        return replace(shown, messages=growing(_viewed(messages, told)), begun=True)
    places = (
        SUMMARY_ID,
        told.summarised_through,
        told.pruned_through,
        told.shrunk_through,
        told.cut_through,
    )
    torn = shown.torn or any(message.id and message.id in places for message in messages)
    return replace(shown, messages=shown.messages.with_more(messages), torn=torn)


def _viewed(messages: Sequence[AnyMessage], compaction: Compaction) -> list[AnyMessage]:
    begins = after(messages, compaction.summarised_through)
    stay = [each for each in messages[:begins] if stays(each, compaction.kept)]
    there = begins < len(messages) and messages[begins].id == SUMMARY_ID
    tells = begins and compaction.summary and not there
    summary = [summary_message(compaction)] if tells else []
    return _shortened([*stay, *summary, *messages[begins:]], compaction)


def after(messages: Sequence[BaseMessage], id_: str) -> int:
    """Return the place behind the message of an id, which is mostly one of the last; else 0."""
    found = (n for n in range(len(messages), 0, -1) if messages[n - 1].id == id_)
    return next(found, 0) if id_ else 0


def summary_message(compaction: Compaction) -> HumanMessage:
    """Return the message that stands for those that were summarised."""
    text = compaction.summary.replace("</summary_of", "< /summary_of")
    return HumanMessage(_SUMMARY.format(count=compaction.summarised, text=text), id=SUMMARY_ID)


def stays(message: BaseMessage, kept: Collection[str]) -> bool:
    """Whether a message is sent beside a summary that reaches beyond it."""
    return isinstance(message, SystemMessage) or message.id in kept


def _shortened(shown: list[AnyMessage], compaction: Compaction) -> list[AnyMessage]:
    prune, shrink = (
        after(shown, id_) for id_ in (compaction.pruned_through, compaction.shrunk_through)
    )
    cut = after(shown, compaction.cut_through)
    for n, message in enumerate(shown[: max(prune, shrink, cut)]):
        whole = message.id == SUMMARY_ID or stays(message, compaction.kept)
        less = pruned(message) if n < prune else message
        less = shortened(less, SHRUNK) if n < shrink and not whole else less
        shown[n] = shortened(less, compaction.cut) if n < cut else less
    return shown
