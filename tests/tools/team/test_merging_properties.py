"""Merging in general: any order leads to one tree, and nothing that a side has written is lost."""

from dataclasses import dataclass
from itertools import permutations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.flats import Kept, reached

from daruma.tools.snapshots.outcome import Entry
from daruma.tools.team.merging import above, merged, with_markers

PATHS = ("a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "d/e/b")
BLOCKS = 3

Choice = dict[str, str]
BASE: st.SearchStrategy[Choice] = st.fixed_dictionaries(
    {path: st.sampled_from(["absent", "base"]) for path in PATHS}
)
SIDE: st.SearchStrategy[Choice] = st.fixed_dictionaries(
    {path: st.sampled_from(["absent", "base", "base", "base", "changed"]) for path in PATHS}
)


def chosen(kept: Kept, base: Choice, side: Choice, who: str) -> dict[str, Entry]:
    """Return a state of one side; a line of its own stands in every file that it has changed."""
    files: dict[str, str] = {}
    for path in PATHS:
        what = base[path] if side[path] == "base" else side[path]
        if what != "absent" and not any(folder in files for folder in above(path)):
            own = f"{who}:{path}\n" if what == "changed" else ""
            files[path] = f"1\n2\n{own}{path}\n"
    return kept.flat(files)


def lines(kept: Kept, there: dict[str, Entry], who: str) -> set[str]:
    texts = (kept.blobs[each.content].decode() for each in there.values() if each.kind == "file")
    return {line for text in texts for line in text.splitlines() if line.startswith(who)}


@given(base=BASE, side=SIDE)
def test_merging_with_an_unchanged_side_is_the_other(base: Choice, side: Choice) -> None:
    """Whatever the other has done, and whichever of the two it is."""
    kept = Kept()
    before, after = chosen(kept, base, base, "-"), chosen(kept, base, side, "s")

    assert reached(before, merged(before, before, after, kept.read).goal) == after
    assert merged(before, after, before, kept.read).goal == {}
    assert merged(before, after, after, kept.read).goal == {}


@settings(max_examples=60, deadline=None)
@given(base=BASE, mine=SIDE, theirs=SIDE)
def test_nothing_that_a_side_has_written_is_lost(
    base: Choice, mine: Choice, theirs: Choice
) -> None:
    """Every line is in the merged tree, or in the one in which conflicts are to be settled."""
    kept = Kept()
    before = chosen(kept, base, base, "-")
    ours, others = chosen(kept, base, mine, "m"), chosen(kept, base, theirs, "t")
    whole = merged(before, ours, others, kept.read)
    done = with_markers(before, ours, others, kept.read, "p1") if whole.conflicts else whole
    found = kept.texts(reached(ours, done.goal), done)
    written = lines(kept, ours, "m") | lines(kept, others, "t")

    assert written <= {line for text in found.values() for line in text.splitlines()}
    assert whole.goal == {} if whole.conflicts else done.conflicts == ()


EDIT = st.lists(st.tuples(st.integers(0, 12), st.sampled_from(["add", "drop", "put"])), max_size=5)


def edited(text: list[str], edits: list[tuple[int, str]], who: str) -> list[str]:
    for number, (at, what) in enumerate(edits):
        place = min(at, len(text))
        new = [] if what == "drop" else [f"{who}{number}"]
        text = [*text[:place], *new, *text[place + (what != "add") :]]
    return text


@settings(max_examples=60, deadline=None)
@given(
    base=st.lists(st.sampled_from("abc"), max_size=12), mine=EDIT, theirs=EDIT, end=st.booleans()
)
def test_no_line_is_lost_silently(
    base: list[str], mine: list[tuple[int, str]], theirs: list[tuple[int, str]], end: bool
) -> None:
    """Lines that both sides have added to one file, repeated ones around them."""
    kept = Kept()
    ours, others = edited(base, mine, "m"), edited(base, theirs, "t")
    texts = ["\n".join(side) + "\n" * end for side in (base, ours, others)]
    states = kept.states({"a": texts[0]}, {"a": texts[1]}, {"a": texts[2]})
    done = with_markers(*states, kept.read, "p1")
    (text,) = kept.texts(reached(states[1], done.goal), done).values()
    added = {line for line in ours + others if len(line) > 1}

    assert added <= set(text.splitlines())
    assert bool(done.conflicts) is bool(merged(*states, kept.read).conflicts)


@dataclass(frozen=True)
class Part:
    """What one member does: in a folder of its own, in one that all share, in a text of all."""

    own: Choice
    adds: bool
    removes: bool
    rewrites: bool


PART = st.builds(Part, SIDE, st.booleans(), st.booleans(), st.booleans())


def worked(kept: Kept, base: Choice, did: list[Part], who: int | None) -> dict[str, Entry]:
    """Return the state in which one member has done its part; None for nobody."""
    files: dict[str, str | bytes | Entry] = {}
    blocks = []
    for number, part in enumerate(did):
        mine = number == who
        own = chosen(kept, base, part.own if mine else base, f"{number}")
        files |= {f"m{number}/{path}": entry for path, entry in own.items()}
        if mine and part.adds:
            files[f"shared/new{number}"] = "new"
        if not (mine and part.removes):
            files[f"shared/old{number}"] = "old"
        line = f"new {number}" if mine and part.rewrites else f"old {number}"
        blocks.append(f"begin {number}\n.{number}\n{line}\n,{number}\nend {number}\n")
    return kept.flat({**files, "text": "".join(blocks)})


@settings(max_examples=20, deadline=None)
@given(base=BASE, did=st.lists(PART, min_size=BLOCKS, max_size=BLOCKS))
def test_disjoint_work_merges_to_one_tree_in_any_order(base: Choice, did: list[Part]) -> None:
    """Files of one's own, files in a folder that all share, blocks of one text."""
    kept = Kept()
    before = worked(kept, base, did, None)
    works = [worked(kept, base, did, who) for who in range(BLOCKS)]
    results = []
    for order in permutations(works):
        there = before
        for theirs in order:
            done = merged(before, there, theirs, kept.read)
            assert done.conflicts == ()
            kept.blobs |= done.contents
            there = reached(there, done.goal)
        results.append(there)

    assert all(each == results[0] for each in results)
    text = kept.blobs[results[0]["text"].content].decode()
    assert [f"new {n}" in text for n in range(BLOCKS)] == [part.rewrites for part in did]
