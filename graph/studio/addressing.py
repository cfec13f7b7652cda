"""Whom a reply goes to that names no question: to the one that is open, if it can mean no other.

LangGraph gives such a reply to whatever asks next. Clients of its server send them all the same, so
here one is addressed to the question that it was shown with, or refused.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from daruma.graph.studio.inbox_reply import from_inbox, is_of_an_inbox
from daruma.state.interrupts import ReplyRefused, is_question, read_reply

_ID_LENGTH: Final = 32
_HEX: Final = frozenset("0123456789abcdef")


@dataclass(frozen=True)
class Sent:
    """When and how a reply was sent, as far as that is known.

    ``at`` is Unix time in seconds. ``seen`` says that the client has named the newest checkpoint,
    so that it showed what is open now. ``approved_before`` says that an approval was given or
    denied on this thread before, which a reply that names nothing may have been meant for.
    """

    at: float | None
    seen: bool = False
    approved_before: bool = False


def named(resume: object, pending: Mapping[str, Any], sent: Sent) -> dict[str, Any]:
    """Return replies by the ids of their questions, in the form that our door takes.

    Raises :class:`~daruma.state.interrupts.ReplyRefused` for one that may be meant for another
    question than the one that is open.
    """
    if by_ids(resume):
        return {id_: _read(pending.get(id_), reply) for id_, reply in _items(resume)}
    if len(pending) != 1:
        raise ReplyRefused(
            f"{len(pending)} questions are open ({', '.join(pending)}): a reply names its question,"
            " {id: reply}"
            if pending
            else "nothing is open on this thread: it was answered before, or asked nothing"
        )
    ((id_, value),) = pending.items()
    reply = _read(value, resume)
    if is_question(value):
        read_reply(value, reply)
        _refuse_stale(id_, value, resume, sent)
    return {id_: reply}


def by_ids(resume: object) -> bool:
    """Whether a reply names its questions by their ids, as LangGraph forms these."""
    return bool(_items(resume)) and all(_is_id(key) for key, _ in _items(resume))


def _items(resume: object) -> Collection[tuple[Any, Any]]:
    return resume.items() if isinstance(resume, Mapping) else ()


def _is_id(key: object) -> bool:
    return isinstance(key, str) and len(key) == _ID_LENGTH and _HEX.issuperset(key)


def _read(value: Any, reply: Any) -> Any:
    if not is_question(value):
        return reply
    if value["type"] == "question" and isinstance(reply, str):
        return {"answer": reply}
    return from_inbox(value, reply) if is_of_an_inbox(reply) else reply


def _refuse_stale(id_: str, value: Mapping[str, Any], resume: object, sent: Sent) -> None:
    if sent.seen or _names(value, resume):
        return
    if sent.at is None or sent.at < value.get("asked_at", 0):
        raise ReplyRefused(
            f"this reply was sent before the open question was asked: look at it, then answer it, "
            f"by its id: {{{id_!r}: reply}}"
        )
    if value["type"] == "approval_request" and sent.approved_before:
        raise ReplyRefused(
            "other calls were approved or denied on this thread before, and this reply does not "
            f"say which it means: answer by id, {{{id_!r}: reply}}, name approval_id and digest, "
            "or send the checkpoint that you show"
        )
    if value.get("amounts") and not value["id"].endswith(":budget:0"):
        raise ReplyRefused(
            "a spent budget was asked about on this thread before, and this reply does not say "
            f"which question it answers: answer by id, {{{id_!r}: reply}}, or send the checkpoint "
            "that you show"
        )


def _names(value: Mapping[str, Any], resume: object) -> bool:
    """Whether a reply names what it is about; :func:`read_reply` has compared the names."""
    if not isinstance(resume, Mapping):
        return False
    if value["type"] == "approval_request":
        return not is_of_an_inbox(resume)
    return "spec_review_id" in resume and resume["spec_review_id"] is not None
