"""``daruma settings``, as people and programs see it."""

import json
from pathlib import Path
from typing import Any

import pytest

from daruma.graph.command_line import main


def said(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    with pytest.raises(SystemExit) as end:
        main(["settings", *arguments])
    told = capsys.readouterr()
    assert end.value.code == code, told.err
    return told.out + told.err


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")


def test_all_settings_are_listed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each with what it is, its type and its default, on a terminal of 80 columns too."""
    monkeypatch.setenv("COLUMNS", "80")

    shown = said(capsys)

    assert "llm.requests.per_model" in shown
    assert "fallback_chain.recovery.execute_above" in shown
    assert "Model calls of a phase" in shown
    assert "default 50)" in shown


def test_one_key_is_told_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    """Range and default too; a section shows its own keys alone."""
    one = said(capsys, "llm.requests.per_model")
    section = said(capsys, "budgets")

    assert one.splitlines()[3] == "range:      ≥ 1, ≤ 3"
    assert "budgets.think" in section
    assert "llm.model" not in section


def test_an_unknown_key_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    """It names the nearest known one."""
    assert "did you mean 'budgets.think'?" in said(capsys, "budgets.thnk", code=2)


def test_json_is_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    """For editors; with a key it is what the table says."""
    schema = json.loads(said(capsys, "--json"))
    (one,) = json.loads(said(capsys, "budgets.think", "--json"))

    assert schema["properties"]["budgets"]
    assert (one["default"], one["variable"]) == ("50", "DARUMA_BUDGETS__THINK")


def test_what_is_in_force_hides_keys(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In addresses, and after the words that programs have for them."""
    server: Any = {"a": {"command": ["serve", "--token", "hush-hush", "--password=psst-psst"]}}
    monkeypatch.setenv("DARUMA_TOOLS__MCP_SERVERS", json.dumps(server))
    monkeypatch.setenv("DARUMA_LLM__MODEL", "http://me:my-own-key@host/x")

    shown = said(capsys, "--effective")

    assert "DARUMA_LLM__MODEL" in shown
    assert [word for word in ("hush-hush", "psst-psst", "my-own-key") if word in shown] == []


@pytest.mark.parametrize(
    "command",
    [
        ["env", "SERVICE_KEY=hush-hush", "serve"],
        ["serve", "--header", "Authorization: Bearer hush-hush"],
        ["serve", "--secret", 'a "hush-hush", it is'],
        ["serve", "--password=my hush-hush"],
        ["sh", "-c", "serve --token hush-hush --port 3"],
    ],
)
def test_a_secret_is_hidden_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    """Of several words too, and whatever quotes are in it."""
    monkeypatch.setenv("DARUMA_TOOLS__MCP_SERVERS", json.dumps({"a": {"command": command}}))

    shown = said(capsys, "tools.mcp_servers", "--effective")
    told = said(capsys, "tools.mcp_servers", "--effective", "--json")

    assert "[key]" in shown
    assert "hush-hush" not in shown + told
