"""The planted mistakes are such: each can be planted, and names the tests that catch it."""

import ast
from collections import Counter
from pathlib import Path

from tests.planted.mistakes import DATA, ROOT, Mistake, exists, read, write

PACKAGES = ("graph", "nodes", "tools", "state")
LEAST = 300

MISTAKES = read()


def test_there_are_enough_and_in_every_package() -> None:
    """A package without any could lose all its tests unseen."""
    folders = {
        str(file.parent.relative_to(ROOT))
        for top in PACKAGES
        for file in (ROOT / top).rglob("*.py")
        if "scenarios" not in file.parts and file.read_text(encoding="utf-8").strip()
    }
    count = Counter(each.file.rpartition("/")[0] for each in MISTAKES)

    assert len(MISTAKES) >= LEAST
    assert sorted(folders - set(count)) == []


def test_each_can_be_planted() -> None:
    """Its lines are in the file once, and what comes of it is still Python, and another one."""
    assert [str(each) for each in MISTAKES if not _plantable(each)] == []


def _plantable(mistake: Mistake) -> bool:
    file = ROOT / mistake.file
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    planted = mistake.planted(text)
    return planted not in (None, text) and ast.parse(planted) is not None


def test_each_names_tests_that_are_there() -> None:
    """Else nobody would know any more what catches it."""
    gone = {test for each in MISTAKES for test in each.caught_by if not exists(test)}

    assert sorted(gone) == []


def test_none_is_there_twice() -> None:
    """Each counts once."""
    assert len({(each.file, each.before, each.after) for each in MISTAKES}) == len(MISTAKES)


def test_what_is_written_is_what_was_read(tmp_path: Path) -> None:
    """Tests that were found anew go into the data without changing anything else."""
    write(MISTAKES, tmp_path / "data.yaml")

    assert (tmp_path / "data.yaml").read_text(encoding="utf-8") == DATA.read_text(encoding="utf-8")
