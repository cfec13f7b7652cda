"""Secrets are hidden, toolchains shown, and nothing is shown because a command wants it to be."""

import os
import shutil
import socket
import tempfile
from pathlib import Path

import pytest
from tests.sandboxes import CONFINED, sandbox_at

from daruma.tools.sandbox._mounts import Seen, listening_sockets, look_at_host, mounts
from daruma.tools.sandbox._sandbox import Level


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with toolchains and credentials in it."""
    for name in (".ssh", ".cargo/bin", ".pyenv/versions/3/bin", ".config/tool/bin", "own/bin"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / ".local" / "bin").mkdir(parents=True)
    (tmp_path / ".local" / "share" / "keyrings").mkdir(parents=True)
    for name in (".netrc", ".cargo/credentials.toml"):
        (tmp_path / name).touch()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    return tmp_path


def shown(home: Path, *path: str) -> set[str]:
    """What of the home folder is shown for these entries of PATH."""
    view = look_at_host({"PATH": os.pathsep.join(path)})
    return {str(place.relative_to(home)) for place in view.shown if place.is_relative_to(home)}


def test_toolchains_are_shown_and_never_credentials(home: Path) -> None:
    """Also those that only PATH knows, with the folder around their programs.

    `~/.local` holds keyrings beside programs, `~/bin` lies in the home folder itself: neither is
    shown whole. Credentials are not, even if PATH names a folder among them.
    """
    (home / "bin").mkdir()
    found = shown(home, f"{home}/own/bin", "/usr/bin")
    shared = shown(home, f"{home}/.local/bin", f"{home}/bin", str(home), "/tmp")  # noqa: S108
    secret = shown(home, f"{home}/.config/tool/bin", f"{home}/.ssh")

    assert {".cargo", ".pyenv", ".local/bin", "own", "own/bin"} <= found
    assert {".local/bin", "bin"} <= shared
    assert not {".local", "."} & shared
    assert not any(name.startswith((".config", ".ssh")) for name in secret)


def test_what_variables_call_secret_is_hidden_wherever_it_lies(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys named by our own environment, several in one variable, but nothing relative.

    Credentials and our data, also those in a toolchain that is shown.
    """
    (home / "data").mkdir()
    for name in ("one", "two", "rest"):
        (home / name).touch()
    monkeypatch.setenv("KUBECONFIG", f"{home}/one:{home}/two:rest:{home}/gone")
    hidden = set(look_at_host({"PATH": "/usr/bin"}).hidden)

    assert {home / "one", home / "two"} <= hidden
    assert not {home / "rest", home / "gone"} & hidden
    assert {home, home / ".ssh", home / ".cargo/credentials.toml", home / "data"} <= hidden


@pytest.mark.skipif(os.geteuid() != 0, reason="a secret outside of the home folder takes root")
@pytest.mark.parametrize("level", CONFINED)
async def test_a_secret_place_that_is_gone_is_no_hindrance(
    level: Level, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent's socket can go while we live; before that it can not be read."""
    place = Path(tempfile.mkdtemp(prefix="daruma-test-", dir="/opt"))
    (place / "key").write_text("s3cret")
    monkeypatch.setenv("SSH_AUTH_SOCK", str(place / "key"))
    run = sandbox_at(level).run
    try:
        before = await run(["cat", str(place / "key")], workspace=tmp_path, timeout=10)
    finally:
        shutil.rmtree(place)
    after = await run("echo out", workspace=tmp_path, timeout=10)

    assert "s3cret" not in before.stdout
    assert after.stdout == "out\n"


VIEW = Seen(
    hidden=tuple(map(Path, ("/home", "/home/me", "/home/me/.cargo/key", "/home/me/.ssh", "/run"))),
    shown=(Path("/home/me/.cargo"), Path("/home/me/project/venv")),
    home=Path("/home/me"),
)


KEY = "-/home/me/.cargo/key"
TOP = "-/home -/run -/home/me +/home/me/.cargo"


@pytest.mark.parametrize(
    ("workspace", "expected"),
    [
        ("/home/me/project", f"{TOP} */home/me/project {KEY}"),
        ("/home/me", f"-/home -/run */home/me -/home/me/.ssh {KEY}"),
        ("/srv/project", f"{TOP} */srv/project {KEY} +/home/me/project/venv"),
        ("/home/me/.cargo/project", f"{TOP} {KEY} */home/me/.cargo/project +/home/me/project/venv"),
    ],
)
def test_what_lies_deeper_comes_later(workspace: str, expected: str) -> None:
    """Each place once, and only where it changes anything."""
    marks = {"hidden": "-", "shown": "+", "workspace": "*"}
    found = [f"{marks[kind]}{path}" for path, kind in mounts(VIEW, Path(workspace))]

    assert sorted(found) == sorted(expected.split())
    depths = [len(Path(each[1:]).parts) for each in found]
    assert depths == sorted(depths)


def test_sockets_that_can_be_seen_are_hidden() -> None:
    """Those in hidden places and in the workspace are left alone."""
    sockets = tuple(
        map(Path, ("/var/lib/db/s", "/run/x/s", "/home/me/project/s", "/home/me/.cargo/s"))
    )
    found = [str(path) for path, kind in mounts(VIEW, Path("/home/me/project"), sockets)
             if path in sockets and kind == "hidden"]  # fmt: skip

    assert sorted(found) == ["/home/me/.cargo/s", "/var/lib/db/s"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root sees into another user's folder")
def test_a_socket_that_no_command_gets_at_is_no_hindrance(tmp_path: Path) -> None:
    """In another user's closed folder nothing can be hidden: the sandbox could not be set up."""
    (closed := tmp_path / "closed").mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path := closed / "s"))
        server.listen()
        assert path in listening_sockets()
        os.chown(closed, 65_000, 65_000)
        assert path not in listening_sockets()
