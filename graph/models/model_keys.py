"""The secrets that a chat model was made with: servers quote the key that they refuse."""

import re
from collections.abc import Iterator, Mapping

from pydantic import SecretStr

_SECRET_HEADER = re.compile(r"auth|key|token|secret|cookie", re.IGNORECASE)


def keys_of(model: object) -> list[str]:
    """Return the secrets that a chat model was made with."""
    secrets = getattr(model, "__dict__", {}).values()
    found = [each.get_secret_value() for each in secrets if isinstance(each, SecretStr)]
    return [*found, *_of_headers(getattr(model, "default_headers", None))]


def _of_headers(headers: object) -> Iterator[str]:
    for name, value in headers.items() if isinstance(headers, Mapping) else ():
        if isinstance(value, str) and _SECRET_HEADER.search(str(name)):
            yield value.rpartition(" ")[2]  # what stands before it is the scheme
