"""What a tool may expect to go wrong: one tree, whose texts are written for the model.

::

    ToolError
    ├── PathRefused          a name that may not be used
    ├── FileUnavailable      missing, no regular file, too large, binary, disk trouble
    │   └── FileMissing      nothing is there by that name
    ├── EditRefused          an edit that does not fit the file
    │   └── FileChanged      the file is not what was last seen, or last written
    ├── SearchRefused        a search that can not be carried out, or ran out of time
    ├── CommandRefused       a command that could not be started
    ├── NotPermitted         a call that policy or approval do not, or no longer, let run
    └── OutcomeUnknown       a call that may have had its effect
"""


class ToolError(Exception):
    """Raised when a tool can not do what it was asked; its text is one line, told to the model."""


class PathRefused(ToolError):
    """Raised when a path leads out of the workspace, into `.git`, or is no usable name."""


class FileUnavailable(ToolError):
    """Raised when a file is missing, special, binary or too large, or the disk refuses."""


class FileMissing(FileUnavailable):
    """Raised when there is nothing at a path."""


class EditRefused(ToolError):
    """Raised when an edit is incomplete or does not fit the file's text."""


class FileChanged(EditRefused):
    """Raised when a file is no longer what was last seen, so that nobody's work is overwritten."""


class SearchRefused(ToolError):
    """Raised when a search is not understood, or does not end in its time."""


class CommandRefused(ToolError):
    """Raised when a command can not be started at all."""


class SandboxViolation(ToolError):
    """Raised when the sandbox ended a command: for a limit, or a system call (SA-02)."""


class NotPermitted(ToolError):
    """Raised when a call may not run, though it was on its way to."""


class GroundsChanged(Exception):
    """Raised when a call would not run as it was approved: it is asked again, with ``changes``."""

    def __init__(self, changes: tuple[str, ...]) -> None:
        super().__init__("; ".join(changes))
        self.changes = changes


class NotReadOnly(Exception):
    """Raised when a command could not be run read-only, and had no effect: a person is asked."""


class OutcomeUnknown(ToolError):
    """Raised when a call with an effect was given up: it may or may not have happened."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"outcome_unknown: {what}; it may or may not have happened: look before you call it "
            "again"
        )
