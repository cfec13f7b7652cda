"""Protocols by which other programs run tasks: MCP for agents, ACP for editors, AG-UI for pages.

They map the machine's events and questions, and the replies to them, onto what a protocol has.
Each is imported when it is used: a package that is missing for it is said then, in one line.
"""

from typing import TYPE_CHECKING

from daruma._doors import open_late
from daruma.state.errors import DarumaError

if TYPE_CHECKING:
    from daruma.graph.protocols._acp import serve_acp
    from daruma.graph.protocols._ag_ui import ag_ui_events
    from daruma.graph.protocols._mcp import serve_mcp
    from daruma.graph.protocols._threads import ClientThreads
else:

    def _explain(name: str) -> "ProtocolMissing | None":
        extra = name.replace("_", "-")
        said = f"{extra} needs a package: pip install 'daruma-agent[{extra}]'"
        return ProtocolMissing(said) if name in ("acp", "ag_ui", "mcp") else None

    __getattr__ = open_late(
        __name__,
        {
            "_acp": "serve_acp",
            "_ag_ui": "ag_ui_events",
            "_mcp": "serve_mcp",
            "_threads": "ClientThreads",
        },
        _explain,
    )


class ProtocolMissing(DarumaError, ImportError):
    """Raised when the package of a protocol is not installed."""


__all__ = ["ClientThreads", "ag_ui_events", "serve_acp", "serve_mcp"]
