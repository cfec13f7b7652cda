"""The README is true: its commands, its picture and its Python work as they stand."""

import re
from pathlib import Path

import pytest
import yaml

from daruma import Settings
from daruma.graph.machine import mermaid

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """Return the code blocks of a language, in their order."""
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_ci_runs_the_readme_s_commands() -> None:
    """What a newcomer is told to type is what CI types."""
    commands = [block.strip() for block in blocks("sh") if "-m venv" in block]
    run = (ROOT / ".ci" / "run").read_text().splitlines()

    assert len(commands) == 2
    assert [line for line in run if "-m venv" in line] == commands


def test_the_picture_is_the_table() -> None:
    """``daruma graph`` draws the picture that the README shows."""
    assert blocks("mermaid") == [mermaid().strip() + "\n"]


@pytest.mark.parametrize("block", blocks("python"))
def test_the_python_is_python(block: str) -> None:
    """Every Python block can be pasted as it is: it compiles on its own."""
    compile(block, "README.md", "exec")


def test_the_settings_shown_are_settings() -> None:
    """The YAML in the README holds known keys only."""
    (shown,) = blocks("yaml")

    Settings.model_validate(yaml.safe_load(shown))


def test_every_dependency_has_its_reason() -> None:
    """What is installed beside Daruma is named in the README, with what it spares us."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    listed = project.split("dependencies = [", 1)[1].split("]\n", 1)[0]
    names = re.findall(r'^\s+"([a-z-]+)', listed, re.MULTILINE)
    reasons = README.split("### Why these dependencies", 1)[1]

    assert [name for name in names if name not in reasons] == []


def test_the_embedding_example_runs(
    tmp_path: Path,
    postgres_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As pasted, but for the model's name and the path of the repository."""
    script = tmp_path / "script.yaml"
    script.write_text("plan: [{json: {phases: [{title: Look}]}}]\nmain: [{say: Looked.}]\n")
    example = next(block for block in blocks("python") if "open_postgres" in block)
    example = example.replace("openai:NAME", f"scripted:{script}")
    monkeypatch.setenv("DARUMA_POSTGRES_URL", postgres_url)
    monkeypatch.chdir(tmp_path)

    exec(example.replace("path/to/repo", str(tmp_path)), {})  # noqa: S102  # it is our own README

    assert capsys.readouterr().out == "completed Looked.\n"


def test_the_example_in_another_graph_runs(
    tmp_path: Path,
    postgres_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As pasted, but for the model's name and the path of the repository (FA-08)."""
    script = tmp_path / "script.yaml"
    script.write_text("plan: [{json: {phases: [{title: Look}]}}]\nmain: [{say: Looked.}]\n")
    (example,) = (block for block in blocks("python") if "StateGraph(Ticket)" in block)
    example = example.replace("openai:NAME", f"scripted:{script}")
    monkeypatch.setenv("DARUMA_POSTGRES_URL", postgres_url)
    monkeypatch.chdir(tmp_path)

    exec(example.replace("path/to/repo", str(tmp_path)), {})  # noqa: S102  # it is our own README

    assert capsys.readouterr().out == "Ann: completed\n"
