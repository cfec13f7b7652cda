"""Which arguments fit a pattern for sure, and which may."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daruma.tools.calls.policy.policy import NONE, UNTOLD, argument, may_fit, surely_fits


@pytest.mark.parametrize(
    ("glob", "value"),
    [
        ("secrets/**", "secrets/a"),
        ("secrets/**", "./secrets//a/b"),
        ("secrets/**", "src/../secrets/a"),
        ("secrets/**", "SECRETS/a"),
        ("secrets/**", "secrets"),
        ("./secrets//**", "secrets/a"),
        ("secrets/**", "/home/me/project/secrets/a"),
        ("secrets/**", "../project/secrets/a"),
        ("secrets/**", "~/project/secrets/a"),
        ("secrets/**", ["src/a", "secrets/a"]),
        ("secrets/**", {"secrets/a": 1}),
        ("*.env", "deep/down/.env"),
        (".env", "deep/.env"),
        ("src/*.py", "src/a.py"),
        ("src/*.py", "src/deep/a.py"),
        ("secrets/**", "secrets/../src/a"),
        ("*", 5),
        ("1*", 100),
        ("true", True),
        ("null", None),
        ("[[]]", []),
        ("caf\u00e9", "CAFE\u0301"),
    ],
)
def test_what_may_be_meant_may_fit(glob: str, value: Any) -> None:
    """As text or as a path; one that is absolute or leads out may lead back in."""
    assert may_fit(value, glob)


@pytest.mark.parametrize(
    ("glob", "value"),
    [
        ("secrets/**", "src/a"),
        ("secrets/**", "src/secrets/a"),
        ("secrets/**", "secretsX"),
        ("1*", 2),
        ("x", []),
    ],
)
def test_what_is_something_else_does_not_fit(glob: str, value: Any) -> None:
    """A denial of one folder does not forbid the others."""
    assert not may_fit(value, glob)


@pytest.mark.parametrize(
    ("name", "glob", "value", "fits"),
    [
        ("path", "src/**", "src/a.py", True),
        ("path", "src/**", "./src//b/../a.py", True),
        ("path", "src/**", "src/../secrets/a", False),
        ("path", "src/**", "src", False),
        ("path", "src/**", "../src/a", False),
        ("path", "src/**", "/src/a", False),
        ("path", "**", "../x", False),
        ("path", "*", "/etc/passwd", False),
        ("path", "*.md", "a/../../x.md", False),
        ("path", "~/**", "~/x", False),
        ("path", "*.md", "docs/x.md", True),
        ("path", "/data/**", "/data/x", True),
        ("path", "/data/**", "/data/../etc/x", False),
        ("path", "/data/**", "data/x", False),
        ("paths", "tmp/**", ["tmp/a", "tmp/b"], True),
        ("paths", "tmp/**", ["tmp/a", "src/b"], False),
        ("paths", "SRC/**", "src/a", False),
        ("amount", "1?", 10, True),
        ("amount", "1?", 1000, False),
        ("text", "a*", "a/../b", True),
    ],
)
def test_only_what_stays_inside_fits_surely(name: str, glob: str, value: Any, fits: bool) -> None:
    """All that a list holds must fit, a path without leaving the folder."""
    assert surely_fits(name, value, glob) is fits


@pytest.mark.parametrize(
    ("args", "expected"),
    [({"a": 1}, 1), ({}, "x")],
)
def test_an_argument_that_was_left_out_has_its_default(args: Any, expected: Any) -> None:
    """A rule speaks of what the tool will get."""
    schema = {"properties": {"a": {"default": "x"}, "b": {}, "c": {}}, "required": ["c"]}

    assert argument(args, schema, "a") == expected
    assert argument(args, schema, "b") is UNTOLD
    assert argument(args, schema, "c") is NONE
    assert argument(args, schema, "d") is NONE


@given(st.text("ab/.~*", max_size=12))
def test_what_surely_fits_may_fit(path: str) -> None:
    """The two answers never cross: a denial holds wherever a permission would."""
    for glob in ("a/**", "**", "*", "a/*", "/a/**", "b*"):
        if surely_fits("path", path, glob):
            assert may_fit(path, glob)
            assert ".." not in path.split("/")[:1]
