"""Waiting until what was written is on the disk."""

import ctypes
import os


def sync_file_system(fd: int) -> None:
    """Wait until all that was written to the file system of an open file is on its disk."""
    syncfs = getattr(ctypes.CDLL(None), "syncfs", None)
    if syncfs is None or syncfs(ctypes.c_int(fd)) != 0:
        os.sync()
