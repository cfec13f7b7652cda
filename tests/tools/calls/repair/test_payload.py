"""A model may mend a call, not write one."""

import json
import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.tools.repair.corpus.calls import CALLS
from tests.tools.repair.corpus.offered import TOOLS

from daruma.tools.calls.repair._payload import LONG, keeps_payload, said_texts

RUN, EDIT, SEARCH = TOOLS["run_command"], TOOLS["str_replace_editor"], TOOLS["search"]


@pytest.mark.parametrize(
    ("raw", "args"),
    [
        ('{"command": "echo "hi" there"}', {"command": 'echo "hi" there'}),
        ('{"command": "x = "[]""}', {"command": 'x = "[]"'}),
        ('{"cmd": "ls"}', {"command": "ls"}),
        (r'{"cmd": "grep \\d"}', {"command": r"grep \d"}),
        ('{"command": "ls", "timeout": "5"}', {"command": "ls", "timeout": 5}),
        ("{command: 'ls', cwd: None}", {"command": "ls"}),
        ('"{\\"command\\": \\"ls "-a" \\"}"', {"command": 'ls "-a" '}),
        ('```json\n{"name": "run_command", "arguments": {"command": "ls"}\n```', {"command": "ls"}),
    ],
)
def test_what_was_written_is_kept(raw: str, args: dict[str, Any]) -> None:
    """TL-09: structure, names and types may be mended."""
    assert keeps_payload(raw, args, RUN)


@pytest.mark.parametrize(
    ("raw", "args"),
    [
        ('{"command": "echo "hi" there"}', {"command": "echo "}),
        ('{"command": "echo "hi" there"}', {"command": "echo 'hi' there"}),
        ('{"command": "x = "[]""}', {"command": "x = "}),
        ('{"command": "ls", "timeout": "5s"}', {"command": "ls"}),
        ('{"command": "ls", "timeout": "15"}', {"command": "ls", "timeout": 5}),
        ('{"command": "ls"}', {"command": "ls", "cwd": "src"}),
        ('{"command": "ls"}', {"command": "ls", "timeout": 3}),
        ('{"command": "ls", "cwd": "src"}', {"command": "ls"}),
        ('{"command": "ls -a"}', {"command": "ls"}),
        (r'{"cmd": "grep \\d"}', {"command": r"grep \\d"}),
        (r'{"command": "dir C:\\"', {"command": "dir C:"}),
        ('{"command": "foo: "bar""}', {"command": "bar"}),
        ('{"command": "a", "command": "b"}', {"command": "b"}),
        ('{"command": "a", "cwd": "b"}', {"command": "b", "cwd": "a"}),
    ],
)
def test_what_was_not_written_is_refused(raw: str, args: dict[str, Any]) -> None:
    """TL-09: nothing is added, shortened, swapped or left out for a tool that changes something."""
    assert not keeps_payload(raw, args, RUN)


@pytest.mark.parametrize(
    ("args", "kept"),
    [
        ({"old_str": "x", "new_str": "y"}, True),
        ({"old_str": "y", "new_str": "x"}, False),
        ({"new_str": "x", "old_str": "y"}, False),
        ({"old_str": "x", "new_str": ""}, False),
    ],
)
def test_each_text_stays_under_its_key(args: dict[str, Any], kept: bool) -> None:
    """A swap of two texts would undo the edit that was meant."""
    raw = '{"command": "STR-REPLACE" "path": "a", "old_str": "x", "new_str": "y"}'
    raw = raw.replace("STR-REPLACE", "Str_Replace")

    assert keeps_payload(raw, {"command": "str_replace", "path": "a", **args}, EDIT) is kept


def test_a_fixed_value_may_stand_in_another_case() -> None:
    """Proper JSON is held to its texts, but not to the case of what the schema fixes."""
    raw = '{"command": "Create", "path": "A"}'

    assert keeps_payload(raw, {"command": "create", "path": "A"}, EDIT)
    assert not keeps_payload(raw, {"command": "create", "path": "a"}, EDIT)


def test_a_tool_without_effects_is_held_to_its_long_texts() -> None:
    """A short pattern may be mended; a long one was meant as it stands."""
    long = "x" * LONG

    assert keeps_payload('{"pattern": "a"', {"pattern": "b"}, SEARCH)
    assert keeps_payload(f"pattern={long}", {"pattern": long}, SEARCH)
    assert not keeps_payload('{"pattern": "a"', {"pattern": long}, SEARCH)


@pytest.mark.parametrize(("name", "args"), CALLS)
def test_a_call_keeps_itself(name: str, args: dict[str, Any]) -> None:
    """Every call of the corpus stands in its own text, however that is escaped."""
    for text in (
        json.dumps(args),
        json.dumps(args, ensure_ascii=False),
        json.dumps(json.dumps(args)),
    ):
        assert keeps_payload(text, args, TOOLS[name])


@given(
    command=st.text(alphabet="ab \"'\\{}[],:\n=", max_size=12),
    other=st.text(alphabet="ab \"'\\{}[],:\n=", max_size=12),
)
@example(command="''", other="")
@example(command='""', other="")
@example(command='"', other='\\"')
@example(command="a\\", other="a")
def test_another_command_is_never_kept(command: str, other: str) -> None:
    """Proper JSON of one command holds no other one."""
    raw = json.dumps({"command": command})

    assert command == other or not keeps_payload(raw, {"command": other}, RUN)


def test_large_texts_take_no_time() -> None:
    """16 KB of quotes are nothing."""
    started = time.process_time()

    keeps_payload('"' * 16_000, {"command": '"'}, RUN)
    keeps_payload("a" * 16_000, {"command": "a"}, RUN)
    keeps_payload('\\"=' * 5_000, {"command": "a"}, RUN)

    assert time.process_time() - started < 2


# --- The texts of proper JSON are known.


@given(st.lists(st.text()))
def test_proper_json_says_its_texts(texts: list[str]) -> None:
    """Decoded, wherever they stand; keys are none."""
    said = {"key": [*texts, 1, None], "other": {"deeper": texts}}

    assert said_texts(json.dumps(said)) == frozenset(texts)
    assert said_texts(json.dumps(json.dumps(said))) == frozenset(texts)


@pytest.mark.parametrize(
    "raw", ["", "{'a': 'b'}", '{"a": "b"', '"{\\"a\\": b}"', '"plain"', "[" * 100_000]
)
def test_broken_json_says_nothing_for_certain(raw: str) -> None:
    """Neither does text that is no JSON when it is unquoted, nor what is nested without end."""
    assert said_texts(raw) is None
