"""Keeping keys out of what is told: servers quote the key that they refuse."""

import os
import re
from collections.abc import Iterable, Iterator

from pydantic import SecretStr

_SHAPE = re.compile(r"\bsk-[\w*.-]{6,}")
"""What OpenAI's keys and those made after them look like, also where the server masked a part."""
_SHORTEST = 6
"""Characters; anything shorter is an ordinary word."""


def without_keys(text: str, keys: Iterable[str] = ()) -> str:
    """Return a text in which `[key]` stands for `keys`, for those of the environment, and alike."""
    known = {key for key in (*keys, *_of_environment()) if len(key) >= _SHORTEST}
    for key in sorted(known, key=len, reverse=True):
        text = text.replace(key, "[key]")
    return _SHAPE.sub("[key]", text)


def keys_of(model: object) -> list[str]:
    """Return the secrets that a chat model was made with."""
    secrets = getattr(model, "__dict__", {}).values()
    return [each.get_secret_value() for each in secrets if isinstance(each, SecretStr)]


def _of_environment() -> Iterator[str]:
    return (value for name, value in os.environ.items() if name.upper().endswith("_API_KEY"))
