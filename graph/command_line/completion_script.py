"""``--show-completion`` and ``--install-completion`` with the name of a shell, as ``zsh``.

Without one the shell is found out from the process that called.
"""

from collections.abc import Sequence
from typing import Final

import typer

SHELLS: Final = ("bash", "zsh", "fish")
_SHOW, _INSTALL = "--show-completion", "--install-completion"
_NAME, _VARIABLE = "daruma", "_DARUMA_COMPLETE"


def completion_asked(args: Sequence[str]) -> bool:
    """Show or install the completion for a shell that is named; False where that is not asked.

    Raises a usage error for another shell.
    """
    match args:
        case [str(what), str(shell)] if what in (_SHOW, _INSTALL):
            pass
        case _:
            return False
    from typer._completion_shared import get_completion_script, install

    if shell not in SHELLS:
        raise typer.BadParameter(f"there is no completion for {shell!r}: {', '.join(SHELLS)}")
    if what == _SHOW:
        typer.echo(get_completion_script(prog_name=_NAME, complete_var=_VARIABLE, shell=shell))
    else:
        _, file = install(shell, _NAME, _VARIABLE)
        typer.echo(f"{shell} completion is in {file}: it takes effect in a new terminal")
    return True
