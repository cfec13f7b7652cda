"""SE-07: what comes from a workspace, a model or a server is read in linear time, or bounded.

Each reader is given texts that take minutes or hours where it goes back over what it has read, and
milliseconds where it does not. So a hang is the failure; nothing is measured.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from daruma.graph.models._faults import read_failure
from daruma.state.plan import PlanRefused, plan_in
from daruma.state.settings import Settings, SettingsError
from daruma.state.text import fold_spellings, reveal_invisible, warnings, without_ids, without_names
from daruma.tools.calls._answer_text import read_written_calls
from daruma.tools.calls._json_reader import Unreadable, read_value
from daruma.tools.calls._repair import check_prose
from daruma.tools.checks import commands_for, plugins_to_load
from daruma.tools.commands._command import last_lines
from daruma.tools.continuity._continuation import strip_courtesy
from daruma.tools.evolution._reflector import telling_line
from daruma.tools.model_requests import estimate
from daruma.tools.reports import about_tests, collected_tests, findings
from daruma.tools.skills import SkillRefused, read_description
from daruma.tools.snapshots._ignore import Patterns, lines_of
from daruma.tools.team import TemplateRefused
from daruma.tools.team._experts import read_template
from daruma.tools.text import split_words

DEEP = "/".join(["aaaa"] * 800)
NAME = "a" * 255

IGNORED = [
    "/**/*a*/**/*a*/**/*a*/**/*a*/**/b",
    "[" * 100_000,
    "*a" * 100 + "b",
    "**/a" * 100 + "b",
    "*?" * 100 + "b",
    "[[:" * 1_300,
    "*[a-z]" * 600,
    "**/" * 1_300 + "b",
    "\\" * 100_001,
]


@pytest.mark.parametrize("line", IGNORED, ids=lambda line: line[:12])
def test_a_line_of_an_ignore_file_holds_up_nothing(line: str) -> None:
    """The first one hung a run for ever."""
    patterns = Patterns(lines_of(line.encode() + b"\n") * 2)

    for path in (DEEP, NAME, f"{DEEP}/{NAME}"):
        assert patterns.verdict(path, directory=False) is None
        assert patterns.verdict(path, directory=True) is None


@pytest.mark.long
def test_very_many_lines_of_an_ignore_file_hold_up_nothing() -> None:
    """What is beyond the limit fits nothing, and its kind is no name."""
    patterns = Patterns([f"*-{number}-*b" for number in range(100_000)])

    assert patterns.verdict("x-1-xb", directory=False) is True
    assert patterns.verdict("x-99999-xb", directory=False) is None


MANY = {
    "endings": [f"*.{number}" for number in range(150_000)],
    "taken back": [f"{'!' * (number % 2)}*-{number}-*b" for number in range(100_000)],
    "names taken back": [f"{'!' * (number % 2)}n{number}" for number in range(100_000)],
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("lines", MANY.values(), ids=MANY)
def test_lines_of_an_ignore_file_are_not_tried_one_by_one(lines: list[str]) -> None:
    """Also where each takes back what the one before it says."""
    patterns = Patterns(lines)

    assert not any(patterns.verdict(f"x{name}", directory=False) for name in range(5_000))


def plan(text: str) -> None:
    """Read a plan from a model's answer."""
    for answer in (text, f'{{"phases": [{text}}}'):
        with suppress(PlanRefused):
            plan_in(answer, plan_id="p", goal="g")


def value(text: str) -> None:
    """Read arguments that are no JSON."""
    for raw in (text, f'{{"a": {text}', f"[{text}"):
        with suppress(Unreadable):
            read_value(raw, 0)


def calls(text: str) -> None:
    """Look for calls in an answer."""
    for answer in (text, f"```json\n{text}```", f"```\n{text}x", f"<tool_call>{text}"):
        read_written_calls(answer, {"a"})


def prose(text: str) -> None:
    """Look at what stands around arguments."""
    with suppress(Unreadable):
        check_prose(text[:2_000], f"{text[:1_999]}\0", frozenset())


def skill(text: str) -> None:
    """Read a skill's head."""
    with suppress(SkillRefused):
        read_description(f"---\nname: {text[:3_000]}\n---\n{text}", "a")


_MERGES = "\n".join(f"k{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}" for n in range(1, 40))
_BOMBS = {"merges": f"k0: &a0 {{x: 1}}\n{_MERGES}", "brackets": "x: " + "[" * 5_000}


@pytest.mark.parametrize("text", _BOMBS.values(), ids=_BOMBS)
def test_yaml_that_doubles_with_each_line_is_refused(text: str, tmp_path: Path) -> None:
    """A merge of two merges of two merges: 40 lines would fill the memory."""
    (tmp_path / "team.yaml").write_text(text)

    with pytest.raises(SkillRefused, match="too deep"):
        read_description(f"---\n{text}\n---\ntext", "a")
    with pytest.raises(TemplateRefused, match="too deep"):
        read_template(tmp_path / "team.yaml")
    with pytest.raises(SettingsError, match="too deep"):
        Settings.load(str(tmp_path / "team.yaml"))


MANIFESTS = [
    ("pyproject.toml", "\n" * 200_000),
    ("CMakeLists.txt", "\n" * 200_000),
    ("Makefile", "test " * 50_000),
    ("Makefile", "test:" + "a" * 200_000),
    ("Makefile", "test:\n\t" + "`" * 200_000),
    ("Rakefile", "task " * 50_000),
]


@pytest.mark.parametrize(("name", "text"), MANIFESTS, ids=lambda each: each[:12])
def test_no_manifest_holds_up_whoever_looks_for_checks(name: str, text: str) -> None:
    """Blank lines, or a rule with many targets, were read again from each place in them."""
    assert set(commands_for({"Gemfile": "", name: text})) <= {"pytest -x -q", "make test"}
    assert about_tests("tox.ini", text) == ""


def test_no_manifest_holds_up_whoever_looks_for_plugins() -> None:
    """What stands behind the first ``addopts`` of a line is read once."""
    known = [("xdist", "pytest-xdist")]

    assert plugins_to_load(known, "addopts " * 30_000) == ()
    assert plugins_to_load(known, f"\n{'addopts ' * 30_000} -n") == ("xdist",)


def page(text: str) -> None:
    """Read a proxy's page."""
    for body in (f"<{text}", f"[{text}"):
        read_failure(502, {}, body, now=0.0)


READERS: dict[str, Callable[[str], Any]] = {
    "plan": plan,
    "arguments": value,
    "calls in text": calls,
    "prose": prose,
    "skill": skill,
    "page of a provider": page,
    "folded": fold_spellings,
    "revealed": reveal_invisible,
    "warnings": warnings,
    "ids": without_ids,
    "names": lambda text: without_names(text, {"a"}),
    "last lines": lambda text: last_lines(text[:8_192].encode(), whole=True),
    "reply": strip_courtesy,
    "check's output": telling_line,
    "findings": findings,
    "list of tests": collected_tests,
    "words": split_words,
    "tokens": estimate,
}

UNITS = ["a-", "_", "-", ".", " ", "\x0b", "\n", " ,", ";", "[", "{", '{"a":', "[1,", '"', "'",
         "\\", "```\n", "``` ", "<tool_call>{", "<script ", "<title>", "<!--", "a.", "a/", "=",
         "\x1b]", "\u200d", "Error ", "é"]  # fmt: skip


@pytest.mark.sampled(4)
@pytest.mark.parametrize("reader", READERS)
def test_no_text_holds_up_a_reader(reader: str) -> None:
    """One unit over and over, ended and not."""
    for unit in UNITS:
        text = (unit * 30_000)[:30_000]
        READERS[reader](text)
        READERS[reader](f"{text}\0!")
