"""What can go wrong between the machine and a chat model, as one small tree.

    ModelError
    ├── ModelUnavailable     no model can be made from the configuration
    │   └── ScriptInvalid    what was given as a script is not one
    ├── BrokenAnswer         an answer that can not be read, or that was broken off
    ├── CircuitOpen          a model that is not asked, as it failed just now
    └── ScriptedFault        a script's `raise`: stands for any failure of a model
    AssertionError
    └── ScriptError          the machine and the script disagree: a bug in one of them
        ├── ScriptMismatch   the request lacks what the turn expects
        └── ScriptExhausted  the script has no turn left for this role

A `ScriptError` is deliberately no `ModelError`: a machine that recovers from failing models must
not recover from a broken test.
"""

from daruma.state.errors import DarumaError


class ModelError(DarumaError):
    """Raised when a chat model cannot be made or does not answer."""


class ModelUnavailable(ModelError):
    """Raised when the configuration names no usable model; the message is one line."""


class ScriptInvalid(ModelUnavailable):
    """Raised when a script cannot be read; the message is one line that says where."""


class BrokenAnswer(ModelError):
    """Raised when what came back is no whole answer."""


class CircuitOpen(ModelError):
    """Raised instead of asking a model that keeps failing, where another one can be asked."""


class ScriptedFault(ModelError):
    """Raised by a scripted model where its script says `raise`.

    ``status_code`` is the HTTP status it stands for, under the name that OpenAI's client has.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status_code = status


class ScriptError(AssertionError):
    """Raised when a scripted model is asked something its script does not hold."""


class ScriptMismatch(ScriptError):
    """Raised when a request lacks a text or a tool that the turn expects."""


class ScriptExhausted(ScriptError):
    """Raised when a role is asked once more than its script has turns."""
