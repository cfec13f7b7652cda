"""What can not be told of a snapshot that was taken by other ignore rules."""

from collections.abc import Iterable
from typing import Final

from daruma.tools.files.paths import Parts
from daruma.tools.snapshots.difference import Difference
from daruma.tools.snapshots.entry import Entry
from daruma.tools.snapshots.ignored import Rules
from daruma.tools.snapshots.looking import above, is_directory
from daruma.tools.snapshots.restoring import Changed

SINCE: Final = "is ignored since the snapshot was taken, and was not looked at"
THEN: Final = "was ignored when the snapshot was taken, and what it was is not known"
UNSEEN: Final = "changed while it was ignored, by whom is not known"


def beyond(found: Iterable[Difference], then: Rules, now: Rules, who: Changed) -> dict[Parts, str]:
    """Return the paths that differ and are left alone, each with the reason.

    ``found`` are all differences of a snapshot and now. What was ignored when the snapshot was
    taken counts only where the work has changed it since: otherwise it lies outside.
    """
    left: dict[Parts, str] = {}
    if then == now:
        return left
    for path, was, is_ in found:
        reason = _reason(path, was, is_, then, now, who)
        if reason and not any(left.get(each) == SINCE for each in above(path)):
            left[path] = reason
    return left


def _reason(
    path: Parts, was: Entry | None, is_: Entry | None, then: Rules, now: Rules, who: Changed
) -> str:
    if was and (not _covers(now, path, was) or (is_ and is_.kind == "repository")):
        return SINCE
    if is_ and not _covers(then, path, is_):
        if was:
            return UNSEEN
        return THEN if path in who.work else ""
    return "" if path in who.work or path in who.others else UNSEEN


def _covers(rules: Rules, path: Parts, entry: Entry | None) -> bool:
    return rules.covers(path, directory=is_directory(entry))
