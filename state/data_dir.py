"""The one folder outside of workspaces that Daruma keeps things in."""

import os
import tempfile
from pathlib import Path

import platformdirs

from daruma.state.errors import DarumaError


def data_dir() -> Path:
    """Return ``DARUMA_DATA_DIR``, else the user's data folder for Daruma; it may not exist yet.

    Postgres refuses to run as root, and the account it then runs as can not enter root's home: for
    root it is a folder of the system.
    """
    try:
        if given := os.environ.get("DARUMA_DATA_DIR"):
            return Path(given).expanduser().absolute()
        own = None if os.geteuid() == 0 else platformdirs.user_data_path("daruma")
    except RuntimeError:  # an account without a home, as in a container
        raise DarumaError(
            "there is no home folder to keep data in: set DARUMA_DATA_DIR to a folder, or HOME"
        ) from None
    return own or Path("/var/lib/daruma")


def write_private(file: Path, text: str) -> None:
    """Write a file that only the user can read, whole or not at all; its folder is made."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False, encoding="utf-8") as new:
        new.write(text)
    Path(new.name).replace(file)
