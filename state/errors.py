"""The base of all errors that are meant for people."""


class DarumaError(Exception):
    """An error whose text is one clear line: what was wrong, and what to do."""
