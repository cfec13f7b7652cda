"""Daruma: an agent as an explicit, typed state machine on LangGraph.

This module is the public surface; everything else is reached through it or by its full name
(``daruma.graph``, ``daruma.nodes``, ``daruma.tools``, ``daruma.state``).
"""

import gc
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

# In a checkout the four packages lie at the repository's root, in a wheel beside this file.
if Path(__file__).parent.parent.name == ".src":
    __path__.insert(0, str(Path(__file__).parents[2]))

if TYPE_CHECKING:
    from daruma.graph.build import build_graph
    from daruma.graph.follow import ListedOrigins, server_sent, status_of
    from daruma.graph.models import ClientPerLoop, ScriptedChatModel
    from daruma.graph.storage import aopen_postgres, open_postgres
    from daruma.graph.workers import acancel, asubmit, asweep, awork, cancel, submit, sweep, work
    from daruma.state.result import TaskResult
    from daruma.state.settings import Settings, UntrustedSettings
    from daruma.tools.hooks import Deny, HookInput, hook

__all__ = [
    "ClientPerLoop",
    "Deny",
    "HookInput",
    "ListedOrigins",
    "ScriptedChatModel",
    "Settings",
    "TaskResult",
    "UntrustedSettings",
    "acancel",
    "aopen_postgres",
    "asubmit",
    "asweep",
    "awork",
    "build_graph",
    "cancel",
    "hook",
    "open_postgres",
    "server_sent",
    "status_of",
    "submit",
    "sweep",
    "work",
]

_HOMES = {
    "ClientPerLoop": "daruma.graph.models",
    "Deny": "daruma.tools.hooks",
    "HookInput": "daruma.tools.hooks",
    "ListedOrigins": "daruma.graph.follow",
    "ScriptedChatModel": "daruma.graph.models",
    "Settings": "daruma.state.settings",
    "TaskResult": "daruma.state.result",
    "UntrustedSettings": "daruma.state.settings",
    "acancel": "daruma.graph.workers",
    "aopen_postgres": "daruma.graph.storage",
    "asubmit": "daruma.graph.workers",
    "asweep": "daruma.graph.workers",
    "awork": "daruma.graph.workers",
    "build_graph": "daruma.graph.build",
    "cancel": "daruma.graph.workers",
    "hook": "daruma.tools.hooks",
    "open_postgres": "daruma.graph.storage",
    "server_sent": "daruma.graph.follow",
    "status_of": "daruma.graph.follow",
    "submit": "daruma.graph.workers",
    "sweep": "daruma.graph.workers",
    "work": "daruma.graph.workers",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: ``daruma --help`` does not wait for LangGraph.

    What an import makes stays. To look through it for garbage again and again, as Python does while
    objects pile up, takes an eighth of the time; so that is put off until it is done.
    """
    if name not in _HOMES:
        raise AttributeError(f"module 'daruma' has no attribute {name!r}")
    collects = gc.isenabled()
    gc.disable()
    try:
        value = globals()[name] = _found(name)
    finally:
        if collects:
            gc.enable()
    return value


def _found(name: str) -> Any:
    """Return a public name's value; for one of an extra that is missing, what says so when called.

    So ``from daruma import *`` gives all that is there, whatever else is not.
    """
    try:
        return getattr(import_module(_HOMES[name]), name)
    except ImportError as error:
        from daruma.state.errors import DarumaError

        if not isinstance(error, DarumaError):
            raise
        return _missing(name, error.with_traceback(None))


def _missing(name: str, error: ImportError) -> Any:
    def missing(*_: Any, **__: Any) -> NoReturn:
        raise type(error)(*error.args)

    missing.__name__ = missing.__qualname__ = name
    missing.__doc__ = str(error)
    return missing


def __dir__() -> list[str]:
    """Return what can be asked for, imported yet or not."""
    return sorted({*globals(), *__all__})
