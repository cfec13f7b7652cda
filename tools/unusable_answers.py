"""Answers that are no end of the work: empty ones, refusals, what was cut off. Pure."""

from langchain_core.messages import AIMessage

from daruma.state.failure import Failure
from daruma.tools.results import blank, clean, cut_off


def unusable(message: AIMessage, node: str) -> Failure | None:
    """Return what is wrong with an answer without calls, None if it is one.

    Its ``original_error`` is a name of :data:`daruma.state.failure.UNUSABLE`. A refusal that comes
    as ordinary text can not be told from an answer.
    """
    if found := _wrong(message):
        what, said = found
        return Failure(code="llm_failure", node=node, message=said, original_error=what)
    return None


def _wrong(message: AIMessage) -> tuple[str, str] | None:
    if refused := message.additional_kwargs.get("refusal"):
        return "refusal", f"the model refused: {clean(str(refused))[:300]}"
    if reason := cut_off(message):
        return "answer_cut_off", f"the model's answer was cut off ({reason})"
    if blank(message.text):
        return "empty_answer", "the model's answer was empty"
    return None
