"""What is asked of OpenAI's chat models, ours or passed in: one request a call, whole answers."""

import sys
from contextlib import AbstractContextManager
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage

from daruma.graph.models.errors import BrokenAnswer
from daruma.graph.models.hearing import hearing

_UNREADABLE = (LookupError, TypeError, ValueError, AttributeError)
"""What LangChain raises for answers without choices, without JSON, or with an error in them."""


def speaks_openai(model: object) -> bool:
    """Say whether a model is LangChain's client for OpenAI's protocol."""
    # The import takes a second; without it there is no such object.
    module: Any = sys.modules.get("langchain_openai.chat_models.base")
    return module is not None and isinstance(model, module.BaseChatOpenAI)


def as_ours(model: BaseChatModel) -> BaseChatModel:
    """Return a model that makes one request for a call; the one that is given stays as it is.

    As a model of our own does, it hears calls as they were sent and tells what a stream cost.
    Only OpenAI's clients are known here: those of other providers have to be made without retries.
    """
    if not speaks_openai(model):
        return model
    changes: dict[str, Any] = {"max_retries": 0}
    if getattr(model, "stream_usage", None) is None:  # False is somebody's choice
        changes["stream_usage"] = True
    for root, leaf in (("root_client", "client"), ("root_async_client", "async_client")):
        if client := getattr(model, root, None):
            changes[root] = client.with_options(max_retries=0)
            changes[leaf] = changes[root].chat.completions
    copy = model.model_copy(update=changes)
    object.__setattr__(copy, "__class__", hearing(type(copy)))  # pydantic knows of no other way
    return copy


class Readable(AbstractContextManager[None]):
    """Turns what reading an answer raises into :class:`BrokenAnswer`."""

    def __init__(self, model: BaseChatModel) -> None:
        self._model = model

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if not isinstance(error, _UNREADABLE) or not speaks_openai(self._model):
            return
        what = "it holds no choices" if isinstance(error, IndexError) else str(error)
        raise BrokenAnswer(f"the answer can not be read: {what}") from error


def check_whole(message: AIMessage, model: BaseChatModel) -> None:
    """Raise :class:`BrokenAnswer` for an answer that ended without a reason, as if cut off.

    Answers of the Responses API, which have no such reason, are told by what they are.
    """
    told = message.response_metadata
    if speaks_openai(model) and not told.get("finish_reason") and told.get("object") != "response":
        raise BrokenAnswer("the answer broke off: it came without a finish_reason")
