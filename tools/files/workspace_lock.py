"""Keeping two runs of one host out of one workspace: locks on the folder itself and those above it.

The kernel drops them with the process. A folder is locked for its run alone, those above it are
shared: so neither the same folder nor one inside the other is worked in by two.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path

from daruma.state.storage import WorkspaceBusy
from daruma.tools.files.threads import entered_in_thread


@contextmanager
def workspace_locked(workspace: str | None) -> Iterator[None]:
    """Have a workspace for oneself, in this and all other processes of the host.

    Raises :class:`~daruma.state.storage.WorkspaceBusy`. A folder that is not there, or whose file
    system has no locks, is not kept: tools say themselves what they miss.
    """
    with ExitStack() as stack:
        if workspace is not None:
            real = Path(os.path.realpath(workspace))
            for folder in reversed(real.parents):
                _lock(folder, fcntl.LOCK_SH, workspace, stack)
            _lock(real, fcntl.LOCK_EX, workspace, stack)
        yield


def aworkspace_locked(workspace: str | None) -> AbstractAsyncContextManager[None]:
    """Do the same, asynchronously: in a thread, unless there is nothing to be locked."""
    return nullcontext() if workspace is None else entered_in_thread(workspace_locked(workspace))


def _lock(folder: Path, kind: int, workspace: str, stack: ExitStack) -> None:
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return
    stack.callback(os.close, opened)
    try:
        fcntl.flock(opened, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        raise WorkspaceBusy(
            f"another run on this machine works in {folder}: wait until that has stopped, or use "
            f"a copy of {workspace}"
        ) from None
    except OSError:
        return
