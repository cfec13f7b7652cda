"""The tools of one graph: which there are, and which a task may see."""

from collections.abc import Callable, Iterable
from typing import Any

from langchain_core.tools import BaseTool

from daruma.state.errors import DarumaError
from daruma.tools.application_tool import from_application
from daruma.tools.builtin_tools import BUILTIN_TOOLS
from daruma.tools.tool import Tool


class ToolNameConflictError(DarumaError):
    """Raised when two tools of one registry have the same name; names it."""


class Registry:
    """The built-in tools and the application's own, by name."""

    def __init__(self, application_tools: Iterable[BaseTool | Callable[..., Any]] = ()) -> None:
        """Raises :class:`ToolNameConflictError` for two tools of one name (TL-05)."""
        self._tools: dict[str, Tool] = {}
        for tool in (*BUILTIN_TOOLS, *map(from_application, application_tools)):
            if tool.name in self._tools:
                raise ToolNameConflictError(f"two tools are named {tool.name!r}; rename one")
            self._tools[tool.name] = tool

    def visible(self, *, workspace: bool) -> tuple[Tool, ...]:
        """Return the tools that the model is shown; the built-in ones need a workspace."""
        return tuple(tool for tool in self._tools.values() if workspace or not tool.builtin)

    def find(self, name: str, *, workspace: bool) -> Tool | None:
        """Return the visible tool of a name. What is not shown can not be called (TL-06)."""
        return next((tool for tool in self.visible(workspace=workspace) if tool.name == name), None)
