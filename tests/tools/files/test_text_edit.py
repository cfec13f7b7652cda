"""An edit changes what it names and nothing else."""

import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from daruma.tools.errors import EditRefused
from daruma.tools.files.edits import insert_after, lines_of, plain, replace_once
from daruma.tools.files.paths import TextFile

LINE = st.text("ab é\U0001f600\t\u2028", max_size=4)
END = st.sampled_from(["\n", "\r\n"])
MIXED = st.lists(st.tuples(LINE, END), max_size=6).map(lambda lines: "".join(map("".join, lines)))
TEXT = st.builds(str.__add__, MIXED, LINE)
HOW = st.sampled_from([(b"", "utf-8"), (b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le")])


@settings(deadline=None)
@given(TEXT, TEXT, TEXT, TEXT, HOW)
def test_bytes_outside_a_replacement_stay(
    before: str, old: str, after: str, new: str, how: tuple[bytes, str]
) -> None:
    """In any mixture of line ends and encoding, what is around an edit is untouched (ED-03)."""
    whole = plain(before) + plain(old) + plain(after)
    starts = [at for at in range(len(whole)) if whole.startswith(plain(old), at)]
    assume(old and plain(old) != plain(new) and len(starts) == 1)
    mark, encoding = how
    data = mark + (before + old + after).encode(encoding)
    file = TextFile.of(data, "f")
    written = file.with_text(replace_once(file.text, plain(old), plain(new)).text)

    assert written.startswith(mark + before.encode(encoding))
    assert written.endswith(after.encode(encoding))
    assert plain(TextFile.of(written, "f").text) == plain(before) + plain(new) + plain(after)


@settings(deadline=None)
@given(TEXT, st.integers(0, 6), TEXT)
def test_bytes_around_an_insertion_stay(text: str, line: int, addition: str) -> None:
    """The lines before and after are there as they were, and the new ones between them."""
    pieces = re.findall(r"[^\n]*\n|[^\n]+", text)
    line = min(line, len(pieces))
    result = insert_after(text, line, addition).text

    lines = lines_of(plain(text))
    new = plain(addition).removesuffix("\n").split("\n")
    assert lines_of(plain(result)) == [*lines[:line], *new, *lines[line:]]
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
    """From 0 to the last line; a final line end that is missing stays missing (ED-01)."""
    assert insert_after(text, line, addition).text == result


@pytest.mark.parametrize(("text", "line"), [("a\nb\n", 3), ("a\nb", 3), ("", 1), ("a", -1)])
def test_there_is_nothing_to_insert_after_beyond_the_end(text: str, line: int) -> None:
    """A line that is not there is an error that says which are (ED-01)."""
    with pytest.raises(EditRefused, match="from 0 to"):
        insert_after(text, line, "x")


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


def test_an_edit_that_changes_nothing_is_refused() -> None:
    """The model is told that it repeated the text, also if only line ends differ."""
    with pytest.raises(EditRefused, match="nothing to change"):
        replace_once("a\r\nb", "a\nb", "a\r\nb")


def test_an_edit_tells_which_lines_it_touched() -> None:
    """The snippet is shown around these."""
    edited = replace_once("1\n2\n3\n4\n", "3", "x\ny")

    assert (edited.first, edited.last) == (3, 4)
