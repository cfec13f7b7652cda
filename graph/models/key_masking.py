"""Keeping keys out of what is told: servers quote the key that they refuse."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping

from pydantic import SecretStr

_SHAPE = re.compile(r"\bsk-[\w*.-]{6,}")
"""What OpenAI's keys and those made after them look like, also where the server masked a part."""
_SECRET_HEADER = re.compile(r"auth|key|token|secret|cookie", re.IGNORECASE)
_IN_ADDRESS = re.compile(r"(?<=://)[^/\s@]+(?=@)")
_SHORTEST = 6
"""Characters; anything shorter is an ordinary word."""


def without_keys(text: str, keys: Iterable[str] = ()) -> str:
    """Return a text in which `[key]` stands for `keys`, for those of the environment, and alike.

    Names and passwords in addresses are among them.
    """
    known = {key for key in (*keys, *_of_environment()) if len(key) >= _SHORTEST}
    for key in sorted(known, key=len, reverse=True):
        text = text.replace(key, "[key]")
    return _IN_ADDRESS.sub("[key]", _SHAPE.sub("[key]", text))


def keys_of(model: object) -> list[str]:
    """Return the secrets that a chat model was made with."""
    secrets = getattr(model, "__dict__", {}).values()
    found = [each.get_secret_value() for each in secrets if isinstance(each, SecretStr)]
    return [*found, *_of_headers(getattr(model, "default_headers", None))]


def _of_headers(headers: object) -> Iterator[str]:
    for name, value in headers.items() if isinstance(headers, Mapping) else ():
        if isinstance(value, str) and _SECRET_HEADER.search(str(name)):
            yield value.rpartition(" ")[2]  # what stands before it is the scheme


def _of_environment() -> Iterator[str]:
    return (value for name, value in os.environ.items() if name.upper().endswith("_API_KEY"))
