"""What goes wrong at random, and the same for everyone: drawn by task and number of the request."""

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

from tests.openai_answers import Reply
from tests.openai_server import Answer, Fault

NAMES = ["lookUp", "open-drawer", "look_up_the_key", "drawer"]
TROUBLES = ["the connection was reset by the peer", "the service is busy, try again", "timed out"]


def drawn(rate: float, *seed: object) -> Random | None:
    """Return a source of chance for one fault, or None where all goes well."""
    draw = Random(" ".join(map(str, seed)))  # noqa: S311  # it has to be the same again
    return draw if draw.random() < rate else None


def faulty(answer: Reply, draw: Random) -> Answer:
    """Return what comes in the place of a right answer."""
    kinds = [*ANY.values(), *(CALLS.values() if answer.calls else ())]
    kind: Kind = draw.choice(kinds)
    return kind(answer, draw)


def trouble(draw: Random) -> str:
    """Return what a tool says that falls over."""
    return draw.choice(TROUBLES)


Kind = Callable[[Reply, Random], Answer]


def _half(text: str) -> str:
    return text[: len(text) // 2]


def _with_arguments(answer: Reply, damage: Callable[[str], str]) -> Reply:
    calls = [{**call, "arguments": damage(json.dumps(call["arguments"]))} for call in answer.calls]
    return replace(answer, calls=calls)


def _with_name(answer: Reply, name: str) -> Reply:
    return replace(answer, calls=[{**call, "name": name} for call in answer.calls])


def _cut_by_length(answer: Reply, _: Random) -> Reply:
    half = _with_arguments(answer, _half)
    return replace(half, text=_half(answer.text), finish_reason="length")


ANY: Mapping[str, Kind] = {
    "500": lambda _, __: Fault(500),
    "503": lambda _, __: Fault(503),
    "408": lambda _, __: Fault(408),
    "429": lambda _, __: Fault(429, headers={"Retry-After": "0"}),
    "no answer in time": lambda _, __: Fault(hang=threading.Event()),
    "cut before the first token": lambda _, __: Fault(cut="before_first_token"),
    "cut later": lambda answer, _: Fault(cut="later", answer=answer),
    "cut without a finish reason": lambda answer, _: Fault(cut="unfinished", answer=answer),
    "a body that is no JSON": lambda _, __: Fault(malformed=True),
    "no choices": lambda _, __: Reply(no_choices=True),
    "a blank answer": lambda _, __: Reply(" "),
    "cut off at the length limit": _cut_by_length,
}
CALLS: Mapping[str, Kind] = {
    "arguments without their end": lambda answer, _: _with_arguments(answer, lambda a: a[:-4]),
    "arguments in single quotes": lambda answer, _: _with_arguments(
        answer, lambda a: a.replace('"', "'")
    ),
    "a misspelt name": lambda answer, draw: _with_name(answer, draw.choice(NAMES)),
}
"""What can only be wrong with a call."""
