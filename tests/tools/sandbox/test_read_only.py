"""Commands that run before anybody is asked: they change nothing, reach nobody, see no secret."""

import asyncio
import os
import shlex
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from tests.git_ground import git
from tests.parts import WORKSPACE_TOOLS
from tests.sandboxes import sandbox_at

from daruma.state.settings import Tools
from daruma.tools.calls.policy._policy import decide
from daruma.tools.commands import CommandResult, LiveOutput
from daruma.tools.errors import CommandRefused
from daruma.tools.files import tree_of
from daruma.tools.sandbox import Sandbox, read_only_refusal
from daruma.tools.sandbox._sandbox import Level

SECRET: Final = "hunter2-of-the-workspace"
(COMMAND,) = (tool for tool in WORKSPACE_TOOLS if tool.name == "run_command")

EVERYDAY: Final = """\
unasked  ls
unasked  ls -la src
unasked  cat src/a.py
unasked  head -2 src/a.py
unasked  tail -n 1 src/a.py
unasked  wc -l src/a.py
unasked  sed -n 1,3p src/a.py
unasked  cat src/a.py | head -1
unasked  nl -ba src/a.py
unasked  grep -rn add src tests
unasked  grep -rn nothing-of-it src
unasked  find . -name '*.py'
unasked  find src -type f | sort
unasked  tree_is_not_here 2>/dev/null || ls
unasked  pwd
unasked  du -sh src
unasked  stat src/a.py
unasked  file_is_not_here() { :; }; file_is_not_here
unasked  diff src/a.py tests/test_a.py
unasked  cmp src/a.py src/a.py
unasked  sha256sum src/a.py
unasked  which python
unasked  env | sort
unasked  date
unasked  uname -a
unasked  id
unasked  echo hello
unasked  printf '%s\\n' a b
unasked  test -f src/a.py
unasked  test -f nothing
unasked  cd src && ls
unasked  for f in src/*.py; do echo $f; done
unasked  awk '{print $1}' src/a.py
unasked  xargs -n1 echo < src/a.py
unasked  git status
unasked  git status --short
unasked  git diff
unasked  git diff src/a.py
unasked  git diff --stat HEAD
unasked  git log
unasked  git log --oneline -5
unasked  git log -p -1
unasked  git show HEAD
unasked  git show HEAD:src/a.py
unasked  git blame src/a.py
unasked  git branch
unasked  git ls-files
unasked  git rev-parse HEAD
unasked  git grep add
unasked  python --version
unasked  python -c 'print(1 + 1)'
unasked  python -c 'import sys; sys.exit(1)'
unasked  python -m json.tool data.json
unasked  python -m pyflakes_is_not_here
unasked  echo x > /tmp/x && cat /tmp/x
unasked  ruff check src
unasked  ruff check --select E .
unasked  ruff format --check .
asked    rm src/a.py
asked    mkdir build
asked    sed -i s/a/b/ src/a.py
asked    git commit -am two
asked    git checkout -b other
asked    ruff format --quiet .
asked    echo x >> src/a.py
asked    cat .env
asked    grep -rn TOKEN .
asked    python -c 'open("new", "w")'
asked    curl -sS http://example.com
"""
SLOW: Final = """\
unasked  pytest -q -k add
unasked  pytest -q -k red
unasked  python -m pytest tests/test_a.py -q --tb=short
unasked  mypy src
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A small repository with a change, secrets, and ways out: a socket and a pipe."""
    made = tmp_path / "ws"
    for folder in ("src", "tests", "deep/er"):
        (made / folder).mkdir(parents=True)
    (made / "src/a.py").write_text("def add(a: int, b: int) -> int:\n    return a + b\n")
    (made / "tests/test_a.py").write_text(
        "def test_add():\n    assert 1 + 1 == 2\n\n\ndef test_red():\n    assert 1 == 2\n"
    )
    (made / "data.json").write_text("{}")
    git(made, "init", "-q", "-b", "main")
    git(made, "add", ".")
    git(made, "commit", "-qm", "one")
    with (made / "src/a.py").open("a") as file:
        file.write("\n\nx = 1   \n")
    for name in (".env", ".env.local", "deep/er/server.key", ".npmrc", "id_rsa", "secrets.yaml"):
        (made / name).write_text(f"TOKEN={SECRET}\n")
    (made / "link").symlink_to("deep/er/server.key")
    return made


def lines_of(table: str) -> list[tuple[str, str]]:
    return [(line[:9].strip(), line[9:]) for line in table.splitlines()]


def reading(level: Level = "namespace", *, network: bool = False) -> Sandbox:
    return replace(sandbox_at(level, network=network), read_only=True)


async def outcomes(workspace: Path, lines: list[str]) -> list[CommandResult]:
    """Run lines read-only, a few at once."""
    sandbox, few = reading(), asyncio.Semaphore(4)

    async def run(line: str) -> CommandResult:
        async with few:
            return await sandbox.run(line, workspace=workspace, timeout=60)

    return await asyncio.gather(*map(run, lines))


@pytest.mark.parametrize(
    "table", [EVERYDAY, pytest.param(EVERYDAY + SLOW, marks=pytest.mark.long)], ids=["quick", "all"]
)
async def test_everyday_commands_that_only_look_ask_nobody(table: str, workspace: Path) -> None:
    """TL-24: of what the policy would ask about, only what writes or leads out still asks."""
    before = tree_of(workspace)
    rows = lines_of(table)
    asking = [decide(COMMAND, {"command": line}, Tools()).decision != "allow" for _, line in rows]
    done = await outcomes(workspace, [line for _, line in rows])

    found = [
        ("asked" if asks and read_only_refusal(each) else "unasked", line)
        for asks, each, (_, line) in zip(asking, done, rows, strict=True)
    ]
    assert found == rows
    assert sum(asking) > 5 * sum(what == "asked" for what, _ in found)
    assert tree_of(workspace).id == before.id


# --- Two hundred lines that write, read secrets, get out or stay: none has an effect.

WRITES: Final = (
    "echo x > NEW", "echo x >> src/a.py", "touch NEW", "mkdir NEW", "rm -rf src", "mv src NEW",
    "cp src/a.py NEW", "ln -s src NEW", "ln src/a.py NEW", "chmod 700 src/a.py",
    "tee NEW < /dev/null", "truncate -s 0 src/a.py", "sed -i s/add/sub/ src/a.py",
    "git commit -qam two", "git tag NEW", "git config core.pager sh", "git checkout -- .",
    "git rm -q src/a.py",
    "mkfifo NEW", "dd if=/dev/zero of=NEW bs=1 count=1", "python -c 'open(\"NEW\", \"w\")'",
    "ln -sf /x .git/hooks", "echo x > .git/hooks/pre-commit",
    "mount -o remount,rw WS", "mount -t tmpfs x src",
    "echo x > OUT/NEW", "rm -rf OUT", "touch OUT/kept", "ln -s OUT o && echo x > o/NEW",
    "echo x > /etc/NEW", "echo x > /usr/NEW",
)  # fmt: skip
READS: Final = (
    "cat .env", "cat .env.local", "head deep/er/server.key", "cat link", "cat .npmrc", "cat id_rsa",
    "cat secrets.yaml", "cp .env /tmp/e && cat /tmp/e", "mv .env /tmp/e; cat /tmp/e",
    "ln .env /tmp/e; cat /tmp/e", "mv deep d; cat d/er/server.key", "tar cf - . | cat",
    "python -c 'print(open(\".env\").read())'", "chmod 644 .env; cat .env", "umount .env; cat .env",
    "cat OUT/kept",
)  # fmt: skip
_CONNECT: Final = (
    'import socket as s; c = s.socket(s.AF_{0}, s.SOCK_{1}); c.connect({2}); c.send(b"x")'
)
GETS_OUT: Final = (
    "echo x > pipe", "echo x > deep/pipe", "timeout 2 tee pipe < src/a.py", "cat < pipe",
    *(f"python -c '{_CONNECT.format(*each)}'" for each in (
        ("UNIX", "STREAM", '"sock"'), ("UNIX", "STREAM", '"\\0ABSTRACT"'),
        ("INET", "STREAM", '("127.0.0.1", PORT)'), ("INET", "DGRAM", '("127.0.0.1", PORT)'),
    )),
)  # fmt: skip
STAYS: Final = (
    "sleep 600 &", "nohup sleep 600 > /dev/null 2>&1 &", "setsid sleep 600 > /dev/null 2>&1 &",
    "(setsid sleep 600 &) > /dev/null 2>&1", "sh -c 'sleep 600 & sleep 600 &'",
)  # fmt: skip
SHAPES: Final = ("{}", "{{ {}; }} 2>/dev/null || true", "sh -c {quoted}", "cd src; cd ..; ({})")


def hostile_lines(places: dict[str, str]) -> Iterator[str]:
    """Every action in every shape, each with a name of its own for what it would leave."""
    for number, action in enumerate((*WRITES, *READS, *GETS_OUT, *STAYS)):
        line = action.replace("NEW", f"new{number}")
        for name, place in places.items():
            line = line.replace(name, place)
        yield from (shape.format(line, quoted=shlex.quote(line)) for shape in SHAPES)


def _command_lines() -> Iterator[bytes]:
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            yield each.read_bytes()


async def test_what_runs_unasked_has_no_effect(workspace: Path, tmp_path: Path) -> None:
    """TL-24: whatever it swallows; a name is never what decides."""
    (outside := tmp_path / "outside").mkdir()
    (outside / "kept").write_text(SECRET)
    with ExitStack() as stack:
        tcp, udp, unix, hidden = (
            stack.enter_context(socket.socket(family, kind))
            for family, kind in (
                (socket.AF_INET, socket.SOCK_STREAM),
                (socket.AF_INET, socket.SOCK_DGRAM),
                (socket.AF_UNIX, socket.SOCK_STREAM),
                (socket.AF_UNIX, socket.SOCK_STREAM),
            )
        )
        tcp.bind(("127.0.0.1", 0))
        udp.bind(tcp.getsockname())
        folder = os.open(workspace, os.O_DIRECTORY)  # the kernel takes no long address
        stack.callback(os.close, folder)
        unix.bind(f"/proc/self/fd/{folder}/sock")
        hidden.bind(f"\0{outside}"[:90])
        for each in (tcp, unix, hidden):
            each.listen()
        pipes = [workspace / "pipe", workspace / "deep/pipe"]
        for pipe in pipes:
            os.mkfifo(pipe)
        readers = [os.open(pipe, os.O_RDONLY | os.O_NONBLOCK) for pipe in pipes]
        for reader in readers:
            stack.callback(os.close, reader)
        before = [tree_of(workspace).id, tree_of(outside).id]
        places = {"OUT": str(outside), "WS": str(workspace), "PORT": str(tcp.getsockname()[1])}
        lines = [*hostile_lines({**places, "ABSTRACT": str(outside)[:89]})]
        done = await outcomes(workspace, ["\n".join(lines[at::8]) for at in range(8)])

        assert len(lines) >= 200
        assert [tree_of(workspace).id, tree_of(outside).id] == before
        assert not any(SECRET in each.stdout + each.stderr for each in done)
        for each in (tcp, udp, unix, hidden):
            each.settimeout(0)
            with pytest.raises(BlockingIOError):
                each.recv(1) if each is udp else each.accept()
        assert [os.read(reader, 1) for reader in readers] == [b"", b""]
    assert b"sleep\x00600" not in b"".join(_command_lines())


async def test_a_refusal_is_asked_about(workspace: Path) -> None:
    """TL-24: what is refused and says so; what did not end by itself is in doubt."""
    plain = [line for line in (*WRITES[:23], *READS[:7]) if not line.startswith("git checkout")]
    done = await outcomes(workspace, [line.replace("NEW", "new") for line in plain])
    assert [
        line for line, each in zip(plain, done, strict=True) if not read_only_refusal(each)
    ] == []

    (workspace / ".ssh").mkdir()
    odd = ["ls .ssh", "kill -9 $$", "exit 127", f"{sys.executable} -c 'import os; os.abort()'"]
    assert all(map(read_only_refusal, await outcomes(workspace, odd)))


@pytest.mark.parametrize("known", [False, True])
async def test_a_secret_that_comes_meanwhile_is_not_told(workspace: Path, known: bool) -> None:
    """TL-24: nothing hides what is made, or put in its place, while a command runs."""
    secret = workspace / (".env" if known else "new.key")
    line = f"echo begun; while ! grep -q {SECRET} {secret.name} 2>/dev/null; do :; done; cat *.key"
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    def tell(_: object) -> None:
        loop.call_soon_threadsafe(begun.set)

    live = LiveOutput(tell)
    running = asyncio.create_task(reading().run(line, workspace=workspace, timeout=60, live=live))
    await begun.wait()
    (fresh := workspace.parent / "fresh").write_text(SECRET)
    fresh.replace(secret)
    with pytest.raises(CommandRefused, match="meanwhile"):
        await running


async def test_only_level_namespace_can_hold_it(workspace: Path) -> None:
    """And more than can be hidden is not run at all."""
    with pytest.raises(CommandRefused, match="can not keep"):
        await reading("none").run("ls", workspace=workspace, timeout=9)
    for number in range(600):
        (workspace / f"{number}.pem").touch()
    with pytest.raises(CommandRefused, match="more than"):
        await reading().run("ls", workspace=workspace, timeout=9)


async def test_neither_others_files_nor_a_network_that_is_open_are_there(workspace: Path) -> None:
    """TL-24: only the workspace and the system are."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        line = f"python -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}))'"
        done = await reading(network=True).run(line, workspace=workspace, timeout=9)

    other = await reading().run("ls -A /var /opt /mnt", workspace=workspace, timeout=9)
    assert other.stderr.count("Permission denied") == 3
    assert read_only_refusal(done) == "it looks for the network"
    assert not any("network" in each for each in done.not_covered)


async def test_what_is_hidden_is_refused_rather_than_missing(workspace: Path) -> None:
    """TL-24: no success that is none beside the workspace, no answer from what is hidden."""
    lines = [
        "cp -r src ../copy && echo copied", "git clone -q . ../copy && echo cloned",
        "echo x > /var/new; echo done", "cat /var/lib/dpkg/status", "ls ..", "ls /var | wc -l",
    ]  # fmt: skip
    assert all(map(read_only_refusal, await outcomes(workspace, lines)))
    within = await outcomes(workspace / "src", ["git log --oneline"])
    assert all(map(read_only_refusal, within))


STORED: Final = (
    "git status --short", "git diff --stat", "git show HEAD:.env.prod", "git log -p",
    "git show HEAD:deep/er/server.key || true", "GIT_DIR=.git git cat-file -p HEAD:.env.prod",
    "git grep TOKEN", "cat .git/objects/pack/*",
)  # fmt: skip
ALSO_SECRET: Final = (
    ".env-prod", ".envs/prod", "server.pem.bak", ".env~", ".server.key.swp", ".psql_history",
    ".node_repl_history", "client_secret_1.json", "a.ppk",
)  # fmt: skip


async def test_git_does_not_tell_a_secret_either(workspace: Path) -> None:
    """TL-24: what it has stored of one, nor that it is changed because it is hidden."""
    (workspace / ".env.example").touch()
    git(workspace, "add", ".env.example")
    plain = await outcomes(workspace, ["git status --short .env.example", "git log --oneline"])
    assert [read_only_refusal(each) for each in plain] == ["", ""]

    (workspace / ".env.prod").write_text(f"TOKEN={SECRET}\n")
    git(workspace, "add", "-f", ".env.prod", "deep")
    git(workspace, "commit", "-qm", "secret")
    done = await outcomes(workspace, [*STORED])
    assert [each.command for each in done if not read_only_refusal(each)] == []
    assert not any(SECRET in each.stdout + each.stderr for each in done)


async def test_more_that_is_secret(workspace: Path) -> None:
    """TL-24: copies of keys, histories, a token in git's settings, what can not be seen through."""
    (workspace / ".envs").mkdir()
    for name in ALSO_SECRET:
        (workspace / name).write_text(SECRET)
    git(workspace, "config", "remote.origin.url", f"https://bob:{SECRET}@example.com/x")
    (workspace / "dark").mkdir()
    (workspace / "dark/.env").write_text(SECRET)
    (workspace / "dark").chmod(0o311)
    lines = [*(f"cat {name}" for name in ALSO_SECRET), "cat dark/.env", "base64 .git/config"]
    done = await outcomes(workspace, [*lines, "git remote -v"])
    (workspace / "dark").chmod(0o755)
    assert [each.command for each in done if not read_only_refusal(each)] == []
