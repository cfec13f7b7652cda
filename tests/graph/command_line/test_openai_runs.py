"""``daruma run`` with the real OpenAI client, on a real repository, judged by real pytest."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.daruma_command import Daruma, Said
from tests.openai_answers import Reply
from tests.openai_server import Answerer, openai_server

from daruma.nodes import plan, reflect

PLAN = Reply('{"phases": [{"id": "p1", "title": "Fix add()", "instructions": "Repair calc.py."}]}')
DONE = Reply("It is fixed.")
REFLECTION = Reply("I changed the wrong operator.")


@pytest.fixture
def daruma(daruma: Daruma, tmp_path: Path) -> Daruma:
    """The command, on a database of its own, with a repository whose test fails."""
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    test = "from calc import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"
    (repo / "test_calc.py").write_text(test)
    return daruma


def edit(old: str, new: str) -> Reply:
    """An answer that puts one operator in the place of another."""
    args = {"command": "str_replace", "path": "calc.py", "old_str": old, "new_str": new}
    return Reply(calls=[{"name": "str_replace_editor", "arguments": args}])


def run(daruma: Daruma, reply: Answerer | list[Reply]) -> tuple[Said, list[dict[str, Any]]]:
    """Run the task against a server and return what was said, and what the server was asked."""
    with openai_server(reply) as server:
        daruma.setenv("OPENAI_BASE_URL", server.url)
        daruma.setenv("OPENAI_API_KEY", "sk-test")
        said = daruma(
            "run", "Make the tests pass", "--workspace", "repo", "--mode", "plan_exec",
            "--model", "openai:test", "--yes", "--json",
        )  # fmt: skip
        return said, server.requests


def test_a_right_fix_completes_the_task(daruma: Daruma) -> None:
    """Plan, edit, answer: three calls, verified green."""
    said, requests = run(daruma, [PLAN, edit("a - b", "a + b"), DONE])

    assert (said.code, said.json["status"]) == (0, "completed")
    assert said.json["budgets"]["verify"] == 1
    assert len(requests) == 3


def test_a_wrong_fix_is_found_reflected_on_and_put_right(daruma: Daruma) -> None:
    """What pytest said reaches the model; the second attempt is verified green (BU-02)."""
    replies = [
        *[PLAN, edit("a - b", "a * b"), DONE, DONE],
        *[REFLECTION, edit("a * b", "a + b"), DONE],
    ]

    said, requests = run(daruma, replies)

    assert (said.code, said.json["status"]) == (0, "completed")
    assert said.json["budgets"]["verify"] == 3
    assert "assert 6 == 5" in str(requests[3]["messages"])
    assert len(requests) == 7


def stubborn() -> Callable[[dict[str, Any]], Reply]:
    """A model that changes something, says that it is done, and is never right."""
    operators = ["-", "*", "/", "%", "//", "**", "|", "&", "^"]
    edits = (edit(f"a {old} b", f"a {new} b") for old, new in pairwise(operators))

    def reply(request: dict[str, Any]) -> Reply:
        prompt = request["messages"][0]["content"]
        if prompt.startswith(plan.PROMPT):
            return PLAN
        if prompt.startswith(reflect.PROMPT):
            return REFLECTION
        return DONE if request["messages"][-1]["role"] == "tool" else next(edits)

    return reply


def test_a_model_that_never_gets_it_right_ends_within_its_budget(daruma: Daruma) -> None:
    """``gave_up_after_reflections``, exit code 1, and 11 calls: 1 plan, 8 thinks, 2 reflections.

    It is checked as often as BU-01 has it: 1 + what is put back (1) + what is reflected on (2).
    """
    said, requests = run(daruma, stubborn())

    assert (said.code, said.json["status"]) == (1, "gave_up_after_reflections")
    assert said.json["budgets"]["verify"] == 4
    assert len(requests) == sum(usage["calls"] for usage in said.json["usage"].values()) == 11


def test_a_dead_address_is_named_with_the_reason(daruma: Daruma) -> None:
    """TL-17a: one line says where and why, with what to do; there is no traceback."""
    daruma.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    daruma.setenv("OPENAI_API_KEY", "sk-test")
    said = daruma("run", "Say hi", "--model", "openai:test", "--json")

    error = said.json["error_struct"]
    assert said.code != 0
    assert error["message"] == "openai:test: no connection to 127.0.0.1:9: connection refused"
    assert "OPENAI_BASE_URL" in error["suggestions"][0]
    assert "Traceback" not in f"{said}"
