"""The picture as a file, and as text where there is no other way to show it."""

from pathlib import Path

from daruma.graph.timeline.machine_svg import Picture


def test_a_picture_is_kept_as_a_file(tmp_path: Path) -> None:
    """The file is what a notebook shows."""
    picture = Picture({"main": 1}, {("intake", "main"): 1})

    file = picture.save(tmp_path / "a.svg")

    assert file.read_text(encoding="utf-8") == picture.svg
    assert ">×1</text>" in picture.svg


def test_as_text_it_tells_the_walk() -> None:
    """Or what it is of, where nothing was walked."""
    assert str(Picture({}, {("intake", "main"): 2})) == "intake -> main: 2"
    assert str(Picture()) == "the machine of Daruma"
