"""The tokenizers of OpenAI's models, from a package that holds their tables: nothing is fetched.

With the extra ``tokens`` requests are counted by the tokenizer of the main model; without it, and
for models whose tokenizer is not known, by an estimate. (`tiktoken`, which LangChain brings, would
fetch its tables from the network.)
"""

import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from daruma.tools.threads import to_thread
from daruma.tools.window.tokens import ESTIMATE, Tokens

ENCODINGS: Final = {
    "o200k_base": ("gpt-4o", "gpt-4.1", "gpt-4.5", "gpt-5", "chatgpt-4o", "o1", "o3", "o4"),
    "cl100k_base": ("gpt-4", "gpt-3.5", "gpt-35"),
}
"""By the beginnings of models' names, the longest first; as in tiktoken's own table."""

_AT_ONCE: Final = 100_000
"""Characters that are counted in one piece: the package refuses texts of 200,000 tokens."""


async def tokens_of(model: str) -> Tokens:
    """Return what counts for a model; made in a thread, as it takes a second the first time."""
    encoding = encoding_of(model)
    if encoding is None:
        return ESTIMATE
    return await to_thread(tokenizer, encoding)


def encoding_of(model: str) -> str | None:
    """Return the name of a model's tokenizer, None for one that is not known."""
    prefix, _, rest = model.rpartition(":")
    name = rest.rpartition("/")[2].lower() if prefix in ("", "openai") else ""
    known = [(begins, each) for each, names in ENCODINGS.items() for begins in names]
    fitting = [
        pair for pair in known if name == pair[0] or name.startswith((f"{pair[0]}-", f"{pair[0]}."))
    ]
    return max(fitting, key=lambda pair: len(pair[0]))[1] if fitting else None


@lru_cache
def tokenizer(encoding: str) -> Tokens:
    """Return what counts by a tokenizer; the estimate where the package is not installed."""
    try:
        with warnings.catch_warnings():  # it reads its tables in a way that is deprecated
            warnings.simplefilter("ignore", DeprecationWarning)
            from bpe_openai import get_encoding  # type: ignore[import-untyped]  # it has none

            return Tokens(_counter(get_encoding(encoding)), exact=True)
    except (ImportError, OSError):
        return ESTIMATE


def _counter(encoding: Any) -> Callable[[str], int]:
    def count(text: str) -> int:
        pieces = (text[at : at + _AT_ONCE] for at in range(0, len(text), _AT_ONCE))
        return sum(len(encoding.encode_ordinary(piece)) for piece in pieces)

    return count
