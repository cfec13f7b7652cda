"""A run on a real terminal: what it shows while it goes on, and what it leaves behind."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from tests.daruma_command import DONE, Daruma, command
from tests.terminal import Terminal

PLAN = {
    "json": {
        "phases": [
            {"id": "p1", "title": "Look", "instructions": "Look."},
            {
                "id": "p2",
                "title": "数える 🎉",
                "depends_on": ["p1"],
                "rollback_command": "git stash",
            },
        ]
    }
}


@contextmanager
def hanging(daruma: Daruma, **size: int) -> Iterator[tuple[Terminal, IO[str]]]:
    """A run whose command has written a line, and ends when something is written to it."""
    go = daruma.folder / "ws" / "go"
    os.mkfifo(go)
    says = "echo first; printf 'half .....'; read line < go; echo $line"
    model = daruma.script(plan=[PLAN], main=[{"calls": [command(says)]}, DONE, DONE])
    terminal = Terminal(
        daruma, "run", "Count", "--workspace", "ws", "--mode", "plan_exec", "--model", model,
        "--thread", "t", "--yes", **size,
    )  # fmt: skip
    terminal.wait_for("│ half .....")
    with go.open("w") as pipe:
        yield terminal, pipe


def test_a_run_is_shown_while_it_goes_on(daruma: Daruma) -> None:
    """Goal, phases, budget, the call and what it has written; all of that is gone at the end."""
    with hanging(daruma, columns=70) as (terminal, pipe):
        panel = terminal.screen.shown[-7:]
        pipe.write("go\n")
    code = terminal.end()

    text = "\n".join(panel)
    for told in ("plan_exec · Count", "▶ 1 of 2  Look", "· 2 of 2  数える 🎉", "$ echo first"):
        assert told in text
    assert panel[-2:] == ["    │ first", "    │ half ....."]
    left = terminal.screen
    assert (code, left.cursor_shown) == (0, True)
    assert not any("1 of 2" in line and "▶" in line for line in left.shown)
    assert [line for line in left.shown if "✓ $ echo first" in line]


def test_ctrl_c_leaves_a_clean_screen(daruma: Daruma) -> None:
    """On 30 columns, too: the panel is gone, the cursor is back, what was told stands there."""
    with hanging(daruma, columns=30) as (terminal, _):
        shown = terminal.screen.shown
        terminal.process.send_signal(signal.SIGINT)
        code = terminal.end()

    left = terminal.screen
    assert (code, left.cursor_shown) == (130, True)
    assert any(line.startswith("  ▶ 1 of 2") for line in shown)
    assert "daruma resume t" in " ".join(line.strip() for line in left.shown)
    assert not any("│ first" in line or "▶" in line for line in left.shown)


def test_a_reviewer_edits_a_plan_in_an_editor(daruma: Daruma) -> None:
    """What was written in $EDITOR is shown, confirmed, and what runs; a bad edit comes back."""
    editor = daruma.folder / "editor"
    editor.write_text(
        "#!/bin/sh\n"
        "if test -e once; then sed -i 's/p9/p1/' \"$1\";\n"
        "else touch once; sed -i 's/- p1/- p9/; s/title: Look/title: Look well/' \"$1\"; fi\n"
    )
    editor.chmod(0o755)
    daruma.setenv("EDITOR", str(editor))
    model = daruma.script(plan=[PLAN], main=[DONE, DONE])
    terminal = Terminal(
        daruma, "run", "Count", "--mode", "plan_exec", "--model", model, "--thread", "t"
    )

    for prompt, types in (("[c]onfirm", "e"), ("unknown phases: p9", "e"), ("changed it", "c")):
        terminal.wait_for(prompt)
        terminal.type(types)

    assert terminal.end() == 0
    assert "1. Look well" in daruma("show", "t").out
    assert "undone with: git stash" in terminal.seen


def test_an_edit_is_asked_about_with_its_diff(daruma: Daruma) -> None:
    """In ``answer`` without an answer, on a terminal; ``show`` prints the same."""
    (daruma.folder / "ws" / "a.py").write_text("one\ntwo\n")
    (daruma.folder / "daruma.yaml").write_text("tools: {policy: {str_replace_editor: confirm}}\n")
    args = {"command": "str_replace", "path": "a.py", "old_str": "two", "new_str": "2"}
    calls = [{"name": "str_replace_editor", "id": f"c{n}", "args": args} for n in (1, 2)]
    model = daruma.script(main=[{"calls": calls}, DONE])
    daruma("run", "Edit", "--workspace", "ws", "--model", model, "--thread", "t")
    shown = daruma("show", "t").out

    terminal = Terminal(daruma, "answer", "t")
    terminal.wait_for("[l]ater")
    terminal.type("a")
    terminal.wait_for("2 of 2")
    terminal.type("d")
    terminal.wait_for("Why not")
    terminal.type("once is enough")

    assert terminal.end() == 0
    for told in ("1 of 2", "2 of 2", "- two", "+ 2"):
        assert told in shown
        assert told in "\n".join(terminal.screen.shown)
    assert (daruma.folder / "ws" / "a.py").read_text() == "one\n2\n"
