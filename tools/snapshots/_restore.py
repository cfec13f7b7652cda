"""Putting a workspace back: on record before it begins, done entry by entry, told honestly.

It goes on from any half-way state, and leaves what somebody else has changed meanwhile (RO-06).
"""

import errno
import hashlib
import itertools
import os
import secrets
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from daruma.tools.files import Parts, closing_fd, file_status
from daruma.tools.snapshots._ignore import Rules, decoded
from daruma.tools.snapshots._records import (
    Intent,
    Recorder,
    close_intent,
    open_intent,
    write_intent,
)
from daruma.tools.snapshots._restore_plan import Plan, State, beyond, changed, completed, planned
from daruma.tools.snapshots._states import (
    TEMPORARY,
    Look,
    Reader,
    between,
    differences,
    is_directory,
)
from daruma.tools.snapshots._store import (
    GONE,
    ROOT_NAME,
    ChangedBy,
    Conflicts,
    Contents,
    Entry,
    Restored,
    RestoreRefused,
    Snapshot,
    SnapshotUnavailable,
    directory_opened,
    sync_file_system,
    told,
)

# --- Single entries of an open directory: looked at, made, removed, given a mode.
#
# No link is followed, and nothing that came up meanwhile is replaced where the system can prevent
# it.

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PATH_ONLY: Final[int] = getattr(os, "O_PATH", 0)
_NO_HARD_LINKS: Final = {errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS}
"""What a file system says that knows none."""


def status_of(folder: int, name: str) -> os.stat_result | None:
    """Return what the system says of a name, None if it is not there."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except GONE:
        return None


def entry_of(folder: int, name: str) -> Entry | None:
    """Return what a name stands for now, None for nothing; of a directory its mode only."""
    status = status_of(folder, name)
    if status is None:
        return None
    if stat.S_ISDIR(status.st_mode):
        return Entry("directory", stat.S_IMODE(status.st_mode), "")
    return Reader(lambda data: hashlib.sha256(data).hexdigest()).entry(folder, name, status)


def set_mode(folder: int, name: str, mode: int) -> None:
    """Give a file or directory a mode, also one that may not be opened. Raises OSError."""
    flags = _PATH_ONLY or (os.O_RDONLY | os.O_NONBLOCK)
    with closing_fd(os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)) as fd:
        if stat.S_ISLNK(os.fstat(fd).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        os.chmod(f"/proc/self/fd/{fd}" if _PATH_ONLY else fd, mode)  # noqa: PTH101 - a descriptor


@dataclass(frozen=True)
class Placing:
    """Single operations in open directories. All raise OSError.

    ``temporary`` is the name of the one file that is there only meanwhile; ``step`` is called
    before and after every operation.
    """

    temporary: str
    step: Callable[[], None]

    def sweep(self, folder: int) -> None:
        """Remove a temporary file that a crash has left."""
        with suppress(FileNotFoundError):
            os.unlink(self.temporary, dir_fd=folder)

    def mode(self, folder: int, name: str, mode: int) -> None:
        """Give a file or directory a mode."""
        self.step()
        set_mode(folder, name, mode)
        self.step()

    def remove(self, folder: int, name: str, *, directory: bool) -> None:
        """Remove a name, or an empty directory."""
        self.step()
        (os.rmdir if directory else os.unlink)(name, dir_fd=folder)
        self.step()

    def directory(self, folder: int, name: str) -> None:
        """Make a directory, for its owner alone at first."""
        self.step()
        os.mkdir(name, 0o700, dir_fd=folder)
        self.step()

    def link(self, folder: int, name: str, target: str, like: os.stat_result | None) -> None:
        """Put a symbolic link in place of what was ``like`` that, and still is, or of nothing."""
        self.step()
        if like is None:
            os.symlink(target, name, dir_fd=folder)
        else:
            try:
                os.symlink(target, self.temporary, dir_fd=folder)
                self.step()
                self._rename(folder, name, like)
            finally:
                self.sweep(folder)
        self.step()

    def file(
        self, folder: int, name: str, data: bytes, mode: int, like: os.stat_result | None
    ) -> None:
        """Put a file in place of what was ``like`` that, and still is, or of nothing.

        It is whole, has its mode, and takes the owner of what it replaces, where that is allowed.
        """
        try:
            self._write(folder, data, mode, like)
            if like is None:
                self._link(folder, name)
            else:
                self._rename(folder, name, like)
            self.step()
        finally:
            self.sweep(folder)

    def _rename(self, folder: int, name: str, like: os.stat_result) -> None:
        """Replace a name, unless somebody wrote to it while the temporary file was written."""
        now = status_of(folder, name)
        if now and file_status(now) == file_status(like):
            os.rename(self.temporary, name, src_dir_fd=folder, dst_dir_fd=folder)

    def _write(self, folder: int, data: bytes, mode: int, like: os.stat_result | None) -> None:
        self.step()
        with closing_fd(os.open(self.temporary, _NEW, 0o600, dir_fd=folder)) as fd:
            self.step()
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(fd, rest) :]
            self.step()
            if like and (like.st_uid, like.st_gid) != (os.geteuid(), os.getegid()):
                with suppress(PermissionError):
                    os.fchown(fd, like.st_uid, like.st_gid)
            os.fchmod(fd, mode)  # after the owner: chown clears set-id bits
        self.step()

    def _link(self, folder: int, name: str) -> None:
        here = self.temporary
        try:  # unlike a rename, a link never replaces anything
            os.link(here, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            os.rename(here, name, src_dir_fd=folder, dst_dir_fd=folder)


# --- Bringing a workspace to a goal, one operation after the other, from any half-way state.

MEANWHILE: Final = "somebody else changed it meanwhile"
IGNORED: Final = "an ignored file is in the way"
HOLDS: Final = "holds files that are ignored, or that somebody else made"
UNREADABLE: Final = "its content may not be read, and would be lost"
NOWHERE: Final = "the directory that it belongs in is not there"

_ALL: Final = 0o700
"""What a directory needs so that its owner may change what lies in it."""

_MADE: Final = {0o700, 0o2700}
"""The modes of a directory that was just made; the second one inside of a set-group-id one."""

_AWAY: Final = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}


@dataclass
class Applying:
    """One way to a goal, path by path: ``was`` is how things stood before the first operation.

    What is neither as it was nor as the goal has it was changed by somebody else, and is left; so
    is what the system does not allow. ``left`` says why.
    """

    top: int
    rules: Rules
    goal: Mapping[Parts, Entry | None]
    was: State
    blob: Callable[[str], bytes]
    placing: Placing
    left: dict[Parts, str] = field(default_factory=dict)

    def run(self) -> None:
        """Go the way: removals deepest first, then what is put, then the modes of directories."""
        folders = {path[:-1] or (ROOT_NAME,) for path in self.goal}
        down = sorted(self.goal, key=depth)
        self._each(self.open_up, sorted(folders, key=depth))
        self._each(self._sweep, folders)
        self._each(self.remove, reversed(down))
        self._each(self.put, down)
        self._each(self.close, sorted({*down, *folders}, key=depth, reverse=True))

    def open_up(self, folder: int, path: Parts) -> None:
        """Make a directory writable for a while; `close` gives it its mode."""
        now = entry_of(folder, path[-1])
        if now and is_directory(now) and now.mode & _ALL != _ALL:
            self.placing.mode(folder, path[-1], now.mode | _ALL)

    def remove(self, folder: int, path: Parts) -> None:
        """Remove what the goal does not have, or has as a directory where none is, or reversed."""
        goal, was = self.goal[path], self.was(path)
        if was is None or (goal and is_directory(goal) == is_directory(was)):
            return
        now = entry_of(folder, path[-1])
        if now is None or now == goal or (is_directory(now) and is_directory(goal)):
            return
        if now.kind == "unread":
            self.left[path] = UNREADABLE
        elif self.rules.repository(path) or not _equal(now, was):
            self.left[path] = MEANWHILE
        else:
            try:
                self.placing.remove(folder, path[-1], directory=is_directory(now))
            except OSError as error:
                if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                    raise
                self.left[path] = HOLDS

    def put(self, folder: int, path: Parts) -> None:
        """Put what the goal has; of directories only that they are there."""
        goal, seen = self.goal[path], status_of(folder, path[-1])
        now = entry_of(folder, path[-1])
        if goal is None or _equal(now, goal):
            return
        if not _ours(now, self.was(path), goal):
            ignored = self.rules.outside(path, directory=is_directory(now))
            self.left.setdefault(path, IGNORED if ignored else MEANWHILE)
        elif now and now.kind == "unread":
            self._reveal(folder, path, goal, now)
        elif now and _only_mode(goal, now, status_of(folder, path[-1])):
            self.placing.mode(folder, path[-1], goal.mode)
        elif goal.kind == "directory":
            self.placing.directory(folder, path[-1])
        elif goal.kind == "link":
            self.placing.link(folder, path[-1], goal.content, seen)
        else:
            self.placing.file(folder, path[-1], self.blob(goal.content), goal.mode, seen)

    def close(self, folder: int, path: Parts) -> None:
        """Give a directory the mode that it has in the goal, or had before."""
        was = self.was(path)
        goal = self.goal.get(path)
        final = goal if is_directory(goal) else was  # what could not be removed is as it was
        now = entry_of(folder, path[-1])
        if not (final and is_directory(final) and now and is_directory(now)):
            return
        if now.mode == final.mode:
            return
        if now.mode in {*_modes(final), *_modes(was), *_MADE}:
            self.placing.mode(folder, path[-1], final.mode)
        else:
            self.left.setdefault(path, MEANWHILE)

    def _each(self, do: Callable[[int, Parts], None], paths: Iterable[Parts]) -> None:
        for path in paths:
            try:
                with self._folder(path) as folder:
                    if folder is not None:
                        do(folder, path)
                    elif self.goal.get(path):
                        self.left.setdefault(path, NOWHERE)
            except OSError as error:
                self.left[path] = os.strerror(error.errno or 0)

    @contextmanager
    def _folder(self, path: Parts) -> Iterator[int | None]:
        with ExitStack() as stack:
            try:
                folder = stack.enter_context(directory_opened(self.top, path[:-1]))
            except OSError as error:
                if error.errno not in _AWAY:
                    raise
                folder = None
            yield folder

    def _sweep(self, folder: int, path: Parts) -> None:
        if is_directory(entry_of(folder, path[-1])):
            with directory_opened(folder, path[-1:]) as inside:
                self.placing.sweep(inside)

    def _reveal(self, folder: int, path: Parts, goal: Entry, now: Entry) -> None:
        """A file that may not be read may still have the content that it should have."""
        status = status_of(folder, path[-1])
        if status and status.st_nlink == 1:
            self.placing.mode(folder, path[-1], goal.mode)
            if entry_of(folder, path[-1]) == goal:
                return
            set_mode(folder, path[-1], now.mode)
        self.left[path] = UNREADABLE


def depth(path: Parts) -> int:
    """Return how deep a path lies; 0 for the workspace itself."""
    return 0 if path == (ROOT_NAME,) else len(path)


def _equal(now: Entry | None, other: Entry) -> bool:
    return now == other or (is_directory(now) and is_directory(other))


def _ours(now: Entry | None, was: Entry | None, goal: Entry) -> bool:
    """Say whether a path is as it was, or between that and the goal."""
    if now is None:
        return was is None or is_directory(was) != is_directory(goal)
    if is_directory(now):
        return False  # it was to be removed, and could not be
    if now.kind == "unread":
        return was is not None and was.kind == "unread"
    return now == was


def _only_mode(goal: Entry, now: Entry, status: os.stat_result | None) -> bool:
    """Say whether only the mode differs, of a file that has no other name (maybe outside)."""
    same = (goal.kind, goal.content) == (now.kind, now.content)
    return same and goal.kind == "file" and status is not None and status.st_nlink == 1


def _modes(entry: Entry | None) -> tuple[int, ...]:
    return (entry.mode, entry.mode | _ALL) if entry else ()


# --- A kept state with some paths as another one has them.


def mixed(
    contents: Contents, state: str, other: str, paths: frozenset[Parts], at: Parts = ()
) -> str:
    """Return the id of ``state`` in which ``paths`` are as in ``other``, all given by their ids.

    A directory that is in both goes by the paths in it; its mode goes by its own path.
    """
    near = frozenset(path for path in paths if path[: len(at)] == at)
    if not near:
        return state
    ours, theirs = contents.tree(state), contents.tree(other)
    for name in {path[len(at)] for path in near}:
        path, entry, instead = (*at, name), ours.pop(name, None), theirs.get(name)
        chosen = instead if path in near else entry
        both = [e.content for e in (entry, instead) if e and e.kind == "directory" and e.content]
        if chosen and len(both) == 2:
            inside = mixed(contents, both[0], both[1], near - {path}, path)
            chosen = Entry("directory", chosen.mode, inside)
        if chosen:
            ours[name] = chosen
    return contents.put_tree(ours)


# --- Deciding what is put back, and bringing a restore that is on record to its end.

_NAMED: Final = 10
"""Paths that the error of a refusal names; it carries all of them."""


@dataclass
class Restore:
    """Puts back paths of a workspace that is open, from a store that is open (RO-06)."""

    snapshots: Recorder
    contents: Contents
    top: int

    def __post_init__(self) -> None:
        self._database, self._place = self.contents.database, self.snapshots.place()

    def restore(
        self, target_id: str, *, last: ChangedBy, conflicts: Conflicts, by: ChangedBy
    ) -> Restored:
        """Do what `Snapshots.restore` does."""
        self.recover()
        target = self._own(target_id)
        before = self._before(f"before putting back {target.label}", last)
        plan = self._planned(target, before, overwrite=conflicts == "overwrite")
        if plan.conflicts and conflicts == "refuse":
            paths = tuple(sorted(map(told, plan.conflicts)))
            more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
            raise RestoreRefused(
                f"nothing was put back: somebody else also changed {', '.join(paths[:_NAMED])}"
                f"{more}: keep these as they are, or overwrite them",
                paths,
            )
        return self._carried_out(put_back_to(target), by, target, before, plan)

    def foreseen(self, target_id: str, *, last: ChangedBy, overwrite: bool) -> tuple[Plan, Look]:
        """Return what `restore` would do, and how the workspace is now."""
        target, before = self._own(target_id), self._before("looking ahead", last)
        plan = self._planned(target, before, overwrite=overwrite)
        return plan, Look(self.contents.tree, before.root)

    def apply(self, goal: Mapping[Parts, Entry | None], label: str, *, by: ChangedBy) -> Restored:
        """Do what `Snapshots.apply` does."""
        self.recover()
        before = self._before(f"before {label}", "others")
        plan = completed(goal, self.contents.tree, before.root, self._rules(before))
        return self._carried_out(label, by, None, before, plan)

    def recover(self) -> Restored | None:
        """Finish a restore that a crash has cut short, if there is one."""
        intent = open_intent(self._database, self._place)
        return self._finished(intent) if intent else None

    def _own(self, id_: str) -> Snapshot:
        for each in self.snapshots.recorded(self.contents).all():
            if each.id == id_:
                return each
        raise SnapshotUnavailable(
            f"no snapshot {id_!r} of this thread and workspace: it was taken elsewhere, or is too"
            " old"
        )

    def _before(self, label: str, by: ChangedBy) -> Snapshot:
        return self.snapshots.taken(self.contents, self.top, label, by=by).snapshot

    def _planned(self, target: Snapshot, before: Snapshot, *, overwrite: bool) -> Plan:
        own = self.snapshots.recorded(self.contents).all()
        pairs = itertools.pairwise(each for each in own if each.number >= target.number)
        steps = ((new.by, between(self.contents, old, new)) for old, new in pairs)
        who = changed((by, [path for path, _, _ in found]) for by, found in steps)
        found = differences(self.contents.tree, target.root, before.root)
        unknown = beyond(found, self._rules(target), self._rules(before), who)
        then, now = (Look(self.contents.tree, each.root) for each in (target, before))
        return planned(who, then, now, overwrite=overwrite, unknown=unknown)

    def _rules(self, snapshot: Snapshot) -> Rules:
        return decoded(self.contents.blob(snapshot.rules))

    def _carried_out(
        self, label: str, by: ChangedBy, target: Snapshot | None, before: Snapshot, plan: Plan
    ) -> Restored:
        """Put the intent on record, with all that was kept before it; only then change anything."""
        for path, entry in plan.goal.items():
            try:
                if entry and entry.kind == "file":
                    self.contents.blob(entry.content)
            except (KeyError, zlib.error):
                store = self.snapshots.store.path
                raise SnapshotUnavailable(
                    f"the content of {told(path)} is not in {store}: nothing was changed"
                ) from None
        intent = Intent(
            id=secrets.token_hex(8),
            thread=self.snapshots.thread,
            label=label,
            by=by,
            target=target.id if target else None,
            before=before.id,
            goal=plan.goal,
            left=plan.left,
            kept=plan.kept,
        )
        if not plan.goal:
            return _report(intent, before, {})
        self.snapshots.step()
        write_intent(self._database, self._place, intent)
        self.contents.commit()
        self.snapshots.step()
        return self._finished(intent)

    def _finished(self, intent: Intent) -> Restored:
        """Go the rest of the way, look at the workspace again, and close the intent."""
        recorded = self.snapshots.recorded(self.contents, intent.thread)
        before = recorded.named(intent.before)
        rules, was = self._rules(before), Look(self.contents.tree, before.root)
        placing = Placing(TEMPORARY + intent.id, self.snapshots.step)
        make = self.snapshots.way or Applying
        way = make(self.top, rules, intent.goal, was, self.contents.blob, placing)
        way.run()
        sync_file_system(self.top)
        self.snapshots.step()
        root, unkept = self.snapshots.seen(self.contents, self.top, rules)
        wrong, foreign = self._compared(intent, before, root)

        def record(state: str, by: ChangedBy) -> Snapshot:
            now, more = self.snapshots.now(), tuple(unkept)
            return recorded.add(intent.label, by, state, before.rules, now, more)

        ours = mixed(self.contents, root, before.root, foreign)
        after = record(ours, intent.by)
        if ours != root:
            record(root, "others")
        close_intent(self._database, self._place)
        self.snapshots.step()
        self.contents.commit()
        self.snapshots.step()
        return _report(intent, after, {path: way.left.get(path, MEANWHILE) for path in wrong})

    def _compared(
        self, intent: Intent, before: Snapshot, root: str
    ) -> tuple[set[Parts], frozenset[Parts]]:
        """Return the paths that are not as they should be, and those that are somebody else's."""
        was, now = Look(self.contents.tree, before.root), Look(self.contents.tree, root)
        found = differences(self.contents.tree, before.root, root)
        goal, paths = intent.goal, [path for path, _, _ in found]
        foreign = {path for path in paths if now(path) not in (was(path), goal.get(path, 0))}
        wrong = {path for path, entry in intent.goal.items() if now(path) != entry}
        return wrong | foreign, frozenset(foreign)


def _report(intent: Intent, after: Snapshot, wrong: dict[Parts, str]) -> Restored:
    left = intent.left | wrong
    return Restored(
        snapshot=intent.target or after.id,
        before=intent.before,
        paths=tuple(sorted(told(path) for path in intent.goal.keys() - wrong.keys())),
        exact=not left,
        left=tuple(sorted(f"{told(path)}: {reason}" for path, reason in left.items())),
        kept=tuple(sorted(map(told, intent.kept))),
    )


def put_back_to(target: Snapshot) -> str:
    """Return the label of the snapshot that is taken once a workspace was put back."""
    return f"put back {target.label}"
