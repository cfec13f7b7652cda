"""Tools that the application brings: LangChain tools and plain functions."""

from collections.abc import Callable, Mapping
from inspect import iscoroutinefunction
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from daruma.tools.errors import ToolError
from daruma.tools.tool import Surroundings, Tool


def from_application(given: BaseTool | Callable[..., Any]) -> Tool:
    """Wrap a LangChain tool, or a function with a docstring, sync or async."""
    tool = given if isinstance(given, BaseTool) else _from_function(given)
    function = convert_to_openai_tool(tool)["function"]

    async def run(args: Mapping[str, Any], _: Surroundings) -> str:
        call = {"type": "tool_call", "id": "call", "name": tool.name, "args": dict(args)}
        result = await tool.ainvoke(call)
        if not isinstance(result, ToolMessage):
            return str(result)
        if result.status == "error":  # the tool handled its own error; it is one all the same
            raise ToolError(result.text)
        return result.text

    return Tool(
        name=tool.name,
        description=function.get("description", ""),
        parameters=function.get("parameters", {"type": "object", "properties": {}}),
        run=run,
    )


def _from_function(function: Callable[..., Any]) -> StructuredTool:
    if iscoroutinefunction(function):
        return StructuredTool.from_function(coroutine=function)
    return StructuredTool.from_function(function)
