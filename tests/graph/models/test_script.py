"""A script with a mistake is refused in one line that says where the mistake is."""

from pathlib import Path
from typing import Any

import pytest

from daruma.graph.models import read_script
from daruma.graph.models._faults import ScriptInvalid
from daruma.graph.models._scripted import parse_script


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ([{"says": "hi"}], 's: main[0]: unknown field "says"; the nearest known one is "say"'),
        (
            [{"say": "", "jsn": 1}],
            's: main[0]: unknown field "jsn"; the nearest known one is "json"',
        ),
        (
            {"plan": [{"say": "ok"}, {"calls": [{"name": "x", "arg": {}}]}]},
            's: plan[1].calls[0]: unknown field "arg"; the nearest known one is "args"',
        ),
        (
            [{"say": "x", "usage": {"input": 1, "output": 1, "inptu": 1}}],
            's: main[0].usage: unknown field "inptu"; the nearest known one is "input"',
        ),
        ([{}], "s: main[0]: a turn needs one of say, json, calls or raise"),
        ([{"expect": ["x"]}], "s: main[0]: a turn needs one of say, json, calls or raise"),
        ([{"say": "x", "json": {}}], "s: main[0]: say, json and raise exclude each other"),
        ([{"raise": "x", "calls": [{"name": "y"}]}], "s: main[0]: say, json and raise exclude"),
        ([{"say": 5}], "s: main[0].say: Input should be a valid string"),
        ([{"calls": [{"name": "x", "args": 5}]}], "s: main[0].calls[0].args: Input should be"),
        ([{"calls": [{}]}], "s: main[0].calls[0].name: Field required"),
        ({"main": {"say": "x"}}, "s: main: Input should be a valid tuple"),
        ("say hi", "s: script: Input should be a valid dictionary"),
        (None, "s: script: Input should be a valid dictionary"),
    ],
)
def test_a_mistake_is_named_with_its_place(data: Any, complaint: str) -> None:
    """Unknown fields come with the nearest known one, everything else with what was expected."""
    with pytest.raises(ScriptInvalid) as caught:
        parse_script(data, source="s")

    assert str(caught.value).startswith(complaint)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("absent.yaml", None, "cannot read the script {}: No such file or directory"),
        ("broken.yaml", b"main: [", "the script {} is neither YAML nor JSON: while parsing"),
        ("broken.json", b"{", "the script {} is neither YAML nor JSON: Expecting property name"),
        ("latin.yaml", b"- say: \xe9", "the script {} is neither YAML nor JSON: "),
        ("code.yaml", b"!!python/object/apply:os.getcwd []", "the script {} is neither YAML nor"),
    ],
)
def test_an_unreadable_file_is_one_line(
    tmp_path: Path, name: str, content: bytes | None, complaint: str
) -> None:
    """Whatever is wrong with the file; and no YAML tag makes an object."""
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(ScriptInvalid) as caught:
        read_script(path)

    assert str(caught.value).startswith(complaint.format(path))
    assert "\n" not in str(caught.value)


def test_a_blank_answer_and_a_null_are_answers() -> None:
    """Blank answers are among what graphs must be tested with, so they are no mistake."""
    blank, null = parse_script([{"say": ""}, {"json": None}], source="s")["main"]

    assert (blank.text, null.text) == ("", "null")
