"""Making the call of a LangChain tool: as LangChain does where anybody listens, else by itself.

LangChain reads the function's signature and its hints, and the schema's, at each call: to tell
listeners of it, and to see what else the function wants. That is ten times what the call takes, and
of calls that were asked for together each begins after that of the others.
"""

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any, Final, get_type_hints

from langchain_core.callbacks import BaseCallbackManager, CallbackManager
from langchain_core.messages import ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.tools import Tool as PlainTool
from langchain_core.tools.base import _format_output

from daruma.tools.given_arguments import given_arguments
from daruma.tools.langchain_arguments import KEPT
from daruma.tools.langchain_own import Own
from daruma.tools.tool_threads import in_tool_thread

Function = Callable[..., Any]

_OWN: Final = Own(StructuredTool, "ainvoke", "_arun", "_run")
_OF_ALL: Final = Own(BaseTool, "invoke", "run", "arun")
_BELOW: Final = Own(BaseTool, "ainvoke")
"""What stands between a caller and the function."""

_INHERITED: Final = {each._arun for each in (BaseTool, StructuredTool, PlainTool)}

_CALL_ID: Final = "call"
"""LangChain makes a message of a result only if the call had an id; what it is nobody reads."""


async def called(tool: BaseTool, plain: Function | None, args: Mapping[str, Any]) -> Any:
    """Return what a tool says; ``plain`` is what :func:`plain_function` found when it was wrapped.

    That is a message as LangChain makes it, or its text alone. A tool that blocks runs on a thread.
    Raises what the tool raises.
    """
    call = ToolCall(type="tool_call", id=_CALL_ID, name=tool.name, args=dict(args))
    if plain is None or not _is_all(plain, tool):
        return await (tool.ainvoke(call) if is_async(tool) else in_tool_thread(tool.invoke, call))
    if not is_async(tool):
        return await in_tool_thread(_made, tool, plain, call)
    given = _given(tool, call)
    if given is None:
        return await tool.ainvoke(call)
    return _answered(tool, await plain(**given))


def is_async(tool: BaseTool) -> bool:
    """Whether a tool has an async form of its own; LangChain's stand-in blocks a shared thread."""
    if type(tool)._arun in _INHERITED:
        return getattr(tool, "coroutine", None) is not None
    return True


def plain_function(tool: BaseTool) -> Function | None:
    """Return the function of a tool that is given its arguments and nothing else; None elsewhere.

    One of a class of its own may do anything; one that can not be read may want anything.
    """
    function = _function(tool)
    if type(tool) is not StructuredTool or not isinstance(tool.args_schema, type) or not function:
        return None
    try:
        named, hints = signature(function).parameters, get_type_hints(function)
    except Exception:  # noqa: BLE001  # hints are evaluated: whatever their names come to
        return None
    return None if "callbacks" in named or RunnableConfig in hints.values() else function


def _function(tool: BaseTool) -> Function | None:
    return getattr(tool, "coroutine", None) or getattr(tool, "func", None)


def _is_all(function: Function, tool: BaseTool) -> bool:
    """Whether LangChain would do no more now than call this: tools can change, and be listened to.

    Handlers come from the run around it, the tool, the process and the environment.
    """
    if not (_OWN.of(tool) and _OF_ALL.of(tool) and _BELOW.of(BaseTool)):
        return False
    handles = tool.handle_tool_error or tool.handle_validation_error
    if handles or tool.response_format != "content" or _function(tool) is not function:
        return False
    around = (var_child_runnable_config.get() or {}).get("callbacks")
    if isinstance(around, BaseCallbackManager) and not around.handlers:
        around = None  # nobody it could tell: to copy it for that takes as long as all the rest
    return not CallbackManager.configure(around, tool.callbacks, tool.verbose).handlers


def _made(tool: BaseTool, function: Function, call: ToolCall) -> Any:
    given = _given(tool, call)
    return tool.invoke(call) if given is None else _answered(tool, function(**given))


def _given(tool: BaseTool, call: ToolCall) -> dict[str, Any] | None:
    """Return the arguments as the schema takes them; None if LangChain would not pass one on."""
    given = given_arguments(tool, call["args"], _CALL_ID)
    return None if any(name in given for name in KEPT) else given


def _answered(tool: BaseTool, content: Any) -> Any:
    if type(content) is str:  # the message that LangChain makes of it would be read and thrown away
        return content
    return _format_output(content, None, _CALL_ID, tool.name, "success")
