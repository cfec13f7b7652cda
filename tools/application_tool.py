"""Tools that the application brings: LangChain tools and plain functions."""

from collections.abc import Callable, Mapping
from inspect import iscoroutinefunction
from typing import Any

from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langchain_core.tools import Tool as PlainTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.types import Command

from daruma.tools.declaration import ToolRefused, declared
from daruma.tools.errors import ToolError
from daruma.tools.langchain_arguments import not_passed_on, not_supplied
from daruma.tools.mcp import is_mcp_tool, mcp_tool
from daruma.tools.tool import Surroundings, Tool
from daruma.tools.tool_threads import in_tool_thread

_INHERITED = {each._arun for each in (BaseTool, StructuredTool, PlainTool)}


def from_application(given: BaseTool | Callable[..., Any]) -> Tool:
    """Wrap a LangChain tool, or a function with a docstring, sync or async.

    Raises :class:`~daruma.tools.declaration.ToolRefused` for a tool that could not be called, or
    whose declaration can not be meant.
    """
    tool = given if isinstance(given, BaseTool) else _from_function(given)
    function = convert_to_openai_tool(tool)["function"]

    async def run(args: Mapping[str, Any], _: Surroundings) -> str:
        return await _called(tool, dict(args))

    parameters = function.get("parameters", {"type": "object", "properties": {}})
    description = function.get("description", "")
    if is_mcp_tool(tool):
        return mcp_tool(tool, description, parameters, run)
    _refuse_unusable(tool, parameters)
    declaration = declared(tool, parameters)
    return Tool(
        name=tool.name,
        description=description,
        parameters=_without(parameters, declaration.idempotency_key),
        run=run,
        effect=declaration.effect,
        idempotent=declaration.idempotent,
        idempotency_key=declaration.idempotency_key,
        canonical=declaration.canonical,
        source=_source(tool),
        blocking=not _is_async(tool),
    )


def _without(parameters: Mapping[str, Any], argument: str) -> Mapping[str, Any]:
    """Return a schema without an argument that the model does not give."""
    properties = parameters.get("properties", {})
    return {
        **parameters,
        "properties": {name: each for name, each in properties.items() if name != argument},
        "required": [name for name in parameters.get("required", ()) if name != argument],
    }


def _refuse_unusable(tool: BaseTool, parameters: Mapping[str, Any]) -> None:
    if names := not_supplied(tool):
        raise ToolRefused(
            f"the tool {tool.name!r} wants {', '.join(names)} injected, and nothing here supplies "
            "it: give it a default, or let the tool hold what it needs"
        )
    if names := not_passed_on(tool, parameters.get("properties", ())):
        raise ToolRefused(
            f"the tool {tool.name!r} can not be given the argument {', '.join(names)}: LangChain "
            "keeps the name for itself; rename it, and list arguments one by one"
        )


def _from_function(function: Callable[..., Any]) -> StructuredTool:
    if iscoroutinefunction(function):
        return StructuredTool.from_function(coroutine=function)
    return StructuredTool.from_function(function)


async def _called(tool: BaseTool, args: dict[str, Any]) -> str:
    call = ToolCall(type="tool_call", id="call", name=tool.name, args=args)
    try:
        result = await (
            tool.ainvoke(call) if _is_async(tool) else in_tool_thread(tool.invoke, call)
        )
    except ToolException as error:
        raise ToolError(str(error)) from error
    if isinstance(result, Command):
        raise ToolError(f"{tool.name} returned a Command: it has run, and the Command was dropped")
    if not isinstance(result, ToolMessage):
        return str(result)
    if result.status == "error":  # the tool handled its own error; it is one all the same
        raise ToolError(_text(result))
    return _text(result)


def _is_async(tool: BaseTool) -> bool:
    """Whether a tool has an async form of its own; LangChain's stand-in blocks a shared thread."""
    if type(tool)._arun in _INHERITED:
        return getattr(tool, "coroutine", None) is not None
    return True


def _text(message: ToolMessage) -> str:
    """Return a result's text, and a word for every part that is none."""
    if isinstance(message.content, str):
        return str(message.content)
    blocks = message.content
    kinds = [block.get("type") for block in blocks if isinstance(block, dict)]
    return "\n".join(
        [message.text] * bool(message.text)
        + [f"[{kind} left out: only text is shown]" for kind in kinds if kind != "text"]
    )


def _source(tool: BaseTool) -> str:
    own = getattr(tool, "func", None) or getattr(tool, "coroutine", None) or type(tool)
    return f"{own.__module__}.{getattr(own, '__qualname__', type(own).__qualname__)}"
