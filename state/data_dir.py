"""The one folder outside of workspaces that Daruma keeps things in."""

import os
from pathlib import Path

import platformdirs


def data_dir() -> Path:
    """Return ``DARUMA_DATA_DIR``, else the user's data folder for Daruma; it may not exist yet."""
    given = os.environ.get("DARUMA_DATA_DIR")
    return Path(given).expanduser() if given else platformdirs.user_data_path("daruma")
