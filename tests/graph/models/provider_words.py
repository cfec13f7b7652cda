"""What providers send in place of an answer, and how it has to be read: ``provider_words.jsonl``.

Each line: who, the HTTP status (null in the midst of a stream), the reason, for a request that is
too large the limit in tokens if the words name one, and the body as JSON or text.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

from daruma.state.failure import Reason


class Row(NamedTuple):
    """One answer of a provider."""

    who: str
    status: int | None
    body: Any
    reason: Reason
    limit: int | None = None


ROWS = [
    Row(**json.loads(line))
    for line in Path(__file__).with_suffix(".jsonl").read_text(encoding="utf-8").splitlines()
]
TOO_LARGE = [each for each in ROWS if each.reason == "too_large"]
OTHER = [each for each in ROWS if each.reason != "too_large"]
