"""Somebody's editor, any program that is given a file, and the YAML that is edited there."""

import os
import signal
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daruma.graph.command_line._questions import AnswerRefused
from daruma.graph.command_line._replies import edited, from_yaml, to_yaml


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


def test_ctrl_c_is_the_editors_own(editor: Path) -> None:
    """One that outlives it is waited for; afterwards Ctrl-C is ours again."""
    both = f"kill -INT {os.getpid()}; kill -INT $$"
    editor.write_text(f'#!/bin/sh\ntrap : INT; {both}; echo b >> "$2"\n')

    assert edited("a\n", ".yaml") == "a\nb\n"

    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


# --- YAML: what a person edits comes back as it was, and as what it looks like.

LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES: Any = st.recursive(
    LEAVES | TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=8
)


@pytest.mark.long
@settings(max_examples=40)
@given(st.dictionaries(TEXTS, VALUES))
def test_a_value_that_nobody_changed_is_the_same(value: dict[str, Any]) -> None:
    """Line ends, blanks at the ends, words such as ``yes`` and dates in texts too."""
    assert from_yaml(to_yaml(value)) == value


def test_what_hides_is_seen_in_an_editor() -> None:
    """It comes back as it was."""
    value = {"command": "ls \u202e\u200b\x1b\n", "of": "\u3164\n"}

    text = to_yaml(value)

    assert "".join(text.split()).isascii()
    assert r"\u202e\u200b\e" in text
    assert from_yaml(text) == value


def test_several_lines_are_written_as_lines() -> None:
    """A file's content is edited as it will be, not between quotes."""
    assert to_yaml({"file_text": "a\n  b\n"}) == "file_text: |\n  a\n    b\n"


READ: list[tuple[str, Any]] = [
    ("a: no", "no"),
    ("a: 2024-01-01", "2024-01-01"),
    ("a: true", True),
    ("a: 0x10", 16),
    ('{"a": [1, null]}', [1, None]),
    ("a: 1\r\n", 1),
]


@pytest.mark.parametrize(("text", "value"), READ)
def test_what_a_person_types_is_what_it_looks_like(text: str, value: object) -> None:
    """JSON is fine as well, and so are the line ends of Windows."""
    assert from_yaml(text) == {"a": value}


REFUSED = [
    "",
    "just words",
    "- a\n- b\n",
    "a: [",
    "a: .inf",
    "1: x",
    "a: !!python/name:os.system x",
]


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_object_is_refused_in_one_line(text: str) -> None:
    """Also what would make a Python object."""
    with pytest.raises(AnswerRefused) as refused:
        from_yaml(text)

    assert len(str(refused.value).splitlines()) == 1
