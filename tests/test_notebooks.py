"""Every notebook runs from a clean kernel, offline, shows what it says, is kept without outputs."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode, reads, validate
from tests.notebook_claims import CLAIMS

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
_ALL = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
_LOGIC = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
_LONGEST = 30

OFFLINE = """
import sys

def refuse(event, arguments):
    if event not in ("socket.connect", "socket.sendto", "socket.getaddrinfo"):
        return
    address = arguments[0] if event == "socket.getaddrinfo" else arguments[1]
    host = address[0] if isinstance(address, tuple) else address
    known = ("127.0.0.1", "::1", "localhost", "", None)
    if host in known or (event != "socket.getaddrinfo" and not isinstance(address, tuple)):
        return
    with open(FILE, "a") as attempts:
        attempts.write(f"{event} {address}\\n")
    raise OSError(f"the network is not there for a notebook: {address}")

sys.addaudithook(refuse)
"""
"""Python runs it as it starts, in the kernel and in every process that a cell starts."""


def notebook_of(path: Path) -> NotebookNode:
    """Read a notebook in the form of today."""
    text = path.read_text(encoding="utf-8")
    notebook: NotebookNode = reads(text, as_version=4)  # type: ignore[no-untyped-call]  # nbformat
    return notebook


@pytest.fixture
def attempts(tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which kernels put down what they tried to reach, which is refused."""
    file, start = tmp_path / "attempts", tmp_path / "start"
    start.mkdir()
    (start / "sitecustomize.py").write_text(OFFLINE.replace("FILE", repr(str(file))))
    monkeypatch.setenv("PYTHONPATH", str(start))
    monkeypatch.setenv("DARUMA_POSTGRES_URL", postgres_url)
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    return file


def executed(notebook: NotebookNode, folder: Path) -> str:
    """Run all cells in a kernel of their own; return what they show, in order."""
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": folder}}).execute()
    return "".join(_shown(notebook))


def _shown(notebook: NotebookNode) -> Iterator[str]:
    for output in (each for cell in notebook.cells for each in cell.get("outputs", [])):
        yield output.get("text", "")
        yield from (f"{each}\n" for each in output.get("data", {}).values())


@pytest.mark.long
@_ALL
def test_a_notebook_runs_offline_and_shows_what_it_says(
    path: Path, tmp_path: Path, attempts: Path
) -> None:
    """All cells run, in a folder and on a database of their own; claims are met in their order."""
    shown, at = executed(notebook_of(path), tmp_path), 0

    assert not attempts.exists()
    for claim in CLAIMS[path.stem]:
        found = re.search(claim, shown[at:], re.DOTALL)
        assert found, f"{claim!r} is not shown, or not there"
        at += found.end()


@pytest.mark.long
def test_a_notebook_that_reaches_out_is_found_out(tmp_path: Path, attempts: Path) -> None:
    """The guard of the test above: what a cell or its child tries is refused and put down."""
    reach = "import socket; print(socket.socket().connect_ex(('192.0.2.1', 9)))"
    tried = "try:\n    import socket; socket.create_connection(('192.0.2.1', 9))\n"
    cells = [
        f"{tried}except OSError as error:\n    print(error)",
        f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {reach!r}])",
    ]
    notebook = notebook_of(NOTEBOOKS[0])
    notebook.cells = [cell for cell in notebook.cells if cell.cell_type == "code"][:2]
    for cell, source in zip(notebook.cells, cells, strict=True):
        cell.source = source

    shown = executed(notebook, tmp_path)

    assert "the network is not there for a notebook" in shown
    assert len(attempts.read_text().splitlines()) >= 2


@_ALL
def test_a_notebook_is_kept_clean(path: Path) -> None:
    """Outputs hold paths and times of the machine they were made on; none are kept."""
    notebook = notebook_of(path)

    validate(notebook)
    assert [cell.get("outputs", []) for cell in notebook.cells if cell.get("outputs")] == []
    assert [cell for cell in notebook.cells if cell.get("execution_count")] == []
    assert [cell.id for cell in notebook.cells] == [
        f"cell-{number:02}" for number in range(len(notebook.cells))
    ]


def _is_part(node: ast.AST) -> bool:
    if isinstance(node, ast.ClassDef):
        return all(isinstance(each, ast.AnnAssign) for each in node.body)
    return isinstance(node, ast.AsyncFunctionDef) and bool(node.decorator_list)


@_ALL
def test_a_notebook_hides_no_logic(path: Path) -> None:
    """What needs a function belongs into the package; a cell is a few lines.

    The graph may be given what is made there: a class of fields, a decorated function.
    """
    sources = [cell.source for cell in notebook_of(path).cells if cell.cell_type == "code"]

    nodes = [node for source in sources for node in ast.walk(ast.parse(source))]
    assert [node for node in nodes if isinstance(node, _LOGIC) and not _is_part(node)] == []
    assert [source for source in sources if len(source.splitlines()) > _LONGEST] == []


@_ALL
def test_a_notebook_says_what_will_be_seen_and_what_to_try_next(path: Path) -> None:
    """The first cell and the last are for the reader."""
    first, *_, last = notebook_of(path).cells

    assert first.source.startswith("# ")
    assert re.search("You will see", first.source, re.IGNORECASE)
    assert last.source.startswith("## Try next")
