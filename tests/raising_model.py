"""A chat model that raises what it is given, the very objects, and then answers."""

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr
from typing_extensions import override


class RaisingModel(BaseChatModel):
    """Raises its errors one after another, and answers when there are none left."""

    _errors: list[BaseException] = PrivateAttr(default_factory=list)

    def __init__(self, *errors: BaseException) -> None:
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
        if self._errors:
            raise self._errors.pop(0)
        return ChatResult(generations=[ChatGeneration(message=AIMessage("Done."))])
