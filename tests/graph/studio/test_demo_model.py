"""The example that is played where there is no model."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from daruma.graph.requests import RequestRefused
from daruma.graph.scenario import HINT, ShownModel, shown


@pytest.mark.parametrize("said", ["Make the tests pass", "make the tests pass!"])
def test_the_examples_request_gets_the_examples_workspace(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a fresh copy in a temporary folder."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    given = shown({"messages": [("user", said)]})

    assert given["mode"] == "plan_exec"
    assert Path(given["workspace"], "bill", "split.py").is_file()
    assert Path(given["workspace"]).is_relative_to(tmp_path)


@pytest.mark.parametrize("messages", [[("user", "Hello")], None, [], 5])
def test_anything_else_is_a_chat(messages: Any) -> None:
    """No workspace is touched by a model that is none."""
    given = shown({"messages": messages, "workspace": "/etc", "mode": "plan_exec"})

    assert (given["mode"], given["workspace"]) == ("direct_chat", None)


def test_a_workspace_of_ones_own_is_refused(tmp_path: Path) -> None:
    """The example's edits would mean nothing there."""
    with pytest.raises(RequestRefused, match=r"set llm\.model"):
        shown({"messages": [("user", "Make the tests pass")], "workspace": str(tmp_path)})


def test_a_task_of_another_model_is_not_played_on() -> None:
    """A thread that is resumed without its model gets the hint, and no edits."""
    tools = [
        {"type": "function", "function": {"name": name, "parameters": {}}}
        for name in ("run_command", "str_replace_editor")
    ]

    answer = ShownModel().bind(tools=tools).invoke([HumanMessage("Delete it all")])

    assert (answer.text, getattr(answer, "tool_calls", [])) == (HINT, [])
