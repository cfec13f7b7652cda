"""The sandbox: what confines commands, proved before it is relied on.

``open_best`` gives the strongest level that a probe could not break out of: bubblewrap with
namespaces, or Landlock, or none, where every command asks a person. ``supervisor`` and ``probe``
are run by their path.
"""

from daruma.tools.sandbox._mounts import folders_shown_by_path
from daruma.tools.sandbox._opening import open_best, open_sandbox, require_mechanism
from daruma.tools.sandbox._sandbox import (
    REMEDY,
    STRENGTH,
    Sandbox,
    SandboxUnavailable,
    read_only_refusal,
    sandbox_hint,
)
from daruma.tools.sandbox.supervisor import SUPERVISOR

__all__ = [
    "REMEDY",
    "STRENGTH",
    "SUPERVISOR",
    "Sandbox",
    "SandboxUnavailable",
    "folders_shown_by_path",
    "open_best",
    "open_sandbox",
    "read_only_refusal",
    "require_mechanism",
    "sandbox_hint",
]
