"""What we use of LangChain's agents; or one line that says how to get them."""

from daruma.state.errors import DarumaError


class MiddlewareMissing(DarumaError, ImportError):
    """Raised when LangChain's agents are not installed."""


try:
    from langchain.agents.middleware import (
        AgentMiddleware,
        AgentState,
        ModelRequest,
        ModelResponse,
        hook_config,
    )
    from langchain.agents.middleware.types import PrivateStateAttr
    from langgraph.prebuilt.tool_node import ToolCallRequest
except ImportError as error:
    raise MiddlewareMissing(
        "middleware needs LangChain's agents: pip install 'daruma-agent[middleware]'"
    ) from error

__all__ = [
    "AgentMiddleware",
    "AgentState",
    "ModelRequest",
    "ModelResponse",
    "PrivateStateAttr",
    "ToolCallRequest",
    "hook_config",
]
