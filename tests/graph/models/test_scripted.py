"""The scripted model gives the turn asked for, and refuses what the script does not foresee."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool

from daruma.graph.models.faults import ScriptExhausted, ScriptMismatch
from daruma.graph.models.scripted import ScriptedChatModel


def at(role: str, number: int) -> RunnableConfig:
    return {"metadata": {"daruma_role": role, "daruma_call": number}}


def scripted(*turns: dict[str, Any]) -> ScriptedChatModel:
    return ScriptedChatModel(script=list(turns))


def test_a_json_turn_answers_with_its_text() -> None:
    """Structured answers need no quoting inside YAML."""
    answer = scripted({"json": {"phases": ["plan é"]}}).invoke("hello")

    assert answer.content == '{"phases": ["plan é"]}'


def test_tokens_are_estimated_when_the_turn_counts_none() -> None:
    """Four characters a token, rounded up, the same every time."""
    answer = scripted({"say": "twelve chars"}).invoke("five!")

    assert answer.usage_metadata == {"input_tokens": 2, "output_tokens": 3, "total_tokens": 5}


async def test_the_position_is_the_callers_so_a_new_process_goes_on() -> None:
    """After kill -9 another object, which has counted nothing, is asked for the third turn."""
    script = {"main": [{"say": "0"}, {"say": "1"}, {"say": "2"}], "plan": [{"say": "p"}]}
    first, second = ScriptedChatModel(script=script), ScriptedChatModel(script=script)

    said = [
        (await first.ainvoke("hello", at("main", 0))).content,
        (await first.ainvoke("hello", at("main", 1))).content,
        (await first.ainvoke("hello", at("main", 1))).content,
        (await second.ainvoke("hello", at("main", 2))).content,
        (await second.ainvoke("hello", at("plan", 0))).content,
    ]

    assert said == ["0", "1", "1", "2", "p"]


def test_without_a_position_each_role_is_counted() -> None:
    """The plain use in a user's tests: call it, and the next turn comes."""
    model = ScriptedChatModel(script={"main": [{"say": "0"}, {"say": "1"}], "plan": [{"say": "p"}]})

    said = [
        model.invoke("hello").content,
        model.invoke("hello", {"metadata": {"daruma_role": "plan"}}).content,
        model.invoke("hello", {"metadata": {"daruma_role": "main"}}).content,
    ]

    assert said == ["0", "p", "1"]


def test_concurrent_calls_get_a_turn_each() -> None:
    """Counting loses and repeats nothing when threads share the model."""
    model = scripted(*({"say": str(number)} for number in range(200)))

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: int(str(model.invoke("hello").content)), range(200)))

    assert sorted(answers) == list(range(200))


def test_a_request_without_the_expected_text_is_refused() -> None:
    """The error names what was missing and shows how the request ended, in one line."""
    model = scripted({"expect": ["hello", "failing test", "calc.py"], "say": "ok"})

    with pytest.raises(ScriptMismatch) as caught:
        model.invoke("hello")

    assert str(caught.value) == (
        "scripted: main[0] expects in the request: 'failing test', 'calc.py';"
        " the request ends: 'Human: hello'"
    )


def test_expected_text_may_stand_in_any_message() -> None:
    """Tool results and the arguments of earlier calls are part of the request."""
    earlier = [{"name": "view", "args": {"path": "calc.py"}, "id": "c"}]
    model = scripted({"expect": ["3 failed", "calc.py", "system rules"], "say": "ok"})

    answer = model.invoke(
        [
            ("system", "system rules"),
            AIMessage("", tool_calls=earlier),
            ToolMessage("3 failed", tool_call_id="c"),
        ]
    )

    assert answer.content == "ok"


@tool
def a_tool(path: str) -> str:
    """View a file."""
    return path


def a_function(path: str) -> str:
    """View a file."""
    return path


A_DICTIONARY = {"type": "function", "function": {"name": "a_dictionary", "parameters": {}}}


def test_tools_of_every_kind_can_be_offered_and_expected() -> None:
    """LangChain tools, plain functions and OpenAI's dictionaries have names to expect."""
    turn = {"expect_tools": ["a_tool", "a_function", "a_dictionary"], "say": "ok"}

    answer = scripted(turn).bind_tools([a_tool, a_function, A_DICTIONARY]).invoke("hello")

    assert answer.content == "ok"


@pytest.mark.parametrize(
    ("expected", "offered", "complaint"),
    [
        (["a_tool", "edit"], [a_tool], "expects the tools edit; offered: a_tool"),
        (["edit"], [], "expects the tools edit; offered: none"),
        ([], [a_tool, a_function], "expects no tools; offered: a_tool, a_function"),
    ],
)
def test_wrong_tools_are_refused(expected: list[str], offered: list[Any], complaint: str) -> None:
    """MO-01: that a mode offers no tools can be claimed too, by expecting an empty list."""
    model = scripted({"expect_tools": expected, "say": "ok"}).bind_tools(offered)

    with pytest.raises(ScriptMismatch, match=complaint):
        model.invoke("hello")


def test_a_script_that_runs_out_says_for_whom_and_after_what() -> None:
    """The end of a long request is enough to see what was going on."""
    model = ScriptedChatModel(script={"main": [{"say": "0"}], "plan": []})

    with pytest.raises(ScriptExhausted) as caught:
        model.invoke("x" * 1000 + " the end", at("main", 1))

    text = str(caught.value)
    assert 'role "main" has 1 turns and was asked for number 1 (from 0)' in text
    assert "roles: main, plan" in text
    assert text.endswith("xx the end'")
    assert len(text) < 600


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("s.yaml", "main:\n  - say: hi\n"),
        ("s.yml", "- say: hi\n"),
        ("s.json", json.dumps({"main": [{"say": "hi"}]})),
    ],
)
def test_scripts_are_yaml_or_json_files(tmp_path: Path, name: str, text: str) -> None:
    """FA-05: what is shipped as a scenario is a file; a bare list is role main's."""
    (tmp_path / name).write_text(text)

    assert ScriptedChatModel.from_file(tmp_path / name).invoke("hello").content == "hi"
