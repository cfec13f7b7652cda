"""Completion: a real bash asks, and gets names that are known at once."""

import json
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import run

import psycopg
import pytest
from tests.daruma_command import DONE, Daruma

from daruma.graph.command_line._app import SHELLS
from daruma.graph.command_line._options import SECONDS, models, pitfalls, threads

BASH = """
daruma() {{ {python} -m daruma "$@"; }}
export -f daruma
eval "$(daruma --show-completion bash)"
COMP_WORDS=({words}) COMP_CWORD={last}
_daruma_completion {folder}/daruma
printf '%s\\n' "${{COMPREPLY[@]}}"
"""

Bash = Callable[..., list[str]]


@pytest.fixture
def bash(daruma: Daruma) -> Bash:
    """Returns what bash would offer after these words, an empty one for a new word."""
    program = daruma.folder / "daruma"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m daruma "$@"\n')
    program.chmod(0o755)

    def offered(*words: str) -> list[str]:
        quoted = " ".join(f"'{word}'" for word in ("daruma", *words))
        script = BASH.format(
            python=sys.executable, words=quoted, last=len(words), folder=daruma.folder
        )
        done = run(["bash", "--norc", "-c", script], capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return done.stdout.split()

    return offered


def test_bash_completes_commands_options_and_names(daruma: Daruma, bash: Bash) -> None:
    """Threads from the database, models from the settings, modes and scenarios."""
    daruma("run", "Do it", "--model", daruma.script(main=[DONE]), "--thread", "brave-otter")
    daruma.configure("llm: {model_aliases: {fast: 'openai:x'}}\n")

    assert bash("res") == ["resume"]
    assert "--follow" in bash("show", "--")
    assert bash("show", "brave") == ["brave-otter"]
    assert bash("run", "x", "--mode", "p") == ["plan_exec"]
    assert bash("run", "x", "--model", "") == ["fast"]
    assert bash("demo", "s") == ["seven-falls"]


def test_a_silent_database_delays_nobody(daruma: Daruma) -> None:
    """Nothing is offered then, and nothing is said."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://127.0.0.1:{silent.getsockname()[1]}/none"
        daruma.setenv("DARUMA_POSTGRES_URL", url)

        began = time.monotonic()
        found = threads("")

    assert found == []
    assert time.monotonic() - began < 2 * SECONDS


def test_completing_starts_no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The embedded one is asked only while it runs."""
    monkeypatch.delenv("DARUMA_POSTGRES_URL", raising=False)
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))

    assert threads("") == pitfalls("") == []
    assert not (tmp_path / "data").exists()


def test_names_that_a_shell_would_take_apart_are_left_out(daruma: Daruma) -> None:
    """They can be typed; offered, they would become several words, or a command that runs."""
    model = daruma.script(main=[DONE])
    for name in ("a b", "a`id`$(id);id*", "a-c"):
        daruma("run", "Do it", "--model", model, "--thread", name)

    assert threads("a") == ["a-c"]


def test_a_name_that_a_shell_would_obey_is_not_offered(daruma: Daruma, postgres_url: str) -> None:
    """A thread may be named by anybody, and what Tab puts there is run with Enter."""
    daruma("run", "Do it", "--model", daruma.script(main=[DONE]), "--thread", "a")
    offered = list[str]()

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for name in ("a$(id)", "a;id", "a`id`", "a&id", "a>id", "a*", "a:b", "ab"):
            connection.execute("UPDATE checkpoints SET thread_id = %s", [name])
            offered += threads("a")

    assert offered == ["ab"]


def test_a_foreign_folder_offers_no_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its settings name models; those that a shell would take for more than a word are left out."""
    monkeypatch.chdir(tmp_path)
    aliases = dict.fromkeys(("$(id)", "x y", "-x", "fast"), "openai:x")
    (tmp_path / "daruma.yaml").write_text(
        json.dumps({"llm": {"model": "openai:x", "model_aliases": aliases}})
    )

    assert models("") == ["openai:x", "fast"]


def test_settings_that_can_not_be_read_offer_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person is typing: there is no place for a message."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "daruma.yaml").write_text("llm: [")

    assert models("") == []


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_has_its_script(daruma: Daruma, shell: str) -> None:
    """By its name, from any process."""
    said = daruma("--show-completion", shell)

    assert (said.code, said.err) == (0, "")
    assert "_DARUMA_COMPLETE" in said.out


def test_completion_is_installed_for_a_shell(daruma: Daruma) -> None:
    """In the person's own folder; another shell is refused in one line."""
    daruma.setenv("HOME", str(daruma.folder))

    said = daruma("--install-completion", "bash")

    assert said.code == 0
    assert ".bash_completions/daruma.sh" in said.out
    assert (daruma.folder / ".bash_completions" / "daruma.sh").is_file()
    assert "bash, zsh, fish" in daruma("--show-completion", "tcsh").complaint
