"""Somebody's editor: any program that is given a file."""

import os
import stat
from pathlib import Path

import pytest

from daruma.graph.command_line._editing import AnswerRefused, edited


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An executable script that is named in EDITOR, with an option."""
    script = tmp_path / "an editor"
    script.write_text("#!/bin/sh\ntrue\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"'{script}' --wait")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return script


def test_a_text_comes_back_as_it_was_left(editor: Path) -> None:
    """With plain line ends, and its file is gone; the options of EDITOR are passed on."""
    editor.write_text(
        '#!/bin/sh\n[ "$1" = --wait ] && printf "b\\r\\n" >> "$2"; echo "$2" > "$0.at"\n'
    )

    assert edited("a: é\n", ".yaml") == "a: é\nb\n"

    (file,) = Path(f"{editor}.at").read_text().splitlines()
    assert file.endswith(".yaml")
    assert not Path(file).exists()


def test_what_a_failing_editor_wrote_is_kept(editor: Path) -> None:
    """The message names the file."""
    editor.write_text('#!/bin/sh\necho more >> "$2"; exit 3\n')

    with pytest.raises(AnswerRefused, match="ended with 3") as refused:
        edited("a\n", ".yaml")

    assert Path(str(refused.value).rpartition(" ")[2]).read_text() == "a\nmore\n"


def test_an_editor_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch, editor: Path) -> None:
    """By its name; without any, where to name one."""
    monkeypatch.setenv("VISUAL", f"{editor}-is-gone")
    with pytest.raises(AnswerRefused):
        edited("a", ".yaml")

    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(AnswerRefused, match="name one in EDITOR"):
        edited("a", ".yaml")


@pytest.mark.parametrize("named", ["", "vi", "{work}/bin/vi", "bin/vi"])
def test_an_editor_is_none_of_the_workspaces(
    named: str, monkeypatch: pytest.MonkeyPatch, editor: Path, tmp_path: Path
) -> None:
    """SE-01, C2: neither by PATH nor by name; it is told as one that is not there."""
    work = tmp_path / "work"
    (work / "bin").mkdir(parents=True)
    editor.write_text(f"#!/bin/sh\ntouch {tmp_path}/canary\n")
    editor.rename(work / "bin" / "vi")
    monkeypatch.chdir(work)
    monkeypatch.setenv("PATH", f"{work}/bin:.:bin")
    monkeypatch.setenv("EDITOR", named.format(work=work))
    with pytest.raises(AnswerRefused):
        edited("a", ".yaml")

    assert not (tmp_path / "canary").exists()


def test_an_editor_that_can_not_be_read_is_told(
    monkeypatch: pytest.MonkeyPatch, editor: Path
) -> None:
    """A quote that is never closed is a slip of a person's, no bug."""
    monkeypatch.setenv("EDITOR", f"'{editor}")

    with pytest.raises(AnswerRefused, match="EDITOR can not be read"):
        edited("a", ".yaml")
