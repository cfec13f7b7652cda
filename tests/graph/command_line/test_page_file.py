"""``daruma show THREAD --html``: the page of a thread as a file."""

from contextlib import chdir
from pathlib import Path

import pytest
from tests.daruma_command import Daruma

from daruma.graph.command_line.thread_story import PageRefused, write_page


def test_a_page_is_written_and_written_again(daruma: Daruma, tmp_path: Path) -> None:
    """To THREAD.html unless named; an older page of ours is written over."""
    thread = _ran(daruma)

    first = daruma("show", thread, "--html")
    again = daruma("show", thread, "--html")
    named = daruma("show", thread, "--html", "other.html")

    assert (first.code, first.out) == (0, f"{thread}.html\n")
    assert (again.code, named.out) == (0, "other.html\n")
    assert "Say hello" in (tmp_path / f"{thread}.html").read_text()


def test_a_dash_is_standard_output(daruma: Daruma) -> None:
    """And nothing else stands there."""
    said = daruma("show", _ran(daruma), "--html", "-")

    assert said.out.startswith("<!doctype html>")
    assert said.out.endswith("</html>\n")


def test_another_file_is_not_written_over(daruma: Daruma, tmp_path: Path) -> None:
    """It stays as it is."""
    (tmp_path / "mine.html").write_text("mine")

    said = daruma("show", _ran(daruma), "--html", "mine.html")

    assert "name another file" in said.complaint
    assert (tmp_path / "mine.html").read_text() == "mine"


def test_a_thread_that_is_not_there_is_one_line(daruma: Daruma) -> None:
    """No file is made for it."""
    assert "there is no thread 'nobody'" in daruma("show", "nobody", "--html").complaint


@pytest.mark.parametrize("file", ["no/folder.html", "dangling.html"])
def test_a_page_that_can_not_be_written_is_one_line(file: str, tmp_path: Path) -> None:
    """It names the file, and says nothing of resuming what only was to be shown."""
    (tmp_path / "dangling.html").symlink_to("nowhere")

    with pytest.raises(PageRefused, match="name another file"), chdir(tmp_path):
        write_page("t", file, "page")


def test_a_long_name_of_a_thread_still_names_a_file(tmp_path: Path) -> None:
    """What a file system does not take is cut, between two characters."""
    with chdir(tmp_path):
        write_page("é" * 400, None, "page")

    (file,) = tmp_path.iterdir()
    assert file.name == f"{'é' * 100}.html"


def _ran(daruma: Daruma) -> str:
    model = daruma.script(main=[{"say": "Hello."}])
    arguments = ("--mode", "direct_chat", "--model", model, "--thread", "greeting")
    assert daruma("run", "Say hello", *arguments).code == 0
    return "greeting"
