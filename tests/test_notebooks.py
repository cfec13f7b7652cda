"""Every notebook runs from a clean kernel, offline, and is kept without outputs."""

from pathlib import Path

import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode, reads

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def notebook_of(path: Path) -> NotebookNode:
    """Read a notebook in the form of today."""
    text = path.read_text(encoding="utf-8")
    notebook: NotebookNode = reads(text, as_version=4)  # type: ignore[no-untyped-call]  # nbformat
    return notebook


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(
    path: Path, tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All cells run, in a folder of their own and on a database of their own."""
    monkeypatch.setenv("DARUMA_POSTGRES_URL", postgres_url)
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    client = NotebookClient(
        notebook_of(path), timeout=120, resources={"metadata": {"path": tmp_path}}
    )

    client.execute()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_clean(path: Path) -> None:
    """Outputs hold paths and times of the machine they were made on; none are kept."""
    cells = notebook_of(path).cells

    assert [cell.get("outputs", []) for cell in cells if cell.get("outputs")] == []
