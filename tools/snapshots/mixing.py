"""A kept state with some paths as another one has them."""

from daruma.tools.files.paths import Parts
from daruma.tools.snapshots.contents import Contents
from daruma.tools.snapshots.entry import Entry


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
    names = {path[len(at)] for path in near}
    for name in names:
        entry = _one(contents, ours.get(name), theirs.get(name), near, (*at, name))
        ours.pop(name, None)
        if entry:
            ours[name] = entry
    return contents.put_tree(ours)


def _one(
    contents: Contents,
    entry: Entry | None,
    instead: Entry | None,
    paths: frozenset[Parts],
    path: Parts,
) -> Entry | None:
    pair = [each for each in (entry, instead) if each and each.kind == "directory" and each.content]
    if len(pair) < 2:
        return instead if path in paths else entry
    mode = pair[1].mode if path in paths else pair[0].mode
    inside = mixed(contents, pair[0].content, pair[1].content, paths - {path}, path)
    return Entry("directory", mode, inside)
