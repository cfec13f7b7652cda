"""What a workspace holds that a level can not keep from commands: it is said with every result."""

import os
import sys
from pathlib import Path
from typing import Final

from daruma.tools.sandbox.hidden import seen, within
from daruma.tools.sandbox.level import Level

PROGRAM: Final = Path(__file__).resolve().parents[2]
"""Where Daruma's modules lie: in a checkout its root, else a folder of site-packages."""

OWN_PROGRAM: Final = "Daruma's own program, which lies in the workspace"
SECRETS: Final = "secrets that lie in the workspace"


def open_in(workspace: Path, level: Level) -> tuple[str, ...]:
    """Return what is open in this workspace only.

    At level namespace the interpreter's folders are mounted to be read only, and secret places
    hidden; Landlock can allow or deny nothing in a folder that may be written.
    """
    if level == "none":
        return ()
    folders = {Path(sys.prefix), Path(sys.base_prefix)}
    inside = {each for each in folders if each != workspace and within(each, [workspace])}
    kept = inside if level == "namespace" else set()
    own = any(within(each, [workspace]) and not within(each, kept) for each in (PROGRAM, *folders))
    return (*((OWN_PROGRAM,) if own else ()), *_secrets(workspace, level))


def _secrets(workspace: Path, level: Level) -> tuple[str, ...]:
    if level == "namespace":
        return ()
    return (SECRETS,) if any(within(each, [workspace]) for each in seen(os.environ).hidden) else ()
