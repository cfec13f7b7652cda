"""The environment that commands get: what they need to work, and none of our secrets."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

ALLOWED: Final = frozenset({
    "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "TZ", "TMPDIR",
    "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
    "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR",
    "JAVA_HOME", "GOPATH", "GOROOT", "GOCACHE", "CARGO_HOME", "RUSTUP_HOME",
    "NVM_DIR", "PYENV_ROOT",
})  # fmt: skip
"""Variables that are passed on, beside `PATH` and `LC_*`. Proxies are not: they hold passwords."""

FIXED: Final = {
    # A fix of the same size in the same second would else be hidden by stale bytecode.
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
    "NO_COLOR": "1",
    "RUFF_NO_CACHE": "true",  # a workspace that may only be read can be checked too
}


def command_environment(
    base: Mapping[str, str], workspace: Path, executable_dir: Path
) -> dict[str, str]:
    """The variables for a command in `workspace`, chosen from `base`.

    Programs are looked for in the workspace's own virtual environment, the active one,
    `executable_dir` (where Daruma's Python lies), and then on `PATH`.
    """
    kept = {name: value for name, value in base.items() if name in ALLOWED or name[:3] == "LC_"}
    own = _own_environment(workspace)
    if own is not None:
        kept["VIRTUAL_ENV"] = str(own)
    places = [*_environments(own, base), str(executable_dir), *_absolute(base)]
    return {**kept, **FIXED, "PATH": os.pathsep.join(dict.fromkeys(places))}


def _own_environment(workspace: Path) -> Path | None:
    candidates = (workspace / name for name in (".venv", "venv"))
    return next((each for each in candidates if (each / "bin").is_dir()), None)


def _environments(own: Path | None, base: Mapping[str, str]) -> Iterator[str]:
    if own is not None:
        yield str(own / "bin")
    if base.get("VIRTUAL_ENV"):
        yield str(Path(base["VIRTUAL_ENV"]) / "bin")


def _absolute(base: Mapping[str, str]) -> list[str]:
    # An empty or relative entry would run programs from the workspace under any name.
    path = base.get("PATH") or os.defpath
    return [place for place in path.split(os.pathsep) if Path(place).is_absolute()]
