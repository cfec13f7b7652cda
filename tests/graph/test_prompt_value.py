"""What a model is handed: a prompt where that is known to be taken, else the list of messages."""

from typing import Any

from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompt_values import ChatPromptValue
from langchain_core.runnables import RunnableConfig, RunnableLambda
from tests.scripted_runs import RecordingModel, say
from typing_extensions import override

from daruma.graph.model_request import Request
from daruma.graph.offered import Offered
from daruma.graph.prompt_value import prompt_of
from daruma.state.settings_tools import Tools
from daruma.tools.registry import Registry

ASKED = [HumanMessage("hi")]


class OfTheirOwn(FakeListChatModel):
    """A model whose author asks it in another way, and knows lists."""

    @override
    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AIMessage:
        return AIMessage(f"{len(input)} and {input[-1].text}")

    @override
    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return RunnableLambda(lambda messages: AIMessage(f"bound: {messages[-1].text}"))


def test_langchains_own_ways_are_handed_a_prompt() -> None:
    """It is as good as checked; and no copy of the history."""
    for model in (FakeListChatModel(responses=["yes"]), RecordingModel(script=[say()])):
        prompt = prompt_of(model, ASKED)
        assert isinstance(prompt, ChatPromptValue)
        assert prompt.messages is ASKED


async def test_a_model_with_a_way_of_its_own_is_handed_a_list() -> None:
    """With tools and without."""
    model = OfTheirOwn(responses=[])
    shown = Registry([say_it]).visible(Tools(), ())

    assert (await Request(ASKED).sent(model, {})).text == "1 and hi"
    assert (await Offered().asked(model, shown, ASKED, {})).text == "bound: hi"


def say_it(text: str) -> str:
    """Say it."""
    return text
