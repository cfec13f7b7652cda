"""The errors that are meant for people: their base, and those of storage."""

from typing import ClassVar

# --- The base of all errors that are meant for people.


class DarumaError(Exception):
    """An error whose text is one clear line: what was wrong, and what to do."""


# --- What can be wrong with storage itself, apart from what a run does with it.


class CutOff(DarumaError):
    """Raised in a run that can not be written down any more, and so must not go on.

    It is no failure of the task: it leaves the machine as it is, and the thread stays before the
    node that it was raised in.
    """


class StorageUnavailable(CutOff):
    """Raised when the database can not be reached or used; one line with what to do about it.

    Nothing is lost: what was stored is there when the database is back, and a run goes on from it.
    """

    code: ClassVar[str] = "storage_unavailable"


class DamagedState(DarumaError):
    """Raised when stored state is not what this version of the program may read; names the type."""


class ThreadIdRefused(DarumaError):
    """Raised for a thread's id that no database keeps as it is; nothing was looked for."""


class OtherFormat(DarumaError):
    """Raised for a database that another version of the program wrote; it is left as it is."""


class KeyRefused(DarumaError):
    """Raised for a key that seals state and is none, or is not that of the database.

    Neither the key nor any part of it is in the text.
    """


class Busy(DarumaError):
    """Raised when somebody else is at work there; nothing was done, and nothing is lost."""


class ThreadBusy(Busy):
    """Raised when another run holds the thread: one thread is run by one process at a time."""


class WorkspaceBusy(Busy):
    """Raised when another run on this host works in the workspace, or in a folder above or in it.

    Two that write into the same files would undo each other's work.
    """


class HoldLost(CutOff):
    """Raised in a run that another process has taken its thread from; it can write no more.

    That happens to one that showed no sign of life for the length of a lease: frozen, or cut off
    from the database.
    """

    def __init__(self, thread_id: str) -> None:
        super().__init__(
            f"thread {thread_id!r} was taken over by another process, as this one had shown no "
            "sign of life: nothing more is written here; `daruma show` says where it stands"
        )
