"""How many tokens a request is: by a tokenizer where the model's is known, else by an estimate.

Messages are counted by OpenAI's rule (its cookbook, "How to count tokens"): three a message and one
for its role, one more for a name, three for the answer that begins. For calls and schemas there is
no such rule: a call is its name, its arguments as JSON and ``CALL``, a tool its definition as JSON,
which is more than the form that OpenAI's models are known to be shown. A part that is no text, such
as an image, is ``PART``.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage

from daruma.state.growing import growing
from daruma.tools.context_window.estimate import estimate
from daruma.tools.sendable import sendable, settled
from daruma.tools.tool import Tool

MESSAGE: Final = 4
REPLY: Final = 3
CALL: Final = 8
PART: Final = 1500
"""An image of the largest size that OpenAI's models look at in tiles of 512 is 1,445 (GPT-4o)."""

_JSON: Final = json.JSONEncoder(ensure_ascii=False, default=str)

_MOST_KNOWN: Final = 50_000
"""Texts whose count is remembered, by their hash and length: some 10 MB."""


@dataclass(frozen=True)
class Tokens:
    """Counts; ``exact`` says whether by the tokenizer of the model that is asked."""

    of_text: Callable[[str], int] = estimate
    exact: bool = False
    _known: dict[tuple[int, int], int] = field(default_factory=dict, repr=False, compare=False)

    def of(self, text: str) -> int:
        """Count the tokens of a text, once."""
        key = hash(text), len(text)
        known = self._known.get(key)  # read once: runs in other threads may clear it meanwhile
        if known is not None:
            return known
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        return self._known.setdefault(key, self.of_text(text))

    def of_messages(self, messages: Iterable[BaseMessage]) -> int:
        """Count the tokens of messages: the sum of what each is."""
        return sum(map(self.of_message, messages))

    def of_history(self, history: Sequence[BaseMessage]) -> int:
        """Count the tokens of a history as it is sent: of one that grows, only what is new."""
        grown = growing(history)
        _, whole = grown.known(_more_counted, (self, 0), of=self)
        rest = grown[settled(grown) :]
        return whole - self.of_messages(rest) + self.of_messages(sendable(rest))

    def of_message(self, message: BaseMessage) -> int:
        """Count the tokens of a message, with its calls."""
        name = 1 + self.of(message.name) if message.name else 0
        return MESSAGE + name + self._content(message.content) + self._calls(message)

    def of_tools(self, tools: Sequence[Tool]) -> int:
        """Count the tokens of the tools that are offered."""
        return sum(self.of(_json(tool.as_function())) for tool in tools)

    def _content(self, content: str | list[Any]) -> int:
        if isinstance(content, str):
            return self.of(content)
        return sum(self._part(part) for part in content)

    def _part(self, part: Any) -> int:
        text = part if isinstance(part, str) else part.get("text")
        return self.of(text) if isinstance(text, str) else PART

    def _calls(self, message: BaseMessage) -> int:
        if not isinstance(message, AIMessage):
            return 0
        calls = [(call["name"], _json(call["args"])) for call in message.tool_calls]
        calls += [(c["name"] or "", c["args"] or "") for c in message.invalid_tool_calls]
        return sum(CALL + self.of(name) + self.of(args) for name, args in calls)


def _more_counted(known: tuple[Tokens, int], messages: Sequence[BaseMessage]) -> tuple[Tokens, int]:
    tokens, count = known
    return tokens, count + tokens.of_messages(messages)


def _json(value: Any) -> str:
    return _JSON.encode(value)


ESTIMATE: Final = Tokens()
