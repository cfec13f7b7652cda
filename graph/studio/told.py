"""Errors as the server passes them on."""

from daruma.state.errors import DarumaError


class Told(DarumaError, ValueError):
    """Raised in the place of any error of ours, with its one line.

    The server tells a client no more than "An internal error occurred" of an error that is none of
    Python's own.
    """


def as_told(error: DarumaError) -> Told:
    """Return an error in the form whose text reaches the client."""
    return Told(f"{type(error).__name__}: {error}")
