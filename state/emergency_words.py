"""What a language has to say about a task that failed."""

from collections.abc import Mapping
from dataclasses import dataclass

from daruma.state.failure import Code


@dataclass(frozen=True)
class Words:
    """Advice by code, and the fixed sentences of a result.

    ``headlines`` go before a failure's message, which is technical and always English; a language
    without any lets the message stand alone. ``refused`` is the advice for what the provider will
    refuse again. ``ended`` has places for ``status`` and ``reason``.
    """

    advice: Mapping[Code, tuple[str, ...]]
    refused: tuple[str, ...]
    ended: str
    done: str
    unknown: str
    parked: str
    headlines: Mapping[Code, str]
