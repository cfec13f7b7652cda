"""A message is known as an answer, or as something else, by its form."""

from collections.abc import Sequence
from datetime import UTC, datetime

from tests.tools.continuity.next_messages import Next

from daruma.tools.continuity.continuation import continues

NOW = datetime(2026, 11, 22, 15, 0, tzinfo=UTC)


def judged(messages: Sequence[Next]) -> dict[str, list[str]]:
    """The messages by what the rule makes of them."""
    found: dict[str, list[str]] = {"right": [], "unsure": [], "wrong": []}
    for each in messages:
        verdict = continues(each.message, each.after, NOW)
        how = "unsure" if verdict == "unsure" else "right" if verdict == each.wanted else "wrong"
        found[how].append(each.message)
    return found
