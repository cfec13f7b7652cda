"""What Daruma itself runs from: no tool and no command may write it (SE-05)."""

import os
import site
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

import daruma
from daruma.tools.errors import PathRefused
from daruma.tools.files._paths import Parts, printable_path

OWN_PROGRAM: Final = "Daruma's own program"

_of_servers: dict[Path, str] = {}  # they hold for all of this process, which starts the servers


def add_own(places: Iterable[Path], what: str) -> None:
    """Count files and folders among what is run outside of the sandbox from now on."""
    _of_servers.update({place: what for place in places if place != Path("/")})


def own_in(workspace: Path) -> Mapping[Path, str]:
    """Return the outermost places in a workspace that nobody may write, and what each is.

    Daruma's environment and modules are among them, and the files of MCP servers, wherever they
    lie: also where the environment is the workspace's own, or the workspace is Daruma's checkout.
    """
    found = {place: what for place, what in _own().items() if _lies_in(place, workspace)}
    return {
        place: what
        for place, what in found.items()
        if not any(other in found for other in place.parents)
    }


def own_around(workspace: Path) -> str:
    """Say why a workspace can not be written at all; empty where it can be.

    It is a part of what Daruma runs from, or the way there leads through one of its links.
    """
    for place, what in _own().items():
        if workspace.is_relative_to(place) and place not in _prefixes():
            return f"it lies in {place}, which is {what}"
        if _lies_in(place, workspace) and Path(os.path.realpath(place)) != place:
            return f"{what} is reached through a link in it, {place}"
    return ""


def refuse_own(root: Path, location: Parts) -> None:
    """Raise PathRefused for a place in a workspace that is part of what Daruma runs from."""
    at = root.joinpath(*location)
    for place, what in _own().items():
        if at.is_relative_to(place) and not (place in _prefixes() and root.is_relative_to(place)):
            raise PathRefused(
                f"{printable_path('/'.join(location))}: is part of {what}: it can not be edited"
            )


def _lies_in(place: Path, workspace: Path) -> bool:
    return place != workspace and place.is_relative_to(workspace)


def _own() -> Mapping[Path, str]:
    return {**_program(sys.prefix, sys.executable), **_of_servers}


def _prefixes() -> set[Path]:
    """Return what may hold more than the environment, such as /usr: a workspace can lie there."""
    return {each for given in (sys.prefix, sys.base_prefix) for each in _both(given)} - {Path("/")}


@lru_cache(maxsize=4)
def _program(prefix: str, executable: str) -> Mapping[Path, str]:
    names = ("stdlib", "platstdlib", "purelib", "platlib", "scripts")
    found = [sysconfig.get_path(name) for name in names]
    found += [*site.getsitepackages(), site.getusersitepackages()]
    found += [str(Path(executable).parent), str(Path(prefix) / "pyvenv.cfg")]
    if package := daruma.__file__:
        inside = Path(package).parent
        found += [
            str(inside),
            *(os.path.realpath(each) for each in inside.iterdir() if each.is_dir()),
        ]
        found += [str(inside.parent)] if inside.parent.name.startswith(".") else []
    places = {place for each in found if each for place in _both(each)} | _prefixes()
    there = {
        place: OWN_PROGRAM for place in sorted(places) if place.exists() and place != Path("/")
    }
    return MappingProxyType(there)


def _both(path: str) -> tuple[Path, Path]:
    return Path(os.path.abspath(path)), Path(os.path.realpath(path))  # noqa: PTH100 - links stay
