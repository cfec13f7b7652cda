"""Names for threads that people can read aloud, remember for a minute and type."""

import secrets

from daruma.state.errors import DarumaError

_MANNERS = (
    "able bold brave brisk calm clear deft eager fair fine fond frank glad grand hardy keen kind "
    "lively lucky mild neat nimble proud quick quiet ready sharp steady stout swift warm wise"
)
_ANIMALS = (
    "badger bear beaver crane crow deer dove eagle falcon finch fox goose hare hawk heron horse "
    "ibex jay lark lynx marten mole otter owl panda raven robin seal stork swan tiger wolf"
)
_CHARACTERS = "23456789abcdefghjkmnpqrstuvwxyz"


class ThreadRefused(DarumaError):
    """Raised for a thread's name that can not be used, or that names no thread."""


def no_such(name: str, checkpoint: str | None = None) -> ThreadRefused:
    """Return the error for a name that no thread has, or a checkpoint that this one has not."""
    if checkpoint:
        return ThreadRefused(f"thread {name!r} has no checkpoint {checkpoint!r}")
    return ThreadRefused(f"there is no thread {name!r}: see `daruma threads`")


def new_thread_name() -> str:
    """Return a fresh name such as ``brave-otter-7k2f``: one of about 900 million."""
    tail = "".join(secrets.choice(_CHARACTERS) for _ in range(4))
    return f"{secrets.choice(_MANNERS.split())}-{secrets.choice(_ANIMALS.split())}-{tail}"


def checked_thread_name(name: str) -> str:
    """Return a name that a person chose. Raises :class:`ThreadRefused` if it can not be typed."""
    if not name.strip() or not name.isprintable() or name.startswith("-"):
        raise ThreadRefused(f"the thread name {name!r} can not be used: take letters and digits")
    return name
