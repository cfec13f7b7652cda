"""The model of a graph that has none: it plays a shipped example, and says how to have a real one.

What it edits and runs is real: a copy of the example's repository, in a temporary folder.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, convert_to_messages
from pydantic import PrivateAttr
from typing_extensions import override

from daruma.graph.models import (
    CALL_KEY,
    ROLE_KEY,
    AnsweringModel,
    ScriptedChatModel,
    ScriptError,
    read_script,
)
from daruma.graph.requests import RequestRefused
from daruma.graph.scenario import GOAL, prepare, scenario_named

EXAMPLE: Final = "fix"

HINT: Final = (
    f"No model is set, so all I can do is play the shipped example: say “{GOAL}” on a new thread, "
    "with no workspace of your own. For real work, set llm.model, such as openai:NAME, in "
    "daruma.yaml, or as DARUMA_LLM__MODEL, and its key in the environment."
)


class ShownModel(AnsweringModel):
    """Plays the example's script from its first turn, and gives a hint where that does not fit."""

    model_name: str = "the shipped example"

    _script: ScriptedChatModel = PrivateAttr()

    @override
    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        script = read_script(scenario_named(EXAMPLE).folder / "script.yaml")
        self._script = ScriptedChatModel(script=script, model_name=self.model_name)

    @property
    @override
    def _llm_type(self) -> str:
        return "daruma-shown"

    @override
    def answer(
        self,
        messages: Sequence[BaseMessage],
        *,
        metadata: Mapping[str, Any],
        tools: Sequence[Mapping[str, Any]],
    ) -> AIMessage:
        is_main = metadata.get(ROLE_KEY, "main") == "main"
        asked = any(message.text == GOAL for message in messages)
        if asked and (tools or not is_main):  # else it is a task of another model's, or a chat
            place = {**metadata, CALL_KEY: _answers(messages) if is_main else 0}
            with suppress(ScriptError):
                return self._script.answer(messages, metadata=place, tools=tools)
        return AIMessage(HINT)


def _answers(messages: Sequence[BaseMessage]) -> int:
    """Count the answers since the example's work began, with its one phase or without a plan."""
    count = 0
    for message in messages:
        asked = isinstance(message, HumanMessage) and message.text.startswith((GOAL, "Phase "))
        count = 0 if asked else count + isinstance(message, AIMessage)
    return count


def shown(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request that is made of one: the example's, on a fresh copy, or a mere chat.

    Raises :class:`~daruma.graph.requests.RequestRefused` for a workspace of the user's own, and
    :class:`~daruma.graph.scenario.DemoRefused` without the programs of the checks.
    """
    messages: Any = given.get("messages")
    try:
        said = convert_to_messages(messages if isinstance(messages, list) else [messages])
    except (ValueError, NotImplementedError, TypeError):
        said = []
    if not said or said[-1].text.strip().rstrip(".!").casefold() != GOAL.casefold():
        return {**given, "mode": "direct_chat", "workspace": None}
    own = given.get("workspace")
    if own and not (Path(str(own)) / "bill" / "split.py").is_file():
        raise RequestRefused(f"workspace {str(own)!r}: {HINT}")
    workspace = own or str(prepare(scenario_named(EXAMPLE)))
    messages = [HumanMessage(GOAL)]
    kept = {key: value for key, value in given.items() if value is not None}
    return {"mode": "plan_exec", **kept, "messages": messages, "workspace": workspace}
