"""Calls that a model writes into its text are calls; what it writes about them is not."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tools.repair.corpus.calls import CALLS
from tests.tools.repair.corpus.offered import TOOLS

from daruma.tools.calls.parse import written_calls
from daruma.tools.calls.repair.by_rules import repaired_text
from daruma.tools.calls.repair.json_reader import Refused, Repaired

VISIBLE = frozenset(TOOLS)
CALL = '{"name": "search", "arguments": {"pattern": "a"}}'
TAGGED = f"<tool_call>\n{CALL}\n</tool_call>"
NESTED = {
    "type": "function",
    "id": "1",
    "function": {"name": "search", "arguments": '{"pattern": "a"}'},
}


@pytest.mark.parametrize(
    "text",
    [
        CALL,
        f"  {CALL}\n",
        f"```json\n{CALL}\n```",
        f"```\n{CALL}\n```",
        f"```tool_call\n{CALL}\n```",
        f"[{CALL}]",
        f'{{"tool_calls": [{CALL}]}}',
        json.dumps(NESTED),
        json.dumps({"tool_calls": [NESTED]}),
        '{"tool": "search", "args": {"pattern": "a"}}',
        '{"tool_name": "search", "parameters": {"pattern": "a"}, "id": "1"}',
        '{"type": "function", "function": "search", "tool_input": {"pattern": "a"}}',
        '{"name": "search", "input": "{\\"pattern\\": \\"a\\"}"}',
        TAGGED,
        f"I will look.\n\n{TAGGED}",
        f"<tool_call>{CALL}",
        f"{TAGGED}\nThat should do.",
        f"I will look.\n```tool_call\n{CALL}\n```\nThat should do.",
        f"I will look.\n\n```json\n{CALL}\n```",
    ],
)
def test_a_written_call_is_a_call(text: str) -> None:
    """TL-18: bare, fenced, in a list, in tags, in every common spelling."""
    (call,) = written_calls(text, VISIBLE)

    assert (call.name, call.args) == ("search", {"pattern": "a"})


@pytest.mark.parametrize(
    "text",
    [
        f"[{CALL}, {CALL}]",
        f"{CALL}\n{CALL}",
        f"{TAGGED}\n{TAGGED}",
        f"<tool_call>\n{CALL}\n{CALL}\n</tool_call>",
        f"```tool_call\n{CALL}\n```\n```tool_call\n{CALL}\n```",
    ],
)
def test_several_calls_keep_their_order(text: str) -> None:
    """TL-18: as many as were written."""
    assert [call.name for call in written_calls(text, VISIBLE)] == ["search", "search"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Done.",
        "{}",
        "[]",
        "[1, 2]",
        '{"name": "Bob", "age": 3}',
        '{"name": "Bob", "input": "hello there"}',
        '{"name": "Bob Smith", "parameters": {}}',
        '{"name": "search", "arguments": {}, "why": "to see"}',
        '{"name": "search"}',
        f"[{CALL}, 1]",
        f'{CALL}\n{{"a": 1}}',
        f"{CALL} is how it is called.",
        f"Call it so: {CALL}",
        f"For example:\n```json\n{CALL}\n```",
        f"```json\n{CALL}\n```\nwould look for a.",
        f"First:\n```json\n{CALL}\n```\nthen:\n```json\n{CALL}\n```",
        f"Like this.\n```json\n{CALL.replace('search', 'serch')}\n```",
        f"```\n{TAGGED}\n```",
        f"```xml\n<a>\n{TAGGED}\n</a>\n```\nThat is the form.",
        "Wrap it in <tool_call> and </tool_call>.",
        "```python\nprint({'name': 'x', 'arguments': {}})\n```",
        "def f():\n    return {'name': 'search', 'arguments': {}}",
    ],
)
def test_an_answer_is_no_call(text: str) -> None:
    """An explanation that shows a call, and data that looks like one, are not executed."""
    assert written_calls(text, VISIBLE) == ()


def test_an_unknown_name_is_a_call_all_the_same() -> None:
    """Else the run would end with it as its answer."""
    (call,) = written_calls('{"name": "serch", "arguments": {}}', VISIBLE)

    assert call.name == "serch"


@pytest.mark.parametrize(
    ("text", "raw"),
    [
        ("{'name': 'search', 'arguments': {'pattern': 'a'}}", "{'pattern': 'a'}"),
        ('{"name": "search", "arguments": {"pattern": "a",}}', '{"pattern": "a",}'),
        ('[{"name": "search", "arguments": {"pattern": "a', '{"pattern": "a'),
        (
            '```json\n{"name": "search", "arguments": {"pattern": "say "a""}}\n```',
            '{"pattern": "say "a""}',
        ),
        (
            '<tool_call>\n{"name": "search", "arguments": {"pattern": a}}\n</tool_call>',
            '{"pattern": a}',
        ),
        ('{"name": "search", "arguments": "{pattern: 1"}', "{pattern: 1"),
    ],
)
def test_broken_arguments_are_handed_on_as_they_are(text: str, raw: str) -> None:
    """TL-18: the call is unmistakable, its arguments are for the repair rungs."""
    (call,) = written_calls(text, VISIBLE)

    assert (call.name, call.args, call.raw) == ("search", None, raw)


def test_tags_without_a_name_are_a_call_without_one() -> None:
    """The model is told, in place of its run ending silently."""
    (call,) = written_calls("<tool_call>\nsearch for a\n</tool_call>", VISIBLE)

    assert (call.name, call.args, call.raw) == ("", None, "search for a")


def test_tags_inside_of_a_payload_are_part_of_it() -> None:
    """A file that shows calls is written, and the calls in it are not run."""
    args = {"command": "create", "path": "a.md", "file_text": f"Calls:\n{TAGGED}\n"}
    text = json.dumps({"name": "str_replace_editor", "arguments": args}).replace("\\n", "\n")

    found = written_calls(f"<tool_call>\n{text}\n</tool_call>", VISIBLE)

    assert [call.name for call in found] == ["str_replace_editor"]


@pytest.mark.parametrize(
    ("words", "made"),
    [
        ("I will look.", True),
        ("I don't know the file yet. Let me search for it:", True),
        ("Now I'm calling search", True),
        ("接下来我来搜索。", True),
        ("Do not run this:", False),
        ("I won't do it. Let me show what I won't do:", False),
        ("Done. The file config.json contains:", False),
        ("The log of the last run shows:", False),
        ("I found this in notes.md:", False),
        ("I ran this earlier:", False),
        ("Here is the answer:", False),
        ("我不会执行:", False),
    ],
)
def test_words_before_a_fence_have_to_announce_the_call(words: str, made: bool) -> None:
    """What a model quotes from a file, or refuses to do, is its answer; it did not call that."""
    assert bool(written_calls(f"{words}\n\n```json\n{CALL}\n```", ["search"])) is made


@pytest.mark.parametrize(("name", "args"), CALLS)
@pytest.mark.parametrize("form", ["{}", "```json\n{}\n```", "Now.\n<tool_call>{}</tool_call>"])
def test_every_call_arrives_whole(form: str, name: str, args: dict[str, Any]) -> None:
    """TL-18: what was meant is what is called, whatever is in it."""
    text = form.replace("{}", json.dumps({"name": name, "arguments": args}, ensure_ascii=False))

    (call,) = written_calls(text, VISIBLE)

    assert (call.name, call.args) == (name, args)


@pytest.mark.parametrize(("name", "args"), CALLS)
def test_a_call_in_python_s_spelling_is_mended(name: str, args: dict[str, Any]) -> None:
    """Written as a Python dict, it goes through the rules rung and comes out as meant."""
    (call,) = written_calls(repr({"name": name, "arguments": args}), VISIBLE)

    found = repaired_text(call.raw, TOOLS[name], max_bytes=100_000)

    assert isinstance(found, Refused) or (isinstance(found, Repaired) and found.args == args)


@given(text=st.text(alphabet='{}[]":,`<>/\n toolcaljsnmergu_', max_size=100))
def test_any_text_is_read(text: str) -> None:
    """Nothing is raised."""
    assert isinstance(written_calls(text, VISIBLE), tuple)


@pytest.mark.parametrize(
    "piece",
    [CALL, TAGGED + "\n", "\n<tool_call>{", "\n```tool_call\n", "{", "```\n", '"', "[{", " "],
)
def test_a_long_text_takes_no_time(piece: str) -> None:
    """256 KB of anything is read in a moment."""
    text = piece * (262_144 // len(piece))
    started = time.process_time()

    for each in (text, f"x{text}", f'{{"name": "a", "arguments": {text}'):
        written_calls(each, VISIBLE)

    assert time.process_time() - started < 6
