"""What can be wrong with storage itself, apart from what a run does with it."""


class StorageUnavailable(Exception):
    """Raised when the database can not be reached or used; one line with what to do about it."""


class DamagedState(Exception):
    """Raised when stored state is not what this version of the program may read; names the type."""
