"""A chat model as most providers' packages have one: an asynchronous client beside one that blocks.

The one belongs to the first event loop that used it; the other to nobody.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.request import Request, urlopen

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import PrivateAttr
from typing_extensions import override


class LoopBoundModel(BaseChatModel):
    """Asks the tests' server; its asynchronous half works on one event loop only."""

    url: str
    _loop: Any = PrivateAttr(None)

    @property
    @override
    def _llm_type(self) -> str:
        return "loop-bound"

    @override
    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        body = {"model": "m", "messages": [{"role": "user", "content": messages[-1].text}]}
        headers = {"Authorization": "Bearer k", "Content-Type": "application/json"}
        address = f"{self.url}/chat/completions"
        with urlopen(Request(address, json.dumps(body).encode(), headers)) as answer:  # noqa: S310
            said = json.load(answer)["choices"][0]["message"]["content"]
        return ChatResult(generations=[ChatGeneration(message=AIMessage(said))])

    @override
    def _stream(self, messages: Any, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        said = self._generate(messages).generations[0].text
        for part in (said[:2], said[2:]):
            yield ChatGenerationChunk(message=AIMessageChunk(content=part))

    @override
    async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
        self._take_to_this_loop()
        return self._generate(*args, **kwargs)

    @override
    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        self._take_to_this_loop()
        for chunk in self._stream(*args, **kwargs):
            yield chunk

    def _take_to_this_loop(self) -> None:
        loop = asyncio.get_running_loop()
        self._loop = self._loop or loop
        if self._loop is not loop:
            raise RuntimeError("Event loop is closed")


LoopBoundModel.__module__ = "langchain_elsewhere.chat_models"
