"""What confines commands, said and never guessed."""

from typing import Literal

from daruma.state.errors import DarumaError

Level = Literal["none", "landlock", "namespace"]


class SandboxUnavailable(DarumaError):
    """Raised when the settings require a level of confinement that is not to be had."""


def active_level(required: Level | None) -> Level:
    """Return the level that commands run at. Raises :class:`SandboxUnavailable` for a weaker one.

    There is one level so far: an owned process group, which confines nothing and is called none.
    """
    if required in (None, "none"):
        return "none"
    raise SandboxUnavailable(
        f"sandbox.require is {required!r}, but commands can only run unconfined (none): "
        "set sandbox.require to none, or leave it out"
    )
