"""What can be wrong with storage itself, apart from what a run does with it."""

from daruma.state.errors import DarumaError


class StorageUnavailable(DarumaError):
    """Raised when the database can not be reached or used; one line with what to do about it."""


class DamagedState(DarumaError):
    """Raised when stored state is not what this version of the program may read; names the type."""
