"""``daruma show THREAD --html``: the page of a thread as a file."""

from pathlib import Path

from tests.daruma_command import Daruma


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


def _ran(daruma: Daruma) -> str:
    model = daruma.script(main=[{"say": "Hello."}])
    arguments = ("--mode", "direct_chat", "--model", model, "--thread", "greeting")
    assert daruma("run", "Say hello", *arguments).code == 0
    return "greeting"
