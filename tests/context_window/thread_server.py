"""A provider that agents talk to at length: it looks at things, remembers, and summarises.

It answers from nothing but the request that it is sent, so that what is not sent it does not know.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.openai_answers import Reply
from tests.openai_server import Answer, Fault

from daruma.graph.models._providers import tokenizer

NEEDLE = re.compile(r"NEEDLE-\w+=\w+")
SUMMARISER = "You summarise the earlier part"


def request_tokens(request: Mapping[str, Any], encoding: str = "o200k_base") -> int:
    """Count a request's body by OpenAI's rule, from what was really sent."""
    count = tokenizer(encoding).of
    total = 3 + sum(
        count(json.dumps(each, ensure_ascii=False)) for each in request.get("tools", ())
    )
    for message in request["messages"]:
        total += 4 + count(text_of(message))
        for call in message.get("tool_calls") or ():
            total += count(call["function"]["name"]) + count(call["function"]["arguments"])
    return total


def text_of(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content)


def needles(request: Mapping[str, Any]) -> list[str]:
    """The facts that a request holds, each once."""
    texts = (text_of(each) for each in request["messages"])
    return sorted({found for text in texts for found in NEEDLE.findall(text)})


def is_summary(request: Mapping[str, Any]) -> bool:
    return text_of(request["messages"][0]).startswith(SUMMARISER)


@dataclass
class Provider:
    """Looks ``rounds`` times in each task, then answers with the facts that it still knows.

    ``summaries`` says what comes in the place of a summary, by the name of the model. More tokens
    than ``window`` are refused, as ``refusal`` if there is one.
    """

    rounds: int = 5
    summaries: Mapping[str, Answer] = field(default_factory=dict)
    window: int | None = None
    words: str = "This model's maximum context length is {most} tokens."
    refusal: Fault | None = None
    looked: int = 0
    left: int = -1

    def __call__(self, request: dict[str, Any]) -> Answer:
        if is_summary(request):
            facts = "; ".join(needles(request))
            return self.summaries.get(request["model"], Reply(f"They looked on. Facts: {facts}"))
        if self.window is not None and request_tokens(request) > self.window:
            said = self.words.format(most=self.window)
            body = {"error": {"message": said, "code": "context_length_exceeded"}}
            return self.refusal or Fault(400, body)
        self.left = self.rounds if self.left < 0 else self.left - 1
        if self.left == 0:
            self.left = -1
            return Reply(f"I know: {', '.join(needles(request)) or 'nothing'}")
        self.looked += 1
        call = {"name": "look", "arguments": {"at": self.looked}, "id": f"call{self.looked}"}
        return Reply(f"Let me look at {self.looked}.", calls=[call])


def look(at: int) -> str:
    """Look at something."""
    return f"At {at} there is " + f"a thing of size {at * 37 % 1000}, " * 40
