"""What is laid out on the outside for a probe, so that what comes through can be seen there."""

import fcntl
import hashlib
import os
import secrets
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final

LONGEST_ADDRESS: Final = 107
"""Bytes of a unix socket's name, by ``unix(7)``."""

_STREAMS: Final = ("tcp", "fast_open", "multipath", "unix_socket", "abstract_socket")


class Trap:
    """Files, sockets and a secret outside of a workspace; ``target`` tells a probe where."""

    def __init__(self, outside: Path, workspace: Path, stack: ExitStack) -> None:
        self.outside, self.workspace = outside, workspace
        self._secret = secrets.token_hex()
        abstract = f"daruma-{secrets.token_hex(8)}"
        for name in ("kept", "gone", "mode", "linked"):
            (outside / name).write_text("as it was", encoding="utf-8")
        (outside / "mode").chmod(0o600)
        os.utime(outside / "mode", (5, 5))
        (outside / "secret").write_text(self._secret, encoding="utf-8")
        (workspace / ".git" / "hooks").mkdir(parents=True)
        (workspace / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
        self._sockets = dict(_sockets(outside, abstract, stack))
        ports = {name: _port(s) for name, s in self._sockets.items() if s.family == socket.AF_INET}
        self.target: dict[str, Any] = {
            **ports,
            "outside": str(outside),
            "abstract": abstract,
            "pid": os.getpid(),
        }

    def open(self, seen: Mapping[str, object]) -> set[str]:
        """Return the names of the attempts that came through; ``seen`` is what the probe said."""
        told = {
            "home_secret": seen.get("home_secret") == self._secret,
            "other_processes": seen.get("other_processes") == _own("cmdline"),
            "other_environment": seen.get("other_environment") == _own("environ"),
            "kernel_settings": seen.get("kernel_settings") is True,
            "vsock": seen.get("vsock") is True,
        }
        told["signals"] = told["other_processes"] and seen.get("signals") is True
        found = {**told, **self._files(), "daemon": self._locked()}
        return {name for name, is_open in found.items() if is_open} | {
            name for name, sock in self._sockets.items() if _came(sock)
        }

    def _files(self) -> dict[str, bool]:
        mode = (self.outside / "mode").stat()
        return {
            "write_outside": (self.outside / "new").exists(),
            "truncate_outside": self._changed("kept"),
            "delete_outside": self._changed("gone"),
            "link_outside": self._changed("linked"),
            "chmod_outside": mode.st_mode & 0o777 != 0o600,
            "utime_outside": mode.st_mtime != 5,
            "git_hooks": (self.workspace / ".git/hooks/pre-commit").exists()
            or (self.workspace / "git").exists(),
        }

    def _changed(self, name: str) -> bool:
        try:
            return (self.outside / name).read_text(encoding="utf-8") != "as it was"
        except OSError:
            return True

    def _locked(self) -> bool:
        with suppress(FileNotFoundError), (self.workspace / "lock").open("r+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False


def _sockets(outside: Path, abstract: str, stack: ExitStack) -> Iterator[tuple[str, socket.socket]]:
    inet, unix, host = socket.AF_INET, socket.AF_UNIX, ("127.0.0.1", 0)
    stream, datagram = socket.SOCK_STREAM, socket.SOCK_DGRAM
    for name, family, kind, address in (
        ("tcp", inet, stream, host),
        ("fast_open", inet, stream, host),
        ("multipath", inet, stream, host),
        ("udp", inet, datagram, host),
        ("unix_socket", unix, stream, _address(outside, "socket", stack)),
        ("unix_datagram", unix, datagram, _address(outside, "datagram", stack)),
        ("abstract_socket", unix, stream, "\0" + abstract),
    ):
        sock = stack.enter_context(socket.socket(family, kind))
        sock.settimeout(0)
        sock.bind(address)
        if name in _STREAMS:
            sock.listen()
        yield name, sock


def _address(folder: Path, name: str, stack: ExitStack) -> str:
    """Return the name of a socket: the kernel takes one of 107 bytes, and a home may lie deeper."""
    path = folder / name
    if len(os.fsencode(path)) <= LONGEST_ADDRESS:
        return str(path)
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    stack.callback(os.close, opened)
    return f"/proc/self/fd/{opened}/{name}"


def _port(sock: socket.socket) -> int:
    return int(sock.getsockname()[1])


def _came(sock: socket.socket) -> bool:
    try:
        if sock.type == socket.SOCK_DGRAM:
            return bool(sock.recv(1))
        sock.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def _own(name: str) -> str:
    return hashlib.sha256(Path("/proc/self", name).read_bytes()).hexdigest()
