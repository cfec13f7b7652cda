"""Plans that nobody confirmed in time: parked by whoever comes along, taken up by a late reply.

Nobody waits for the deadline: a question costs nothing while it is open (DU-02, PL-03).
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from langgraph.types import Command, StateSnapshot

from daruma.graph.door import open_questions

PARK: Final = {"decision": "park"}
"""The reply that the end of the deadline gives."""


def overdue(snapshot: StateSnapshot, now: float) -> dict[str, Any]:
    """Return the reply that parks the open review of a thread; none if it has time left.

    ``now`` is Unix time in seconds.
    """
    return {
        id_: PARK
        for id_, value in open_questions(snapshot).items()
        if is_review(value) and value["deadline"] is not None and value["deadline"] < now
    }


def stale_ids(given: Any, snapshot: StateSnapshot) -> Collection[str]:
    """Return the ids in a reply that may be those of a review which was parked meanwhile."""
    if not isinstance(given, Command) or not isinstance(given.resume, Mapping):
        return ()
    pending = open_questions(snapshot)
    if len(given.resume) != 1 or not _parked_review(pending):
        return ()
    return [id_ for id_ in given.resume if id_ not in pending]


def readdressed(
    given: Command[Any], snapshot: StateSnapshot, accepted: Mapping[str, Any]
) -> Command[Any]:
    """Address a late reply to the review as it is asked now, if what was parked is what it answers.

    ``accepted`` are the replies on record for the ids that it names.
    """
    if list(accepted.values()) != [PARK] or not isinstance(given.resume, Mapping):
        return given
    (reply,) = given.resume.values()
    return Command(resume={_parked_review(open_questions(snapshot)): reply})


def _parked_review(pending: Mapping[str, Any]) -> str | None:
    parked = [id_ for id_, value in pending.items() if is_review(value) and value.get("parked")]
    return parked[0] if parked else None


def is_review(value: object) -> bool:
    """Tell whether a question is about a plan."""
    return isinstance(value, Mapping) and value.get("type") == "spec_review_request"
