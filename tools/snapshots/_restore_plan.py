"""What putting back a snapshot means, path by path: decided before anything is touched."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from daruma.tools.files import Parts
from daruma.tools.snapshots._ignore import Rules
from daruma.tools.snapshots._states import Difference, Look, above, alone, differences, is_directory
from daruma.tools.snapshots._store import ChangedBy, Entry, Tree

# --- What putting back a snapshot means, path by path: decided before anything is touched.

State: TypeAlias = Callable[[Parts], Entry | None]

FOREIGN: Final = "somebody else changed it too"
IN_THE_WAY: Final = "what can not be put back is in the way"


@dataclass(frozen=True, slots=True)
class Changed:
    """The paths that were changed since a snapshot, by whom; a path may be in both."""

    work: frozenset[Parts]
    others: frozenset[Parts]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is put back (``goal``; None: deleted), and what is not.

    ``conflicts`` were changed by the work and by somebody else, ``kept`` by somebody else alone (or
    are directories that hold such), ``left`` can not be put back, for a reason.
    """

    goal: dict[Parts, Entry | None]
    conflicts: frozenset[Parts]
    kept: frozenset[Parts]
    left: dict[Parts, str]


def changed(intervals: Iterable[tuple[ChangedBy, Iterable[Parts]]]) -> Changed:
    """Return who changed what in a row of intervals; an undo belongs to the work."""
    work: set[Parts] = set()
    others: set[Parts] = set()
    for by, paths in intervals:
        (others if by == "others" else work).update(paths)
    return Changed(frozenset(work), frozenset(others))


def planned(
    who: Changed, target: State, now: State, *, overwrite: bool, unknown: dict[Parts, str]
) -> Plan:
    """Decide what is put back of what the work has changed since ``target``.

    ``unknown`` are paths that are left alone whoever changed them, each with the reason.
    """
    deciding = _Deciding(target, now, overwrite=overwrite, left=dict(unknown))
    for path in who.work | who.others:
        if path not in unknown and target(path) != now(path):
            deciding.sort(path, work=path in who.work, others=path in who.others)
    while deciding.settle():
        pass
    return deciding.plan()


@dataclass
class _Deciding:
    target: State
    now: State
    overwrite: bool
    left: dict[Parts, str]
    wanted: set[Parts] = field(default_factory=set)
    conflicts: set[Parts] = field(default_factory=set)
    kept: set[Parts] = field(default_factory=set)

    def sort(self, path: Parts, *, work: bool, others: bool) -> None:
        if not work:
            self.kept.add(path)
            return
        if others:
            self.conflicts.add(path)
        if not others or self.overwrite:
            self._want(path)

    def settle(self) -> bool:
        """Resolve what can not be at once: a file, and something that lies in it."""
        before = len(self.wanted), len(self.left)
        for path in sorted(self.wanted, key=len, reverse=True):
            if path in self.wanted and self.target(path):
                self._make_room(path)
        staying = self.kept | self.conflicts | self.left.keys()
        for path in sorted(staying - self.wanted, key=len, reverse=True):
            if self.now(path):
                self._keep_room(path)
        return before != (len(self.wanted), len(self.left))

    def _make_room(self, path: Parts) -> None:
        """A path is put back only into what will be a directory."""
        for each in above(path):
            if each in self.wanted or is_directory(self.now(each)):
                continue
            if each in self.left:
                self._give_up(path)
            elif self.overwrite:
                self.kept.discard(each)
                self.conflicts.add(each)
                self._want(each)
            else:
                self._clash(path)

    def _keep_room(self, path: Parts) -> None:
        """What stays needs the directories that it lies in."""
        for each in reversed(above(path)):
            if each not in self.wanted or is_directory(self.target(each)):
                continue
            if path in self.left:
                self._give_up(each)
            elif self.target(each) is None:
                self.wanted.discard(each)
                self.kept.add(each)
            elif self.overwrite:
                self.kept.discard(path)
                self.conflicts.add(path)
                self._want(path)
            else:
                self._clash(each)

    def _want(self, path: Parts) -> None:
        reason = _unable(self.target(path), self.now(path))
        if reason:
            self.left[path] = reason
            self.wanted.discard(path)
        else:
            self.wanted.add(path)

    def _give_up(self, path: Parts) -> None:
        self.wanted.discard(path)
        self.left[path] = IN_THE_WAY

    def _clash(self, path: Parts) -> None:
        self.wanted.discard(path)
        self.conflicts.add(path)

    def plan(self) -> Plan:
        goal = {path: self.target(path) for path in self.wanted}
        left = {path: why for path, why in self.left.items() if path not in goal}
        conflicts = frozenset(self.conflicts)
        stood = {path: FOREIGN for path in conflicts - goal.keys() if path not in left}
        return Plan(goal, conflicts, frozenset(self.kept - goal.keys()), left | stood)


def _unable(target: Entry | None, now: Entry | None) -> str:
    """Say why a path can not be put back, nothing if it can."""
    kinds = {each.kind for each in (target, now) if each}
    if "repository" in kinds:
        return "a git repository is never touched"
    if target and target.kind == "special":
        return "pipes, sockets and devices can not be made again"
    if target and target.kind == "unread":
        return "its content was too large or unreadable, and is not kept"
    if now and now.kind == "unread" and (target is None or target.kind == "link"):
        return "its content is too large or unreadable, and would be lost"
    return ""


# --- A goal for single paths, made whole: what lies in them, and what they lie in.

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
            id_ = root
            for name in path:
                id_ = tree(id_)[name].content
            for each, _, _ in differences(tree, id_, "", path):
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


# --- What can not be told of a snapshot that was taken by other ignore rules.

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
