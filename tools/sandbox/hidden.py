"""Which places commands must not see, and what of them a toolchain needs nevertheless."""

import os
import pwd
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from daruma.state.data_dir import data_dir
from daruma.tools.sandbox.places import CREDENTIALS, POINTERS, SECRET, SECRET_POINTERS, TOOLCHAINS

_SHARED_PREFIXES: Final = (".local", "")  # beneath a home folder: they hold more than programs


@dataclass(frozen=True)
class Seen:
    """What lies before a command: places hidden, and places within them shown to be read."""

    hidden: tuple[Path, ...]
    shown: tuple[Path, ...]
    home: Path


def seen(env: Mapping[str, str]) -> Seen:
    """Look at this host. ``env`` is that of the command: its ``PATH`` says what it needs."""
    given = tuple((name, env[name]) for name in (*POINTERS, "PATH") if name in env)
    own = tuple(place for place in (data_dir(), *_pointed_at()) if _exists(place))
    return _seen(given, _homes(), own)


@lru_cache(maxsize=16)  # hundreds of looks at the disk, for an answer that hardly ever changes
def _seen(
    given: tuple[tuple[str, str], ...], homes: tuple[Path, ...], own: tuple[Path, ...]
) -> Seen:
    credentials = [home / name for home in homes for name in CREDENTIALS]
    places = [*map(Path, SECRET), *homes, *own]
    hidden = {Path(os.path.realpath(place)) for place in places if _exists(place)} - {Path("/")}
    needed = [place for place in _needed(dict(given), homes) if _exists(place)]
    shown = {place for place in needed if _harmless(place, hidden, credentials)}
    secret = {place for place in credentials if _exists(place)}
    return Seen(tuple(sorted(hidden | secret)), tuple(sorted(shown)), homes[0])


def within(path: Path, places: Iterable[Path]) -> bool:
    """Return whether a path is one of these places, or lies in one."""
    return any(path.is_relative_to(place) for place in places)


def _homes() -> tuple[Path, ...]:
    homes = [os.environ.get("HOME", "")]
    try:
        homes.append(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        homes.append("/root")
    real = [Path(os.path.realpath(home)) for home in homes if Path(home).is_absolute()]
    return tuple(dict.fromkeys(home for home in real if home != Path("/"))) or (Path("/root"),)


def _pointed_at() -> Iterator[Path]:
    for name in SECRET_POINTERS:
        for place in os.environ.get(name, "").split(os.pathsep):
            if Path(place).is_absolute():
                yield Path(place)


def _needed(env: Mapping[str, str], homes: tuple[Path, ...]) -> Iterator[Path]:
    yield from map(Path, (sys.prefix, sys.base_prefix))
    yield from (Path(env[name]) for name in POINTERS if Path(env.get(name, "")).is_absolute())
    yield from (home / name for home in homes for name in TOOLCHAINS)
    shared = {home / name for home in homes for name in _SHARED_PREFIXES}
    for entry in map(Path, env.get("PATH", "").split(os.pathsep)):
        yield entry
        if entry.name in {"bin", "sbin"} and entry.parent not in shared:
            yield entry.parent


def _harmless(place: Path, hidden: set[Path], credentials: list[Path]) -> bool:
    """Only what would be hidden is shown; a place that leads elsewhere counts for both."""
    real = Path(os.path.realpath(place))
    if not within(real, hidden) and not within(place, hidden):
        return False
    return not any(
        within(each, credentials) or any(secret.is_relative_to(each) for secret in hidden)
        for each in (place, real)
    )


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False
