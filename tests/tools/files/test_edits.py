"""Edits of text files as pure functions, and the history with which they are taken back."""

import re
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from daruma.tools.errors import EditRefused, FileChanged
from daruma.tools.files import (
    EditHistory,
    TextFile,
    insert_after,
    lines_of,
    replace_once,
    unix_newlines,
)
from daruma.tools.files._workspace import MOST_BYTES, MOST_EDITS

# --- An edit changes what it names and nothing else.

LINE = st.text("ab é\U0001f600\t\u2028", max_size=4)
END = st.sampled_from(["\n", "\r\n"])
MIXED = st.lists(st.tuples(LINE, END), max_size=6).map(lambda lines: "".join(map("".join, lines)))
TEXT = st.builds(str.__add__, MIXED, LINE)
HOW = st.sampled_from([(b"", "utf-8"), (b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le")])


@pytest.mark.long
@settings(deadline=None)
@given(TEXT, TEXT, TEXT, TEXT, HOW)
def test_bytes_outside_a_replacement_stay(
    before: str, old: str, after: str, new: str, how: tuple[bytes, str]
) -> None:
    """In any mixture of line ends and encoding, what is around an edit is untouched (ED-03)."""
    whole = unix_newlines(before) + unix_newlines(old) + unix_newlines(after)
    starts = [at for at in range(len(whole)) if whole.startswith(unix_newlines(old), at)]
    assume(old and unix_newlines(old) != unix_newlines(new) and len(starts) == 1)
    mark, encoding = how
    data = mark + (before + old + after).encode(encoding)
    file = TextFile.of(data, "f")
    written = file.with_text(replace_once(file.text, unix_newlines(old), unix_newlines(new)).text)

    assert written.startswith(mark + before.encode(encoding))
    assert written.endswith(after.encode(encoding))
    assert unix_newlines(TextFile.of(written, "f").text) == unix_newlines(before) + unix_newlines(
        new
    ) + unix_newlines(after)


@settings(deadline=None)
@given(TEXT, st.integers(0, 6), TEXT)
def test_bytes_around_an_insertion_stay(text: str, line: int, addition: str) -> None:
    """The lines before and after are there as they were, and the new ones between them."""
    pieces = re.findall(r"[^\n]*\n|[^\n]+", text)
    line = min(line, len(pieces))
    result = insert_after(text, line, addition).text

    lines = lines_of(unix_newlines(text))
    new = unix_newlines(addition).removesuffix("\n").split("\n")
    assert lines_of(unix_newlines(result)) == [*lines[:line], *new, *lines[line:]]
    assert result.startswith("".join(pieces[:line]))
    assert result.endswith("".join(pieces[line:]))
    assert not text or not new[-1] or result.endswith("\n") == text.endswith("\n")


@pytest.mark.parametrize(
    ("text", "old", "new", "result"),
    [
        ("a\r\nb\r\n", "a\nb", "a\nx\nb", "a\r\nx\r\nb\r\n"),
        ("a\r\nb\r\n", "a\r\nb", "c", "c\r\n"),
        ("a\nb\r\nc", "b\nc", "b\nx\nc", "a\nb\r\nx\r\nc"),
        ("a\nb\nc\r\n", "b", "x\ny", "a\nx\ny\nc\r\n"),
        ("one", "one", "one\ntwo", "one\ntwo"),
        ("a\rb\n", "b", "c", "a\rc\n"),
        ("a\u2028b\n", "a", "c", "c\u2028b\n"),
    ],
)
def test_new_lines_end_as_those_around_them(text: str, old: str, new: str, result: str) -> None:
    """The model's line ends become the file's, also where the file mixes them."""
    assert replace_once(text, old, new).text == result


@pytest.mark.parametrize(
    ("text", "line", "addition", "result"),
    [
        ("a\nb\n", 0, "x", "x\na\nb\n"),
        ("a\nb\n", 1, "x\n", "a\nx\nb\n"),
        ("a\nb\n", 2, "x", "a\nb\nx\n"),
        ("a\nb", 2, "x", "a\nb\nx"),
        ("a\r\nb", 2, "x\ny", "a\r\nb\r\nx\r\ny"),
        ("", 0, "x", "x\n"),
        ("a\n", 1, "", "a\n\n"),
        ("a", 1, "", "a\n\n"),
    ],
)
def test_lines_are_inserted_whole(text: str, line: int, addition: str, result: str) -> None:
    """From 0 to the last line; a final line end that is missing stays missing (ED-01).

    A line that is not there is an error that says which are.
    """
    assert insert_after(text, line, addition).text == result
    for beyond in (len(lines_of(text)) + 1, -1):
        with pytest.raises(EditRefused, match="from 0 to"):
            insert_after(text, beyond, "x")


@pytest.mark.parametrize(
    ("text", "old", "said"),
    [
        ("a\nb\na\n", "a", "occurs 2 times, on lines 1, 3"),
        ("aaa", "aa", "occurs 2 times, on lines 1, 1"),
        ("a\n" * 20, "a", "20 times, on lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …"),
        ("a" * 1_000_000, "a", "very many times"),
        ("a\n", "b", "does not occur in the file: view it"),
        ("x\n\tif a:\n\t\tb\n", "if a:\n    b", "white space is on line 2"),
        ("a b\n", "a  b", "white space is on line 1"),
        ("a", "", "old_str is empty"),
    ],
)
def test_a_match_that_is_not_the_only_one_is_refused(text: str, old: str, said: str) -> None:
    """The error says how many there are and where, or what comes near (ED-01)."""
    with pytest.raises(EditRefused, match=said.replace("(", r"\(")):
        replace_once(text, old, "new")


def test_an_edit_tells_which_lines_it_touched() -> None:
    """The snippet is shown around these; an edit that repeats the text is told to be none."""
    edited = replace_once("1\n2\n3\n4\n", "3", "x\ny")

    assert (edited.first, edited.last) == (3, 4)
    with pytest.raises(EditRefused, match="nothing to change"):
        replace_once("a\r\nb", "a\nb", "a\r\nb")


# --- What was seen and edited is kept outside the workspace, for undo and caution.

ROOT = Path("/work")


@pytest.fixture
def history(tmp_path: Path) -> EditHistory:
    """A history in a directory that is not there yet."""
    return EditHistory(tmp_path / "deep" / "edits")


def edit(history: EditHistory, before: bytes | None, after: bytes) -> None:
    """Note one edit of the file `f`."""
    with history.of(ROOT, "f") as past, past.edit(before, after):
        pass


def test_an_edit_survives_the_process(history: EditHistory) -> None:
    """A history opened anew on the same directory knows the former content, of that file alone."""
    edit(history, b"old", b"new")

    for root, location in ((ROOT, "g"), (Path("/other"), "f")):
        with history.of(root, location) as past, pytest.raises(EditRefused):
            past.last()
    with EditHistory(history.directory).of(ROOT, "f") as past:
        assert past.content_before(past.last()) == b"old"
        assert past.drop_last() == 0
    with history.of(ROOT, "f") as past, pytest.raises(EditRefused, match="no edit to undo"):
        past.last()


def test_only_the_last_ten_edits_are_kept(history: EditHistory) -> None:
    """Older contents are dropped from the record and from the disk."""
    for number in range(MOST_EDITS + 5):
        edit(history, b"%d" % number, b"%d" % (number + 1))

    with history.of(ROOT, "f") as past:
        undone = []
        for _ in range(MOST_EDITS):
            undone.append(past.content_before(past.last()))
            past.drop_last()
        with pytest.raises(EditRefused):
            past.last()
    assert undone == [b"%d" % number for number in range(14, 4, -1)]
    assert not list(history.directory.glob("*/*.before"))


def test_the_bytes_kept_are_bounded(history: EditHistory) -> None:
    """Large files keep fewer edits: at most 16 MiB a file."""
    for number in range(8):
        edit(history, b"%d" % number * (4 * 1024 * 1024), b"x")

    kept = sum(each.stat().st_size for each in history.directory.glob("*/*.before"))
    assert 0 < kept <= MOST_BYTES


def test_a_file_never_seen_may_be_edited_and_a_changed_one_not(history: EditHistory) -> None:
    """Only a content other than the one seen last is refused."""
    with history.of(ROOT, "f") as past:
        past.refuse_if_changed(b"anything")
        past.saw(b"one")
        past.refuse_if_changed(b"one")
        with pytest.raises(FileChanged, match="changed since it was viewed: view it again"):
            past.refuse_if_changed(b"two")


def test_an_edit_that_failed_is_forgotten(history: EditHistory) -> None:
    """When the file can not be written, what was seen and done is as before."""
    with history.of(ROOT, "f") as past:
        past.saw(b"old")
        with pytest.raises(ZeroDivisionError), past.edit(b"old", b"new"):
            raise ZeroDivisionError

    with history.of(ROOT, "f") as past:
        past.refuse_if_changed(b"old")
        with pytest.raises(EditRefused):
            past.last()


def test_an_edit_is_on_disk_before_it_is_carried_out(history: EditHistory) -> None:
    """A crash while the file is written leaves what is needed to undo; others can not read it."""
    with history.of(ROOT, "f") as past, past.edit(b"old", b"new"):
        folder = next(history.directory.iterdir())

        assert (folder / "1.before").read_bytes() == b"old"
        assert b'"number":1' in (folder / "record.json").read_bytes()
    paths = [history.directory, *history.directory.rglob("*")]
    modes = {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in paths}
    assert modes == {(True, 0o700), (False, 0o600)}


def test_a_damaged_history_never_gives_a_wrong_content(history: EditHistory) -> None:
    """A changed or missing former content is refused; a broken record is as if none were there."""
    edit(history, b"old", b"new")
    folder = next(history.directory.iterdir())
    damage: Any
    for damage in (lambda file: file.write_bytes(b"forged"), Path.unlink):
        damage(folder / "1.before")
        with history.of(ROOT, "f") as past, pytest.raises(EditRefused, match="damaged"):
            past.content_before(past.last())
    (folder / "record.json").write_bytes(b"{")

    with history.of(ROOT, "f") as past, pytest.raises(EditRefused, match="no edit"):
        past.last()


def test_a_history_inside_the_workspace_is_an_error(tmp_path: Path) -> None:
    """The model could change it there, and a rollback would take it along."""
    history = EditHistory(tmp_path / "edits")

    with pytest.raises(ValueError, match="outside"), history.of(tmp_path, "f"):
        pass


def test_one_edit_of_a_file_at_a_time(history: EditHistory) -> None:
    """While one thread holds a file's history, another one waits for it."""
    order: list[str] = []

    def second() -> None:
        with history.of(ROOT, "f"):
            order.append("second")

    with history.of(ROOT, "f"):
        waiting = threading.Thread(target=second)
        waiting.start()
        waiting.join(0.05)
        order.append("first")
    waiting.join()

    assert order == ["first", "second"]
