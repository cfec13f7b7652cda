"""The one folder outside of workspaces that Daruma keeps things in."""

import os
from pathlib import Path

import platformdirs


def data_dir() -> Path:
    """Return ``DARUMA_DATA_DIR``, else the user's data folder for Daruma; it may not exist yet.

    Postgres refuses to run as root, and the account it then runs as can not enter root's home: for
    root it is a folder of the system.
    """
    if given := os.environ.get("DARUMA_DATA_DIR"):
        return Path(given).expanduser().absolute()
    return Path("/var/lib/daruma") if os.geteuid() == 0 else platformdirs.user_data_path("daruma")
