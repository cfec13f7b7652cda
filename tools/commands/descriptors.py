"""Waiting for a descriptor, whatever its number: select(2) takes none above 1023."""

import select


def turns_readable(fd: int, seconds: float) -> bool:
    """Wait until there is something to read, or the other end is gone; False after ``seconds``."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
