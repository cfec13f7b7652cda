"""A chat model that raises what it is given, the very objects, and then answers."""

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr
from typing_extensions import override


class RaisingModel(BaseChatModel):
    """Raises its errors one after another; ``None`` and all that comes after them is an answer."""

    _errors: list[BaseException | None] = PrivateAttr(default_factory=list)

    def __init__(self, *errors: BaseException | None) -> None:
        super().__init__()
        self._errors = list(errors)

    @property
    @override
    def _llm_type(self) -> str:
        return "raising"

    @override
    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    @override
    def _generate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> ChatResult:
        error = self._errors.pop(0) if self._errors else None
        if error:
            raise error
        return ChatResult(generations=[ChatGeneration(message=AIMessage("Done."))])

    @override
    async def _agenerate(
        self, messages: list[BaseMessage], *args: Any, **options: Any
    ) -> ChatResult:
        return self._generate(messages)
