"""What differs between two snapshots, whose ignore rules may differ too."""

from collections.abc import Iterator

from daruma.tools.snapshots.contents import Contents
from daruma.tools.snapshots.difference import Difference, differences
from daruma.tools.snapshots.entry import Entry
from daruma.tools.snapshots.ignored import Rules, decoded
from daruma.tools.snapshots.outcome import Snapshot


def between(contents: Contents, before: Snapshot, after: Snapshot) -> Iterator[Difference]:
    """Yield what differs, but what the rules of either leave alone."""
    found = differences(contents.tree, before.root, after.root)
    if before.rules == after.rules:
        yield from found
        return
    rules = [decoded(contents.blob(each.rules)) for each in (before, after)]
    for difference in found:
        if all(_covered(each, difference) for each in rules):
            yield difference


def _covered(rules: Rules, difference: Difference) -> bool:
    path, *entries = difference
    if rules.repository(path) and not all(each is None or _git(each) for each in entries):
        return False
    return all(
        rules.covers(path, directory=entry.kind == "directory") for entry in entries if entry
    )


def _git(entry: Entry) -> bool:
    return entry.kind == "repository"
