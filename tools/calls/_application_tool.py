"""Tools that the application brings, and what it declares of them."""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from inspect import getdoc, iscoroutinefunction
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.types import Command
from pydantic import BaseModel, ConfigDict, PydanticUserError, ValidationError

from daruma.state.errors import DarumaError
from daruma.tools.calls._langchain import (
    Function,
    called,
    is_async,
    not_passed_on,
    not_supplied,
    plain_function,
)
from daruma.tools.calls._mcp import is_mcp_tool, mcp_tool
from daruma.tools.calls._results import TextWithImages
from daruma.tools.calls._tool import Canonical, DateKind, Effect, Surroundings, Tool
from daruma.tools.errors import ToolError

# --- What the application declares of a LangChain tool, in ``tool.metadata["daruma"]``.


class ToolRefused(DarumaError):
    """Raised when a tool that was passed in can not work, or declares what can not be."""


class Declaration(BaseModel):
    """What running the tool changes, whether it may be repeated, what makes its calls canonical.

    See :class:`~daruma.tools.calls.Tool` for the first, TL-19 for the last.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    effect: Effect = "external"
    idempotent: bool = False
    idempotency_key: str = ""
    argument_aliases: dict[str, str] = {}
    promote_to: str | None = None
    promote_when: list[str] = []
    dates: dict[str, DateKind] = {}
    ask_for: dict[str, str] = {}

    @property
    def canonical(self) -> Canonical | None:
        """Return what :func:`canonical_call` goes by, None for nothing."""
        changes = self.argument_aliases or self.promote_to or self.dates
        if not changes and not self.ask_for:
            return None
        return Canonical(
            self.argument_aliases,
            self.promote_to,
            tuple(self.promote_when),
            self.dates,
            self.ask_for,
        )


def read_declaration(tool: BaseTool, parameters: Mapping[str, Any]) -> Declaration:
    """Read a tool's declaration. Raises :class:`ToolRefused` for one that can not be meant."""
    try:
        declaration = Declaration.model_validate((tool.metadata or {}).get("daruma", {}))
    except ValidationError as error:
        problem = _told(error)
    else:
        problem = _contradiction(declaration, parameters)
    if problem:
        raise ToolRefused(f"the tool {tool.name!r} declares in metadata['daruma'] {problem}")
    return declaration


def _told(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    key = ".".join(map(str, first["loc"]))
    if first["type"] != "extra_forbidden":
        return f"{key or 'what'}: {first['msg']} (given: {first['input']!r:.100})"
    close = get_close_matches(key, Declaration.model_fields, n=1, cutoff=0.5)
    hint = (
        f"did you mean {close[0]!r}?" if close else f"known: {', '.join(Declaration.model_fields)}"
    )
    return f"an unknown key {key!r}; {hint}"


def _contradiction(declaration: Declaration, parameters: Mapping[str, Any]) -> str:
    if bool(declaration.promote_to) != bool(declaration.promote_when):
        return "one of promote_to and promote_when: both are needed, or neither"
    arguments = parameters.get("properties", {})
    key = declaration.idempotency_key
    if key and arguments.get(key, {}).get("type") != "string":
        return f"idempotency_key {key!r}, and that is no argument that takes a string"
    if strangers := {*declaration.dates, *declaration.ask_for} - (arguments.keys() - {key}):
        return f"dates or ask_for {min(strangers)!r}, which is no argument that the model gives"
    return _misnamed(declaration, arguments)


def _misnamed(declaration: Declaration, arguments: Mapping[str, Any]) -> str:
    named = {*arguments, *declaration.promote_when}
    for alias, name in declaration.argument_aliases.items():
        if alias in arguments:
            return f"{alias!r} as another name of {name!r}, and it is an argument of its own"
        if name not in named:
            return f"{alias!r} as another name of {name!r}, which is no argument of it"
    return ""


# --- A schema in JSON, as an MCP server has one, whose references can not be written out.

_MOST_WRITTEN_OUT = 10_000
"""Parts of a schema; LangChain writes out each reference wherever it stands, without an end."""


def _as_shown(tool: BaseTool) -> dict[str, Any]:
    """Return what a model is told of a tool; what a reference leads to is left open if it must."""
    schema = tool.args_schema
    if isinstance(schema, dict) and not _can_be_written_out(schema):
        tool = tool.model_copy(update={"args_schema": _without_references(schema)})
    shown: dict[str, Any] = convert_to_openai_tool(tool)["function"]
    return shown


def _can_be_written_out(schema: Mapping[str, Any]) -> bool:
    left = _MOST_WRITTEN_OUT

    def walk(part: Any, within: frozenset[str]) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise ValueError("too many parts")
        if isinstance(part, list):
            part = dict(enumerate(part))
        if not isinstance(part, dict):
            return
        if "$ref" in part and part["$ref"] not in within:
            walk(_target(part["$ref"], schema), within | {part["$ref"]})
        for key, each in part.items():
            if key not in {"$ref", "$defs"}:
                walk(each, within)

    try:
        walk(schema, frozenset())
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return False
    return True


def _target(reference: str, schema: Any) -> Any:
    first, *steps = reference.split("/")
    if first != "#":
        raise LookupError(reference)
    for step in steps:
        schema = schema[int(step)] if isinstance(schema, list) else schema[step]
    return schema


def _without_references(part: Any) -> Any:
    if isinstance(part, list):
        return [_without_references(each) for each in part]
    if not isinstance(part, dict):
        return part
    left_out = {"$ref", "$defs", "definitions"}
    return {key: _without_references(each) for key, each in part.items() if key not in left_out}


# --- Tools that the application brings: LangChain tools and plain functions.


def wrap_tool(given: BaseTool | Callable[..., Any]) -> Tool:
    """Wrap a LangChain tool, or a function with a docstring, sync or async.

    Raises :class:`~daruma.tools.calls.ToolRefused` for a tool that could not be
    called, or
    whose declaration can not be meant.
    """
    tool = given if isinstance(given, BaseTool) else _from_function(given)
    if not tool.name.strip() or any(each.isspace() for each in tool.name):
        word = "_".join(tool.name.split()) or "a_name"
        raise ToolRefused(f"no model can call a tool named {tool.name!r}: name it {word!r}")
    shown, plain = _as_shown(tool), plain_function(tool)

    async def run(args: Mapping[str, Any], _: Surroundings) -> str:
        return await _called(tool, plain, args)

    parameters = shown.get("parameters", {"type": "object", "properties": {}})
    description = shown.get("description", "")
    if is_mcp_tool(tool):
        return mcp_tool(tool, description, parameters, run, wrap_tool)
    _refuse_unusable(tool, parameters)
    declaration = read_declaration(tool, parameters)
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
    if isinstance(function, type) or not callable(function):
        kind = "the class " if isinstance(function, type) else ""
        what = f"{kind}{function!r:.80}"
        raise ToolRefused(f"{what} is no tool: pass functions with docstrings, or LangChain tools")
    name = getattr(function, "__name__", None)
    if name is None or name == "<lambda>":
        raise ToolRefused(f"{function!r:.80} has no name to call it by: write it as a function")
    if not getdoc(function):
        raise ToolRefused(
            f"the function {name!r} has no docstring: say there what it does, for the model to read"
        )
    try:
        if iscoroutinefunction(function):
            return StructuredTool.from_function(coroutine=function)
        return StructuredTool.from_function(function)
    except (ValueError, TypeError, NameError, PydanticUserError) as error:
        said = " ".join(str(error).split())
        raise ToolRefused(f"the function {name!r} can not be a tool: {said:.300}") from error


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
    """Return a result's text, with its images, and a word for every part that is neither."""
    if isinstance(message.content, str):
        return str(message.content)
    return TextWithImages.of(message.content)


def _source(tool: BaseTool) -> str:
    own = getattr(tool, "func", None) or getattr(tool, "coroutine", None) or type(tool)
    return f"{own.__module__}.{getattr(own, '__qualname__', type(own).__qualname__)}"
