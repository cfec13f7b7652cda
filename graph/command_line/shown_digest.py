"""An approval named together with what was shown of it: ``ID@DIGEST``, a digest's beginning."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from daruma.graph.command_line.given_json import AnswerRefused

DIGEST_SHOWN: Final = 12
"""Characters; enough to tell two approvals apart, the answer carries it whole."""

_FEWEST: Final = 8


def as_shown(approval: Mapping[str, Any]) -> str:
    """Return the name that stands for an approval only as long as it is what was shown."""
    return f"{approval['approval_id']}@{approval['digest'][:DIGEST_SHOWN]}"


def approvals_named(
    names: Collection[str], open_ones: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Return the ids of names that may hold a digest.

    Raises :class:`AnswerRefused` where the digest is another: servers use the ids of calls again.
    """
    return [name if name in open_ones else _checked(name, open_ones) for name in names]


def _checked(name: str, open_ones: Mapping[str, Mapping[str, Any]]) -> str:
    own, at, digest = name.rpartition("@")
    if not at or own not in open_ones or len(digest) < _FEWEST:
        return name
    if not open_ones[own]["digest"].startswith(digest):
        raise AnswerRefused(f"{own!r} is another call by now: see what is open and answer that")
    return own
