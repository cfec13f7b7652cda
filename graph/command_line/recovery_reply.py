"""The reply to a recovery's question, made of the options of ``daruma answer``."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from daruma.graph.command_line.given_json import AnswerRefused

if TYPE_CHECKING:
    from daruma.graph.command_line.given_answer import Given

_ALL = "*"


def recovery_reply(given: "Given", question: Mapping[str, Any]) -> dict[str, Any]:
    """Return the reply; an id has to be that of the open question.

    Raises :class:`~daruma.graph.command_line.given_json.AnswerRefused`.
    """
    if given.text is not None:
        return {"decision": "instruct", "text": given.text}
    if given.args is not None:
        raise AnswerRefused("a recovery is not edited: say what to do instead with --text")
    if given.approve and given.deny:
        raise AnswerRefused("give one of --approve, --deny")
    if others := {*given.approve, *given.deny} - {_ALL, question["id"]}:
        raise AnswerRefused(f"{min(others)!r} is not open: the recovery is {question['id']!r}")
    if given.approve:
        return {"decision": "approve"}
    return {"decision": "deny", "reason": given.reason}
