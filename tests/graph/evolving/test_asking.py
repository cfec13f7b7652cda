"""The auxiliary model is asked only where settings allow it, and nothing depends on its answer."""

import json
import logging
from pathlib import Path

import pytest
from tests.scripted_runs import say

from daruma.graph.asker import Asker
from daruma.graph.learning import ask_with
from daruma.graph.models.by_role import Models
from daruma.graph.models.scripted import ScriptedChatModel
from daruma.state.settings import Settings
from daruma.tools.evolution.learning import nobody


def asker(auxiliary: str | None) -> Asker:
    return Asker(Models(ScriptedChatModel(script=[]), auxiliary))


def allowed(value: bool) -> Settings:
    return Settings.model_validate({"evolution": {"auxiliary": value}})


def script(folder: Path, turn: dict[str, str]) -> str:
    """The name of a model that answers so."""
    file = folder / "script.json"
    file.write_text(json.dumps({"evolution": [turn]}))
    return f"scripted:{file}"


@pytest.mark.parametrize(("auxiliary", "value"), [(None, True), ("openai:small", False)])
def test_nobody_is_asked_without_both(auxiliary: str | None, value: bool) -> None:
    """A model of its own, and settings that say so: the main model is never asked."""
    assert ask_with(asker(auxiliary), allowed(value)) is nobody


async def test_an_answer_comes_with_what_it_cost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is no task's: its tokens are logged."""
    ask = ask_with(asker(script(tmp_path, say("Use tabs."))), allowed(True))

    with caplog.at_level(logging.INFO, "daruma.evolution"):
        answer = await ask("Word it.", "It fell.")

    assert answer == "Use tabs."
    assert "tokens in" in caplog.text


async def test_a_model_that_fails_says_nothing(tmp_path: Path) -> None:
    """What is learned by rule stands without it."""
    ask = ask_with(asker(script(tmp_path, {"raise": "timeout"})), allowed(True))

    assert await ask("Word it.", "It fell.") == ""
