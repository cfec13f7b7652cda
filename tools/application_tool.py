"""Tools that the application brings: LangChain tools and plain functions."""

from collections.abc import Callable, Mapping
from inspect import iscoroutinefunction
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.types import Command

from daruma.tools.declaration import ToolRefused, declared
from daruma.tools.errors import ToolError
from daruma.tools.langchain_arguments import not_passed_on, not_supplied
from daruma.tools.langchain_call import Function, called, is_async, plain_function
from daruma.tools.mcp import is_mcp_tool, mcp_tool
from daruma.tools.tool import Surroundings, Tool


def from_application(given: BaseTool | Callable[..., Any]) -> Tool:
    """Wrap a LangChain tool, or a function with a docstring, sync or async.

    Raises :class:`~daruma.tools.declaration.ToolRefused` for a tool that could not be called, or
    whose declaration can not be meant.
    """
    tool = given if isinstance(given, BaseTool) else _from_function(given)
    shown, plain = convert_to_openai_tool(tool)["function"], plain_function(tool)

    async def run(args: Mapping[str, Any], _: Surroundings) -> str:
        return await _called(tool, plain, args)

    parameters = shown.get("parameters", {"type": "object", "properties": {}})
    description = shown.get("description", "")
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
        blocking=not is_async(tool),
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


async def _called(tool: BaseTool, plain: Function | None, args: Mapping[str, Any]) -> str:
    try:
        result = await called(tool, plain, args)
    except ToolException as error:
        raise ToolError(str(error)) from error
    if isinstance(result, Command):
        raise ToolError(f"{tool.name} returned a Command: it has run, and the Command was dropped")
    if not isinstance(result, ToolMessage):
        return str(result)
    if result.status == "error":  # the tool handled its own error; it is one all the same
        raise ToolError(_text(result))
    return _text(result)


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
