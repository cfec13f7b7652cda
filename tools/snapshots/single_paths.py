"""A goal for single paths, made whole: what lies in them, and what they lie in."""

from collections.abc import Callable, Mapping
from typing import Final

from daruma.tools.files.paths import Parts
from daruma.tools.snapshots.difference import differences
from daruma.tools.snapshots.entry import Entry, Tree
from daruma.tools.snapshots.ignored import Rules
from daruma.tools.snapshots.looking import Look, above, alone, is_directory
from daruma.tools.snapshots.restoring import Plan

IGNORED: Final = "is ignored, and was left alone"

_NEW: Final = Entry("directory", 0o755, "")
"""A directory that nobody has named, and that something is to lie in."""


def completed(
    goal: Mapping[Parts, Entry | None], tree: Callable[[str], Tree], root: str, rules: Rules
) -> Plan:
    """Return the plan that brings single paths to a goal, from the state ``root``.

    What lies in a directory that is to be none goes with it; missing directories come with what is
    to lie in them.
    """
    now = Look(tree, root)
    whole = {path: alone(entry) for path, entry in goal.items()}
    for path in goal:
        for each in above(path) if goal[path] else ():
            if each not in whole and now(each) is None:
                whole[each] = _NEW
        if is_directory(now(path)) and not is_directory(goal[path]):
            for each in _inside(tree, root, path):
                whole.setdefault(each, None)
    outside = {
        path: IGNORED
        for path, entry in whole.items()
        if not rules.covers(path, directory=is_directory(entry)) or rules.repository(path)
    }
    wanted = {path: each for path, each in whole.items() if now(path) != each}
    return Plan(
        {path: each for path, each in wanted.items() if path not in outside},
        frozenset(),
        frozenset(),
        {path: why for path, why in outside.items() if path in wanted},
    )


def _inside(tree: Callable[[str], Tree], root: str, path: Parts) -> list[Parts]:
    id_ = root
    for name in path:
        id_ = tree(id_)[name].content
    return [each for each, _, _ in differences(tree, id_, "", path)]
