"""OpenAI's chat models as we use them: no call of an answer is read otherwise than it was sent."""

import asyncio
import json
from collections.abc import AsyncIterator
from functools import cache
from typing import TYPE_CHECKING, Any

from langchain_core.outputs import ChatGenerationChunk, ChatResult
from typing_extensions import override

from daruma.graph.models.heard_calls import HeardCalls

if TYPE_CHECKING:
    from langchain_openai.chat_models.base import BaseChatOpenAI
else:  # the import takes a second, and who passes in a model has done it
    BaseChatOpenAI = object


class HearingCalls(BaseChatOpenAI):
    """The stock client, but for calls whose arguments are no object of JSON.

    LangChain would refuse the whole answer for one such call; it is made one that can not be read.
    In a stream it would complete what was cut off; the call as it was sent goes with the answer.
    """

    @override
    def _create_chat_result(
        self, response: Any, generation_info: dict[str, Any] | None = None
    ) -> ChatResult:
        plain = response if isinstance(response, dict) else response.model_dump()
        for choice in plain.get("choices") or ():
            for call in (choice.get("message") or {}).get("tool_calls") or ():
                function = call.get("function") or {}
                function["arguments"] = _readable(function.get("arguments"))
        return super()._create_chat_result(plain, generation_info)

    @override
    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        heard, task = HeardCalls(), asyncio.current_task()
        async for chunk in super()._astream(*args, **kwargs):
            # Python 3.11 loses a cancellation that comes together with a chunk (`wait_for`).
            if task and task.cancelling():
                raise asyncio.CancelledError
            heard.hear(chunk)
            yield chunk
        for chunk in heard.unread():
            yield chunk


@cache
def hearing(kind: type["BaseChatOpenAI"]) -> type["BaseChatOpenAI"]:
    """Return a class of OpenAI's chat models that hears calls; its name stays what it was."""
    if issubclass(kind, HearingCalls):
        return kind
    return type(kind.__name__, (HearingCalls, kind), {"__module__": kind.__module__})


def _readable(arguments: object) -> str:
    """Return arguments as they are if they are an object, or not JSON; else as no JSON."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    try:
        return text if isinstance(json.loads(text), dict) else f"not an object: {text}"
    except ValueError:
        return text or "nothing"
