"""What a restore should have come to, worked out from what was seen before and after it."""

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from tests.snapshot_fuzz.hidden import Hidden
from tests.snapshot_fuzz.reading import State, parents


@dataclass(frozen=True)
class Seen:
    """One look at a workspace: all of it, and what of it is not left alone."""

    by: str
    everything: State
    visible: State
    hidden: Hidden


@dataclass
class Judge:
    """Compares what is there after a restore with what should be.

    ``looks`` are those from the target to the last before the restore.
    """

    looks: list[Seen]
    result: State
    conflicts: str
    work: set[bytes] = field(default_factory=set)
    others: set[bytes] = field(default_factory=set)

    def __post_init__(self) -> None:
        for old, new in pairwise(self.looks):
            paths = {
                path
                for path in old.visible.keys() | new.visible.keys()
                if old.visible.get(path) != new.visible.get(path) and _seen_by_both(old, new, path)
            }
            (self.others if new.by == "others" else self.work).update(paths)

    @property
    def then(self) -> State:
        """What should be there, as far as the work has changed it."""
        return self.looks[0].visible

    @property
    def now(self) -> State:
        """What was there just before."""
        return self.looks[-1].visible

    @cached_property
    def _now_by_then(self) -> State:
        return self.looks[0].hidden.visible(self.looks[-1].everything)

    def clashing(self) -> set[bytes]:
        """Return the paths that both have changed, and that are not as they were."""
        both = self.work & self.others
        return {path for path in both if self.then.get(path) != self.now.get(path)}

    def wrong(self) -> list[bytes]:
        """Return the paths that are not as an exact restore has them."""
        paths = self.then.keys() | self.now.keys() | self.result.keys()
        return sorted(path for path in paths if not self._fits(path))

    def unexcused(self) -> list[bytes]:
        """Return the wrong paths that could have been right, as far as is known here."""
        if any(look.hidden is not self.looks[0].hidden for look in self.looks):
            return []
        everything = self.looks[-1].everything
        excuses = self.others | (everything.keys() - self.now.keys())
        excuses |= self.unable()
        return [p for p in self.wrong() if not any(_beside(p, excuse) for excuse in excuses)]

    def unable(self) -> set[bytes]:
        """Return the paths that can not be made again, whoever changed them."""
        states = [look.visible for look in self.looks]
        kinds = ("special", "repository")
        return {path for state in states for path, thing in state.items() if thing[0] in kinds}

    def damaged(self) -> list[bytes]:
        """Return the paths that are neither as they were nor as they are: harm without excuse."""
        everything = self.looks[-1].everything
        found = []
        for path in everything.keys() | self.then.keys() | self.result.keys():
            is_ = self.result.get(path)
            if path in everything and path not in self.now:
                fine = is_ == everything[path]
            else:
                fine = is_ in (everything.get(path), self.then.get(path))
            if not fine:
                found.append(path)
        return sorted(found)

    def _fits(self, path: bytes) -> bool:
        everything = self.looks[-1].everything.get(path)
        is_, was, now = (each.get(path) for each in (self.result, self.then, self.now))
        kept = path in self.others and path not in self.work
        if (everything and not now) or (now and now[0] == "repository"):
            return is_ == everything and (kept or was in (None, is_, now))
        if was is None and path in self.looks[0].everything:  # ignored then: what became of it
            return is_ == now or (is_ is None and path in self.work)
        if was is None and everything and path not in self._now_by_then:
            return is_ == everything  # it was ignored when the snapshot was taken
        return is_ == everything if was == now else self._fits_changed(path, kept=kept)

    def _fits_changed(self, path: bytes, *, kept: bool) -> bool:
        is_, was, now = (each.get(path) for each in (self.result, self.then, self.now))
        overwritten = self.conflicts == "overwrite" and is_ == was
        if kept:
            return is_ == now or (overwritten and self._clash(path))
        if path in self.work and (path not in self.others or self.conflicts == "overwrite"):
            return is_ == was or self._holds_kept(path)
        return False

    def _holds_kept(self, path: bytes) -> bool:
        """A directory of the work's stays for what somebody else has put into it."""
        if self.then.get(path) or self.result.get(path, ("",))[0] != "directory":
            return False
        beneath = [p for p in self.result if p.startswith(path + b"/")]
        return self.result[path] == self.now.get(path) and any(p in self.others for p in beneath)

    def _clash(self, path: bytes) -> bool:
        """What somebody else made gives way to what must be put back, when that was asked for."""
        up = any(
            a in self.work and self.then.get(a, ("",))[0] != "directory" for a in parents(path)
        )
        down = any(p in self.work for p in self.then if p.startswith(path + b"/"))
        return up or down


def _seen_by_both(old: Seen, new: Seen, path: bytes) -> bool:
    if old.hidden.same_as(new.hidden):
        return True
    looks = [(rules, look) for rules in (old.hidden, new.hidden) for look in (old, new)]
    return all(
        path in rules.visible(look.everything) for rules, look in looks if path in look.everything
    )


def declared(paths: list[bytes], left: tuple[str, ...]) -> list[bytes]:
    """Return those paths that a report does not name, neither them nor what they lie in or hold."""
    named = [each.rpartition(": ")[0] for each in left]
    return [path for path in paths if not any(_near(path, name) for name in named)]


def _beside(path: bytes, other: bytes) -> bool:
    return path == other or path.startswith(other + b"/") or other.startswith(path + b"/")


def _near(path: bytes, name: str) -> bool:
    text = path.decode(errors="surrogateescape").encode(errors="backslashreplace").decode()
    return text == name or text.startswith(name + "/") or name.startswith(text + "/")
