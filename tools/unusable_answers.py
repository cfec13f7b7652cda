"""Answers that are no end of the work: empty ones, refusals, what was cut off. Pure."""

from langchain_core.messages import AIMessage

from daruma.tools.results import blank, clean, cut_off


def unusable(message: AIMessage) -> tuple[str, str] | None:
    """Return the name of what is wrong with an answer without calls, and a line that says it.

    The names are those of :data:`daruma.state.failure.UNUSABLE`. A refusal that comes as ordinary
    text can not be told from an answer.
    """
    if refused := message.additional_kwargs.get("refusal"):
        return "refusal", f"the model refused: {clean(str(refused))[:300]}"
    if reason := cut_off(message):
        return "answer_cut_off", f"the model's answer was cut off ({reason})"
    if blank(message.text):
        return "empty_answer", "the model's answer was empty"
    return None
