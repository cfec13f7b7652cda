"""Single patterns of ignore files, as git reads them."""

from daruma.tools.snapshots._ignore import Patterns, lines_of

FITS = [
    ("a", "x/a", False),
    ("a/", "x/a", True),
    ("/a", "a", False),
    ("x/a", "x/a", False),
    ("*.c", "x/b.c", False),
    ("x/**", "x/a/b", False),
    ("**/a", "x/y/a", False),
    ("x/**/a", "x/a", False),
    ("/*", "a", False),
    ("*", "x/.b", False),
    ("[ab]?", "ax", False),
    ("[^a]b", "xb", False),
    ("\\!a", "!a", False),
    ("\\#a", "#a", False),
    ("a\\ ", "a ", False),
    ("a\t", "a\t", False),
    ("*a*b*c*", "xaxbxcx", False),
    ("*a*a*a*a*", "aaaa", False),
    ("[[:alpha:]]", "a", False),
    ("[[:digit:]-z]", "-", False),
    ("[\\]]", "]", False),
    ("[z-a]", "z", False),
    ("x**/a", "xy/z/a", False),
    ("/**/*a*/**/*b*", "a/ab", False),
]
DOES_NOT_FIT = [
    ("a/", "a", False),
    ("/a", "x/a", False),
    ("x/a", "y/x/a", False),
    ("x/**", "x", True),
    ("a", "a/b", False),
    ("a/", "a/b", True),
    ("x/*", "x/a/b", False),
    ("/", "a", True),
    ("a\\", "a\\", False),
    ("[a", "[a", False),
    ("[z-a]", "m", False),
    ("[[:odd:]]", "o", False),
    ("[!a]b", "/b", False),
    ("[^a]b", "ab", False),
    ("*a*/**/b", "a/ba", False),
]


def test_a_pattern_fits_or_says_nothing() -> None:
    """The path itself is meant, not what lies above it.

    The last that fits counts: order matters between patterns that say different things.
    """
    for line, path, directory in FITS:
        assert Patterns([line]).verdict(path, directory=directory) is True, line
        assert Patterns([f"!{line}"]).verdict(path, directory=directory) is False, line
    for line, path, directory in DOES_NOT_FIT:
        assert Patterns([line]).verdict(path, directory=directory) is None, line
    assert Patterns(["*.c", "!a.c", "a*"]).verdict("a.c", directory=False) is True
    assert Patterns(["a*", "*.c", "!a.c"]).verdict("a.c", directory=False) is False


def test_lines_are_cut_as_git_cuts_them() -> None:
    """Comments, a byte order mark, trailing spaces and line ends are no part of a pattern."""
    data = b"\xef\xbb\xbfa \n#b\n\nc\\ \\  \r\nd\r\n\xc3\xa9\ne\0f\n"

    assert lines_of(data) == ("a", "c\\ \\ ", "d", "\xc3\xa9", "e")
