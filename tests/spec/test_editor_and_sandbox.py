"""Chapter 9: the editor, paths, and the sandbox of commands."""

import os
import socket
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from tests.spec.face import ALLOWED, Daruma, Run, call, calls, command, refused, say

EDITOR: Final = "str_replace_editor"


def edit(id_: str, how: str, path: str, **args: Any) -> dict[str, Any]:
    """One call of the editor."""
    return call(EDITOR, id_, command=how, path=path, **args)


def edited(workspace: Path, *turns: Any) -> dict[str, str]:
    """What came of calls of the editor, by their ids; each turn is one call, or several at once."""
    each = [calls(*(turn if isinstance(turn, list) else [turn])) for turn in turns]
    checks: dict[str, Any] = {"verification": {"enabled": False}}
    return Run([*each, say()], workspace=workspace, **checks).ask().outputs


def ran(workspace: Path, line: str, **sections: Any) -> Run:
    """A run of one command of the model."""
    off: dict[str, Any] = {"verification": {"enabled": False}}
    return Run(
        [calls(command(line, "c")), say()], workspace=workspace, tools=ALLOWED, **off | sections
    ).ask()


# --- ED-01: the commands of the editor.


def test_the_editor_views_files_and_folders_with_line_numbers(workspace: Path) -> None:
    """ED-01: whole or in a range; a folder is a list."""
    (workspace / "src").mkdir()
    (workspace / "src" / "f").write_text("one\ntwo\nthree\n")
    out = edited(
        workspace,
        [
            edit("all", "view", "src/f"),
            edit("range", "view", "src/f", view_range=[2, 3]),
            edit("folder", "view", "."),
        ],
    )

    assert [line.split("\t") for line in out["all"].splitlines()[:2]] == [
        ["     1", "one"],
        ["     2", "two"],
    ]
    assert "one" not in out["range"]
    assert "     3\tthree" in out["range"]
    assert "src" in out["folder"]


def test_the_editor_replaces_exactly_one_match(workspace: Path) -> None:
    """ED-01: none or several are an error that says how many and where; nothing is written."""
    (workspace / "f").write_text("a\nb\na\n")
    out = edited(
        workspace,
        edit("many", "str_replace", "f", old_str="a\n", new_str="x\n"),
        edit("none", "str_replace", "f", old_str="zebra", new_str="x"),
        edit("one", "str_replace", "f", old_str="b\n", new_str="B\n"),
    )

    assert "2" in out["many"]
    assert "1, 3" in out["many"].replace("and", ",").replace(" ,", ",").replace(",  ", ", ")
    assert "no" in out["none"].lower()
    assert (workspace / "f").read_text() == "a\nB\na\n"


def test_the_editor_inserts_from_line_zero_to_the_last_and_undoes(workspace: Path) -> None:
    """ED-01: beyond is an error; undo takes edits back one by one, down to the file's creation."""
    out = edited(
        workspace,
        edit("make", "create", "f", file_text="1\n2\n"),
        edit("first", "insert_at_line", "f", insert_line=0, insert_text="0\n"),
        edit("last", "insert_at_line", "f", insert_line=3, insert_text="3\n"),
        edit("view", "view", "f"),
        edit("beyond", "insert_at_line", "f", insert_line=9, insert_text="9\n"),
        edit("undo", "undo", "f"),
    )
    assert out["view"].split() == ["1", "0", "2", "1", "3", "2", "4", "3"]
    assert "4" in out["beyond"]
    assert (workspace / "f").read_text() == "0\n1\n2\n"

    edited(workspace, edit("a", "create", "g", file_text="g"), edit("b", "undo", "g"))
    assert not (workspace / "g").exists()


def test_the_editor_makes_no_file_over_another(workspace: Path) -> None:
    """ED-01: `create` is for files that are not there."""
    (workspace / "f").write_text("mine\n")
    out = edited(workspace, edit("c", "create", "f", file_text="theirs"))

    assert (workspace / "f").read_text() == "mine\n"
    assert "f" in out["c"]


# --- ED-02, ED-03: paths and writes.


def test_paths_stay_in_the_workspace(workspace: Path) -> None:
    """ED-02: traversal, absolute paths, links out, name twins and special files are refused."""
    twin = workspace.with_name("ws_evil")
    twin.mkdir()
    (twin / "secret").write_text("hidden text")
    (workspace / "out").symlink_to(twin)
    (workspace / "out_file").symlink_to(twin / "secret")
    os.mkfifo(workspace / "pipe")
    outside = [
        "../ws_evil/secret",
        str(twin / "secret"),
        "out/secret",
        "out_file",
        "pipe",
        "/etc/passwd",
    ]
    reads = [edit(f"r{n}", "view", path) for n, path in enumerate(outside)]
    places = ["../ws_evil/new", str(twin / "new"), "out/new", "../new", "a/../../new"]
    writes = [edit(f"w{n}", "create", path, file_text="x") for n, path in enumerate(places)]
    out = edited(workspace, [*reads, *writes])

    assert len(out) == len(outside) + len(places)
    assert not [text for text in out.values() if "hidden text" in text or "root:" in text]
    assert [each.name for each in twin.iterdir()] == ["secret"]
    assert sorted(each.name for each in workspace.iterdir()) == ["out", "out_file", "pipe"]
    assert not (workspace.parent / "new").exists()


def test_a_link_that_stays_inside_is_followed(workspace: Path) -> None:
    """ED-02: what is refused is leading out, not links."""
    (workspace / "f").write_text("old\n")
    (workspace / "link").symlink_to("f")
    edited(workspace, edit("c", "str_replace", "link", old_str="old", new_str="new"))

    assert (workspace / "f").read_text() == "new\n"
    assert (workspace / "link").is_symlink()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"old\r\nmore\r\n", b"new\r\nmore\r\n"),
        ("old caf\u00e9\n".encode("latin-1"), "new caf\u00e9\n".encode("latin-1")),
        (b"\xef\xbb\xbfold\n", b"\xef\xbb\xbfnew\n"),
        (b"old", b"new"),
    ],
    ids=["line ends", "encoding", "mark", "no last line end"],
)
def test_an_edit_keeps_all_but_what_it_changes(
    workspace: Path, before: bytes, after: bytes
) -> None:
    """ED-03: mode, line ends and encoding stay."""
    (workspace / "f").write_bytes(before)
    (workspace / "f").chmod(0o751)
    edited(workspace, edit("c", "str_replace", "f", old_str="old", new_str="new"))

    assert (workspace / "f").read_bytes() == after
    assert (workspace / "f").stat().st_mode & 0o777 == 0o751
    assert [each.name for each in workspace.iterdir()] == ["f"]


def test_binary_and_oversized_files_are_refused_clearly(workspace: Path) -> None:
    """ED-03: nothing of them is shown or written."""
    (workspace / "binary").write_bytes(b"\0\1old")
    with (workspace / "huge").open("wb") as file:
        file.truncate(1 << 30)
    out = edited(
        workspace,
        [
            edit("see", "view", "binary"),
            edit("edit", "str_replace", "binary", old_str="old", new_str="new"),
            edit("huge", "view", "huge"),
        ],
    )

    assert ["binary" in out["see"], "binary" in out["edit"]] == [True, True]
    assert "huge" in out["huge"]
    assert (workspace / "binary").read_bytes() == b"\0\1old"


# --- SA-01, SA-02: the sandbox.


def test_a_command_writes_in_the_workspace_only_and_has_no_network(
    workspace: Path, tmp_path: Path
) -> None:
    """SA-01: the level that is active stands on the result and on each command."""
    (tmp_path / "outside").mkdir()
    connect = (
        "import socket, sys\ntry: socket.create_connection(('127.0.0.1', int(sys.argv[1])), 2)\n"
        "except OSError: print('no way')\nelse: print('reached')"
    )
    listening = socket.create_server(("127.0.0.1", 0))
    line = (
        f"echo in > in; echo out > {tmp_path}/outside/f; echo out > $HOME/f;"
        f' {sys.executable} -I -S -c "{connect}" {listening.getsockname()[1]}; true'
    )
    run = ran(workspace, line)
    listening.close()
    (told,) = run.happened("command_run")

    assert (workspace / "in").read_text() == "in\n"
    assert list((tmp_path / "outside").iterdir()) == []
    assert "no way" in run.outputs["c"]
    assert told["sandbox"] == run.result.sandbox
    assert told["sandbox"] in ("namespace", "landlock")


def test_nothing_survives_a_command(workspace: Path) -> None:
    """SA-01: not in a session of its own, not when its time is up."""
    os.mkfifo(workspace / "life")
    life = os.open(workspace / "life", os.O_RDONLY | os.O_NONBLOCK)
    run = ran(
        workspace,
        "(setsid sh -c 'exec 9> life; sleep 300' >/dev/null 2>&1 &); sleep 0.2; echo done",
    )

    assert "done" in run.outputs["c"]
    assert os.read(life, 1) == b""
    os.close(life)


@pytest.mark.parametrize(
    ("line", "more", "sections", "said"),
    [
        ("sleep 300", {"timeout": 0.5}, {}, "time"),
        (
            f"{sys.executable} -I -S -c 'b = bytearray(1 << 30)'",
            {},
            {"sandbox": {"memory_mb": 128}},
            "sandbox.memory_mb",
        ),
        ("yes | head -c 9000000", {}, {}, "read_output"),
    ],
    ids=["time", "memory", "output"],
)
def test_a_command_has_limits(
    workspace: Path, line: str, more: Any, sections: Any, said: str
) -> None:
    """SA-01: on time, memory and output; what is over them is ended or cut, and told."""
    made = call("run_command", "c", command=line, **more)
    settings: dict[str, Any] = {"tools": ALLOWED, "verification": {"enabled": False}} | sections
    run = Run([calls(made), say()], workspace=workspace, **settings).ask()

    assert said in run.outputs["c"]
    assert len(run.outputs["c"]) < 25_000
    assert run.result.status == "completed"


def test_the_level_is_shown_and_never_weaker_than_required(daruma: Daruma) -> None:
    """SA-01: doctor names what was proved; a level that is not there is an error."""
    said = daruma("doctor").out

    assert "namespace" in said or "landlock" in said
    assert "sandbox.require" in refused(lambda: Run([say()], sandbox={"require": "perfect"}))


def test_a_violation_is_told_to_the_model_and_is_on_record(workspace: Path) -> None:
    """SA-02: as a structured error, with what was in the way; an ordinary failure is none."""
    line = f"{sys.executable} -I -S -c 'b = bytearray(1 << 30)'"
    run = ran(workspace, line, sandbox={"memory_mb": 128})
    (told,) = run.happened("command_run")

    assert run.outputs["c"].startswith("Error: sandbox_violation: ")
    assert "memory" in told["violation"]

    (workspace / "again").mkdir()
    other = ran(workspace / "again", "exit 3")
    assert "sandbox_violation" not in other.outputs["c"]
    assert other.happened("command_run")[0]["violation"] == ""
