"""The lines that say what is wrong, of all that a check prints."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daruma.tools.evolution._reflector import (
    checks_in,
    make_signature,
    read_failed_check,
    telling_line,
)

PYTEST = """\
=========================== FAILURES ===========================
    def test_sum():
>       assert add(1, 2) == 4
E       assert 3 == 4

tests/test_add.py:5: AssertionError
=================== short test summary info ====================
FAILED tests/test_add.py::test_sum - assert 3 == 4
1 failed, 3 passed in 0.12s"""


@pytest.mark.parametrize(
    ("output", "line"),
    [
        (PYTEST, "test_sum: assert 3 == 4"),
        (PYTEST.replace(" - assert 3 == 4", ""), "test_sum: assert 3 == 4"),
        ("E   KeyError: 'id'\n1 failed in 2s", "KeyError: 'id'"),
        ("Traceback (most recent call last):\n  x\nValueError: bad", "ValueError: bad"),
        ("a.c:3: error: expected ';'\nmake: *** [all]", "a.c:3: error: expected ';'"),
        ("thread 'main' panicked at src/lib.rs:4", "thread 'main' panicked at src/lib.rs:4"),
        ("I001 [*] Unsorted imports\n --> a.py:1:1\n\nFound 1 error.", "I001 [*] Unsorted imports"),
        ("a.py:1:80: E501 Line too long\nFound 1 error.", "a.py:1:80: E501 Line too long"),
        ("first\nlast\n\n=====\n", "last"),
        ("", ""),
    ],
)
def test_the_telling_line_is_found(output: str, line: str) -> None:
    """A runner's own summary before an assertion, that before any talk of errors."""
    assert telling_line(output) == line


def test_a_check_is_told_in_one_line() -> None:
    """What a reader has to know to avoid it."""
    failing = read_failed_check("python -m pytest -q", "failed (exit 1)", PYTEST)

    assert failing.text == "python -m pytest -q failed: test_sum: assert 3 == 4"


def test_a_check_that_says_nothing_is_told_by_its_outcome() -> None:
    """Its exit code is all there is."""
    assert read_failed_check("true", "failed (exit 1)", "\n").text == "true: failed (exit 1)"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("assert 3 == 4", "assert 5 == 4"),
        ("/home/me/repo/a/b.py: no such file", "/srv/b.py: no such file"),
        ("took 3.2 s: timed out", "took 61 s: timed out"),
        ("object at 0x7f12ab34", "object at 0x55aa0011"),
        ("2026-01-01 10:00:00 refused", "2027-02-03 11:22:33 refused"),
    ],
)
def test_the_same_again_has_the_same_signature(one: str, other: str) -> None:
    """Numbers, times, addresses and where a workspace lies are no difference."""
    assert make_signature("check", one) == make_signature("check", other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("test_a: assert", "test_b: assert"),
        ("KeyError: 'id'", "KeyError: 'name'"),
        ("a/b", "a/c"),
        ("test_7: assert", "test_8: assert"),
        ("E501 found", "E502 found"),
    ],
)
def test_another_failure_has_another_signature(one: str, other: str) -> None:
    """Words are a difference, and so are names with a short number in them."""
    assert make_signature("check", one) != make_signature("check", other)


@given(st.text(max_size=300))
def test_any_output_can_be_read(output: str) -> None:
    """Tools print what they like."""
    failing = read_failed_check(output, output, output)

    assert failing.text.isprintable()
    assert len(failing.signature) <= 250
    assert list(checks_in(f"$ x\n[y]\n{output}"))


@pytest.mark.parametrize(
    "key", ["sk-proj-AbCd1234EfGh5678IjKl", "AKIAABCDEFGH12345678", "ghp_AbCdEfGhIj1234567890KlMn"]
)
def test_no_part_of_a_key_is_in_a_signature(key: str) -> None:
    """A key is masked as it was written: without its numbers it would pass for a word."""
    found = read_failed_check("pytest -q", "failed", f"E   AssertionError: refused {key}")

    assert found.signature == "check:pytest -q:AssertionError: refused [key]"
