"""Handing a model its messages so that LangChain converts and checks none of a long history."""

from collections.abc import Sequence

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import BaseMessage
from langchain_core.prompt_values import ChatPromptValue
from langchain_core.runnables import Runnable

from daruma.graph.models.answering_model import AnsweringModel


def prompt_of(
    asked: Runnable[LanguageModelInput, object], messages: Sequence[BaseMessage]
) -> LanguageModelInput:
    """Return messages as a prompt for whoever is known to take one, for others as the list.

    A model whose ``ainvoke`` is its author's own, or what its ``bind_tools`` made, may know lists.
    """
    known = isinstance(asked, AnsweringModel) or type(asked).ainvoke is BaseChatModel.ainvoke
    return ChatPromptValue.model_construct(messages=messages) if known else list(messages)
