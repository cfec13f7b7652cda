"""The pages are true: their commands, pictures, links and Python work as they stand."""

import ast
import importlib
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import run
from typing import Any, get_args

import pytest
import typer
import yaml
from tests.pages import PAGES, README, ROOT, blocks, published, text_of

from daruma import ScriptedChatModel, Settings, build_graph, open_postgres
from daruma.graph.command_line._app import app
from daruma.graph.machine import mermaid
from daruma.state.events import EVENTS
from daruma.state.failure import Code
from daruma.state.task import Status

LONGEST_README = 250

COMMAND_LINE: Any = typer.main.get_command(app)

by_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def test_ci_runs_the_readme_s_commands() -> None:
    """What a newcomer is told to type is what CI types."""
    commands = [block.strip() for block in blocks("sh", README) if "-m venv" in block]
    run = (ROOT / ".ci" / "run").read_text().splitlines()

    assert len(commands) == 2
    assert [line for line in run if "-m venv" in line] == commands


def test_the_picture_is_the_table() -> None:
    """``daruma graph`` draws one picture that the pages show, ``graph.picture()`` the other."""
    graph = build_graph(ScriptedChatModel(script={}))

    assert blocks("mermaid") == [mermaid().strip() + "\n"]
    assert (ROOT / "docs" / "machine.svg").read_text(encoding="utf-8") == graph.picture().svg


def test_the_readme_is_read_in_one_go() -> None:
    """What takes longer has a page of its own."""
    assert len(text_of(README).splitlines()) <= LONGEST_README


@pytest.mark.parametrize("block", blocks("python"))
def test_the_python_is_python(block: str) -> None:
    """Every Python block can be pasted as it is: it compiles on its own."""
    compile(block, "docs", "exec")


def imported() -> list[tuple[str, str]]:
    """Return what the Python blocks import of Daruma: module and name."""
    nodes = [node for block in blocks("python") for node in ast.walk(ast.parse(block))]
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    found = {(node.module or "", each.name) for node in froms for each in node.names}
    return sorted(each for each in found if each[0].startswith("daruma"))


@pytest.mark.parametrize(("module", "name"), imported())
def test_what_the_python_imports_is_there(module: str, name: str) -> None:
    """Also in blocks that need more than is here to run."""
    assert hasattr(importlib.import_module(module), name)


@pytest.mark.parametrize("block", blocks("yaml"))
def test_the_settings_shown_are_settings(block: str) -> None:
    """A YAML block holds known keys only."""
    Settings.model_validate(yaml.safe_load(block))


def test_every_dependency_has_its_reason() -> None:
    """What is installed beside Daruma is named, with what it spares us."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    listed = project.split("dependencies = [", 1)[1].split("]\n", 1)[0]
    names = re.findall(r'^\s+"([a-z0-9-]+)', listed, re.MULTILINE)
    reasons = text_of(ROOT / "docs" / "decisions.md")

    assert [name for name in names if name not in reasons] == []


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("events", list(EVENTS)),
        ("errors", [*get_args(Code), *get_args(Status)]),
        ("cli", [*COMMAND_LINE.commands]),
    ],
)
def test_a_reference_names_all_there_are(page: str, names: list[str]) -> None:
    """What is new is not left out."""
    shown = text_of(ROOT / "docs" / "reference" / f"{page}.md")

    assert [name for name in names if not re.search(rf"`{name}[ `]", shown)] == []


# --- Links and commands.


def prose(page: Path) -> str:
    """Return a page without its blocks of code."""
    return re.sub(r"```.*?```", "", text_of(page), flags=re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as forges make them."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


def links(page: Path) -> list[tuple[Path, str]]:
    """Return where the links of a page lead, of those that stay in the repository."""
    found = re.findall(r"\]\(([^)\s]+)\)", prose(page))
    inner = [each.partition("#") for each in found if "://" not in each]
    return [((page.parent / path).resolve() if path else page, to) for path, _, to in inner]


@by_page
def test_every_link_leads_somewhere(page: Path) -> None:
    """The file is there, and so is the heading."""
    dead = [
        f"{target.relative_to(ROOT)}#{anchor}"
        for target, anchor in links(page)
        if not target.exists() or (anchor and anchor not in anchors(target))
    ]

    assert dead == []


def test_every_page_is_reached_from_the_readme() -> None:
    """By links alone, however many."""
    reached, ahead = set[Path](), [README]
    while ahead:
        page = ahead.pop()
        reached.add(page)
        ahead += [to for to, _ in links(page) if to in PAGES and to not in reached]

    assert reached == set(PAGES)


COMMANDS = sorted(set(re.findall(r"python -m (tests(?:\.\w+)+)", published())))


@pytest.mark.parametrize("module", COMMANDS)
def test_every_command_that_is_named_is_there(module: str) -> None:
    """A measurement can be made anew."""
    path = ROOT / Path(*module.split("."))

    assert path.with_suffix(".py").exists() or (path / "__main__.py").exists()


@pytest.mark.parametrize("path", sorted(set(re.findall(r"pytest (tests/[\w/.]+)", published()))))
def test_every_test_that_is_named_is_there(path: str) -> None:
    """Where a table comes from can be run."""
    assert (ROOT / path).exists()


TESTS = sorted(
    {
        command
        for page in PAGES
        for command in re.findall(r"`(?:python -m )?(pytest [^`]+)`", text_of(page))
        if "tests/" in command
    }
)


@pytest.mark.long
@pytest.mark.parametrize("command", TESTS)
def test_what_tests_are_to_be_typed_are_there(command: str) -> None:
    """A table is made anew by tests that its command chooses."""
    asked = [sys.executable, "-m", *shlex.split(command), "--collect-only", "-q", "-n", "0"]

    assert run(asked, cwd=ROOT, capture_output=True, check=False).returncode == 0


# --- The examples run.

NEEDS_MORE = {"docs/guides/http.md": "tests/embedding", "docs/guides/middleware.md": "its own test"}
"""Pages whose examples tests of their own run: with a server, with an agent of LangChain's."""

OUTPUT = {
    "README.md 0": "completed Looked.\n",
    "docs/guides/approvals.md 0": "Paid.\n",
    "docs/guides/knowledge.md 0": "1 0 ()\n",
    "docs/guides/learning.md 0": (
        "failed 1\nloop_detected in main: build, 2 times with the same results: "
        "Error: ValueError: no rule for it: run configure first\n"
    ),
    "docs/guides/python.md 0": "completed Looked.\n",
    "docs/guides/python.md 1": "ready=True problems=[]\n",
    "docs/guides/subgraph.md 0": "Ann: completed\n",
    "docs/guides/testing.md 2": "Done.\n",
    "docs/guides/workers.md 0": "completed\n",
}
"""What some of them print, to the letter."""

SCRIPT = """\
plan: [{json: {phases: [{title: Look}]}}]
main:
  - calls: [{name: str_replace_editor, args: {command: create, path: notes.md, file_text: Seen.}}]
  - say: Looked.
structure: [{json: {ready: true, problems: []}}]
"""


def examples() -> Iterator[Any]:
    """Yield the Python blocks, each with its page and its number there."""
    for page in PAGES:
        name = str(page.relative_to(ROOT))
        if name not in NEEDS_MORE:
            for number, block in enumerate(blocks("python", page)):
                yield pytest.param(f"{name} {number}", block, id=f"{name} {number}")


def create_todo(title: str, todo_date: str = "") -> str:
    """Note what is to be done."""
    return f"{title} {todo_date}"


@pytest.mark.parametrize(("name", "block"), list(examples()))
def test_the_example_runs(
    name: str,
    block: str,
    tmp_path: Path,
    postgres_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As pasted, but for the model's name and the path of the repository (FA-08).

    Some go on with a graph that two tasks were done with: the second had a phase ``p1``.
    """
    script = tmp_path / "script.yaml"
    script.write_text(SCRIPT)
    monkeypatch.setenv("DARUMA_POSTGRES_URL", postgres_url)
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "docs").mkdir()
    monkeypatch.chdir(repo)
    example = block.replace("openai:NAME", f"scripted:{script}").replace("path/to/repo", str(repo))
    thread: Any = {"configurable": {"thread_id": "t1"}}
    request: Any = {"messages": [("user", "Look around")], "workspace": str(repo)}
    with open_postgres() as pg:
        given = {"thread": thread, "config": thread, "request": request, "create_todo": create_todo}
        if re.search(r"^(?!.*\bgraph = ).*\bgraph\.", block, re.DOTALL):
            model = ScriptedChatModel(
                script={key: each * 2 for key, each in yaml.safe_load(SCRIPT).items()}
            )
            graph = build_graph(model, settings={"spec_review": {"enabled": False}}, persistence=pg)
            graph.invoke({**request, "mode": "react"}, thread)
            graph.invoke({**request, "mode": "plan_exec"}, thread)
            given["graph"] = graph

        exec(example, given)  # noqa: S102  # it is our own page

    printed = capsys.readouterr().out
    assert printed == OUTPUT.get(name, printed)
