"""Tools that the application brings: what it declares of them, wrapping them, and calling them."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from difflib import get_close_matches
from functools import lru_cache
from inspect import getdoc, iscoroutinefunction, signature
from types import FunctionType, MethodType
from typing import Any, Final, get_args, get_type_hints

from langchain_core.callbacks import BaseCallbackManager, CallbackManager
from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool, ToolException
from langchain_core.tools import Tool as PlainTool
from langchain_core.tools.base import get_all_basemodel_annotations
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.types import Command
from pydantic import BaseModel, ConfigDict, PydanticUserError, RootModel, ValidationError

from daruma.state.errors import DarumaError
from daruma.tools.calls._mcp import KEPT, is_mcp_tool, mcp_tool
from daruma.tools.calls._results import TextWithImages
from daruma.tools.calls._tool import Canonical, DateKind, Effect, Surroundings, Tool
from daruma.tools.errors import ToolError
from daruma.tools.threads import in_tool_thread

Function = Callable[..., Any]

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
        """Return what makes its calls canonical, None for nothing."""
        if not (self.argument_aliases or self.promote_to or self.dates or self.ask_for):
            return None
        promoted = self.promote_to, tuple(self.promote_when)
        return Canonical(self.argument_aliases, *promoted, self.dates, self.ask_for)


def read_declaration(tool: BaseTool, parameters: Mapping[str, Any]) -> Declaration:
    """Read a tool's declaration. Raises :class:`ToolRefused` for one that can not be meant."""
    try:
        declaration = Declaration.model_validate((tool.metadata or {}).get("daruma", {}))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"]))
        problem = f"{key or 'what'}: {first['msg']} (given: {first['input']!r:.100})"
        if first["type"] == "extra_forbidden":
            close = get_close_matches(key, Declaration.model_fields, n=1, cutoff=0.5)
            known = f"known: {', '.join(Declaration.model_fields)}"
            meant = f"did you mean {close[0]!r}?" if close else known
            problem = f"an unknown key {key!r}; {meant}"
    else:
        problem = _contradiction(declaration, parameters)
    if problem:
        raise ToolRefused(f"the tool {tool.name!r} declares in metadata['daruma'] {problem}")
    return declaration


def _contradiction(declaration: Declaration, parameters: Mapping[str, Any]) -> str:
    if bool(declaration.promote_to) != bool(declaration.promote_when):
        return "one of promote_to and promote_when: both are needed, or neither"
    arguments = parameters.get("properties", {})
    key = declaration.idempotency_key
    if key and arguments.get(key, {}).get("type") != "string":
        return f"idempotency_key {key!r}, and that is no argument that takes a string"
    if strangers := {*declaration.dates, *declaration.ask_for} - (arguments.keys() - {key}):
        return f"dates or ask_for {min(strangers)!r}, which is no argument that the model gives"
    for alias, name in declaration.argument_aliases.items():
        if alias in arguments:
            return f"{alias!r} as another name of {name!r}, and it is an argument of its own"
        if name not in {*arguments, *declaration.promote_when}:
            return f"{alias!r} as another name of {name!r}, which is no argument of it"
    return ""


# --- A schema in JSON, as an MCP server has one, whose references can not be written out.

_MOST_WRITTEN_OUT = 10_000
"""Parts of a schema; LangChain writes out each reference wherever it stands, without an end."""


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


# --- Wrapping LangChain tools and plain functions (TL-22).


def wrap_tool(given: BaseTool | Function) -> Tool:
    """Wrap a LangChain tool, or a function with a docstring, sync or async.

    Raises :class:`~daruma.tools.calls.ToolRefused` for a tool that could not be called, or whose
    declaration can not be meant.
    """
    tool = given if isinstance(given, BaseTool) else _from_function(given)
    schema, told = tool.args_schema, tool
    if isinstance(schema, dict) and not _can_be_written_out(schema):  # its references stay open
        told = tool.model_copy(update={"args_schema": _without_references(schema)})
    shown: dict[str, Any] = convert_to_openai_tool(told)["function"]
    plain = plain_function(tool)

    async def run(args: Mapping[str, Any], _: Surroundings) -> str:
        return await _run(tool, plain, args)

    parameters = shown.get("parameters", {"type": "object", "properties": {}})
    description = shown.get("description", "")
    if is_mcp_tool(tool):
        return mcp_tool(tool, description, parameters, run, wrap_tool)
    _refuse_unusable(tool, parameters)
    declaration = read_declaration(tool, parameters)
    key = declaration.idempotency_key
    own = getattr(tool, "func", None) or getattr(tool, "coroutine", None) or type(tool)
    known = parameters.get("properties", {}).items()
    return Tool(
        name=tool.name,
        description=description,
        parameters={
            **parameters,
            "properties": {name: each for name, each in known if name != key},
            "required": [name for name in parameters.get("required", ()) if name != key],
        },
        run=run,
        effect=declaration.effect,
        idempotent=declaration.idempotent,
        idempotency_key=key,
        canonical=declaration.canonical,
        source=f"{own.__module__}.{getattr(own, '__qualname__', type(own).__qualname__)}",
        blocking=not is_async(tool),
    )


def foreign_tool(given: BaseTool | Function | dict[str, Any]) -> Tool | None:
    """Return a tool that an agent runs itself, to judge and mend its calls by.

    None for a provider's own tool, which is called by no name. What a tool declares for the machine
    alone, and what can not be meant, counts for nothing here.
    """
    if isinstance(given, dict) and not (given.get("function") or given.get("parameters")):
        return None
    function = convert_to_openai_tool(given)["function"]
    parameters = function.get("parameters", {"type": "object", "properties": {}})
    effect: Effect = "external"
    if isinstance(given, BaseTool):
        with suppress(ToolRefused):
            effect = read_declaration(given, parameters).effect

    async def run(_: Mapping[str, Any], __: Surroundings) -> str:
        raise NotImplementedError("the agent runs its tools itself")

    return Tool(
        name=function["name"],
        description=function.get("description", ""),
        parameters=parameters,
        run=run,
        effect=effect,
        origin="mcp" if isinstance(given, BaseTool) and is_mcp_tool(given) else "application",
    )


def _from_function(function: Function) -> StructuredTool:
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
        return structured_tool(function)
    except (ValueError, TypeError, NameError, PydanticUserError) as error:
        said = " ".join(str(error).split())
        raise ToolRefused(f"the function {name!r} can not be a tool: {said:.300}") from error


def structured_tool(function: Function) -> StructuredTool:
    """Return LangChain's tool of a function, sync or async, with the metadata that it carries."""
    metadata = getattr(function, "metadata", None)
    if iscoroutinefunction(function):
        return StructuredTool.from_function(coroutine=function, metadata=metadata)
    return StructuredTool.from_function(function, metadata=metadata)


async def _run(tool: BaseTool, plain: Function | None, args: Mapping[str, Any]) -> str:
    """Return a result's text, with its images, and a word for every part that is neither."""
    try:
        result = await call_tool(tool, plain, args)
    except ToolException as error:
        raise ToolError(str(error)) from error
    if isinstance(result, Command):
        raise ToolError(f"{tool.name} returned a Command: it has run, and the Command was dropped")
    if not isinstance(result, ToolMessage):
        return str(result)
    content = result.content
    text = str(content) if isinstance(content, str) else TextWithImages.of(content)
    if result.status == "error":  # the tool handled its own error; it is one all the same
        raise ToolError(text)
    return text


# --- Arguments that do not get through to a LangChain tool: nobody supplies them, or they are
# dropped. Both are noticed before a run: a call is never made with other arguments than were given.

_MANGLED = {"v__args": "args", "v__kwargs": "kwargs"}
"""What Pydantic calls the fields of a function's starred arguments; it is called with that."""


def _refuse_unusable(tool: BaseTool, parameters: Mapping[str, Any]) -> None:
    if not tool.name.strip() or any(each.isspace() for each in tool.name):
        word = "_".join(tool.name.split()) or "a_name"
        raise ToolRefused(f"no model can call a tool named {tool.name!r}: name it {word!r}")
    if names := not_supplied(tool):
        raise ToolRefused(
            f"the tool {tool.name!r} wants {', '.join(names)} injected, and nothing here supplies "
            "it: give it a default, or let the tool hold what it needs"
        )
    fields = getattr(tool.args_schema, "model_fields", {})
    mangled = [name for field, name in _MANGLED.items() if field in fields]
    names = [name for name in KEPT if name in parameters.get("properties", ())] + mangled
    if names and isinstance(tool, StructuredTool):
        raise ToolRefused(
            f"the tool {tool.name!r} can not be given the argument {', '.join(names)}: LangChain "
            "keeps the name for itself; rename it, and list arguments one by one"
        )


def not_supplied(tool: BaseTool) -> list[str]:
    """Return the injected arguments without a default: nobody here could say what to give.

    ``InjectedState``, ``InjectedStore``, ``InjectedToolCallId``, ``InjectedToolArg``,
    ``ToolRuntime``. A ``RunnableConfig`` is none of them: LangChain itself supplies it.
    """
    missing = _required(tool.args_schema) - _required(tool.tool_call_schema)
    own = getattr(tool, "coroutine", None) or getattr(tool, "func", None) or tool._run
    fields = getattr(tool.args_schema, "model_fields", {})
    if signature(own).parameters.keys() - fields.keys():  # a schema that does not tell of all
        try:
            inferred = structured_tool(own)
        except (ValueError, TypeError, NameError, PydanticUserError):
            return sorted(missing)
        missing |= _required(inferred.args_schema) - _required(inferred.tool_call_schema)
    return sorted(missing)


def _required(schema: Any) -> set[str]:
    fields = getattr(schema, "model_fields", {})
    return {name for name, field in fields.items() if field.is_required()}


# --- Calling a LangChain tool: as LangChain does where anybody listens, else by itself.
#
# LangChain reads the function's signature, its hints and the schema's at each call: to tell
# listeners of it, and to see what else the function wants. That is ten times what the call takes,
# and of calls that were asked for together each begins after that of the others.


class OriginalMethods:
    """Some methods of a class as they were when this was made.

    Classes override LangChain's methods, tracers wrap them: then they are to be called.
    """

    def __init__(self, cls: type, *names: str) -> None:
        self._were = {name: getattr(cls, name, None) for name in names}
        self._unwrapped = all(  # what is wrapped keeps what it is wrapped around
            type(each) is FunctionType
            and each.__module__ == cls.__module__
            and not hasattr(each, "__wrapped__")
            for each in self._were.values()
        )

    def of(self, it: object) -> bool:
        """Whether an object or a class has them all, with nothing in their place or around."""
        found = {name: getattr(it, name, None) for name in self._were}
        # A wrapper may answer for what it wraps, whatever it is asked for but its type.
        return self._unwrapped and all(
            (each.__func__ if type(each) is MethodType else each) is self._were[name]
            for name, each in found.items()
        )


_OWN: Final = OriginalMethods(StructuredTool, "ainvoke", "_arun", "_run")
_OF_ALL: Final = OriginalMethods(BaseTool, "invoke", "run", "arun")
_BELOW: Final = OriginalMethods(BaseTool, "ainvoke")
"""What stands between a caller and the function."""

_INHERITED: Final = {each._arun for each in (BaseTool, StructuredTool, PlainTool)}

_CALL_ID: Final = "call"
"""LangChain makes a message of a result only if the call had an id; what it is nobody reads."""


async def call_tool(tool: BaseTool, plain: Function | None, args: Mapping[str, Any]) -> Any:
    """Return what a tool says; ``plain`` is what :func:`plain_function` found when it was wrapped.

    That is a message as LangChain makes it, or its text alone. A tool that blocks runs on a thread.
    Raises what the tool raises.
    """
    call = ToolCall(type="tool_call", id=_CALL_ID, name=tool.name, args=dict(args))
    if plain is None or not _is_all(plain, tool):
        return await (tool.ainvoke(call) if is_async(tool) else in_tool_thread(tool.invoke, call))
    if not is_async(tool):
        return await in_tool_thread(_call_plain, tool, plain, call)
    given = _given(tool, args)
    return await tool.ainvoke(call) if given is None else _answered(tool, await plain(**given))


def is_async(tool: BaseTool) -> bool:
    """Whether a tool has an async form of its own; LangChain's stand-in blocks a shared thread."""
    return type(tool)._arun not in _INHERITED or getattr(tool, "coroutine", None) is not None


def plain_function(tool: BaseTool) -> Function | None:
    """Return the function of a tool that is given its arguments and nothing else; None elsewhere.

    One of a class of its own may do anything; one that can not be read may want anything.
    """
    function, schema = _function_of(tool), tool.args_schema
    if type(tool) is not StructuredTool or not isinstance(schema, type) or not function:
        return None
    if not _gives_its_fields(schema):
        return None
    try:
        named, hints = signature(function).parameters, get_type_hints(function)
    except Exception:  # noqa: BLE001  # hints are evaluated: whatever their names come to
        return None
    return None if "callbacks" in named or RunnableConfig in hints.values() else function


def _function_of(tool: BaseTool) -> Function | None:
    return getattr(tool, "coroutine", None) or getattr(tool, "func", None)


def _is_all(function: Function, tool: BaseTool) -> bool:
    """Whether LangChain would do no more now than call this: tools can change, and be listened to.

    Handlers come from the run around it, the tool, the process and the environment.
    """
    if not (_OWN.of(tool) and _OF_ALL.of(tool) and _BELOW.of(BaseTool)):
        return False
    handles = tool.handle_tool_error or tool.handle_validation_error
    if handles or tool.response_format != "content" or _function_of(tool) is not function:
        return False
    around = (var_child_runnable_config.get() or {}).get("callbacks")
    if isinstance(around, BaseCallbackManager) and not around.handlers:
        around = None  # nobody it could tell: to copy it for that takes as long as all the rest
    return not CallbackManager.configure(around, tool.callbacks, tool.verbose).handlers


def _call_plain(tool: BaseTool, function: Function, call: ToolCall) -> Any:
    given = _given(tool, call["args"])
    return tool.invoke(call) if given is None else _answered(tool, function(**given))


def _given(tool: BaseTool, args: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the arguments as the schema takes them; None if LangChain gives others.

    LangChain looks at the annotations of all fields for each call, to see whether it has one to put
    in, and has the model written out for the names of its fields: ten times what the check takes.
    """
    schema: Any = tool.args_schema
    if isinstance(schema, dict) or not _gives_its_fields(schema):
        return None
    if not schema.model_fields:
        return {}  # one without fields checks nothing
    read = schema.model_validate(args)
    there = read.model_fields_set
    given = {
        name: getattr(read, name)
        for name, field in schema.model_fields.items()
        if name in args
        or name in there
        or (name not in _MANGLED.values() and not field.is_required())
    }
    return None if any(name in given for name in KEPT) else given


@lru_cache(maxsize=256)
def _gives_its_fields(schema: type) -> bool:
    """Whether a schema's fields are all that it gives, and none is for LangChain to fill in.

    What checks a model as a whole may drop fields of it, or make another kind of it.
    """
    if not issubclass(schema, BaseModel) or issubclass(schema, RootModel):
        return False
    own = schema.__pydantic_decorators__
    config, fields = schema.model_config, schema.model_fields.values()
    writes_itself_out = schema.model_dump is not BaseModel.model_dump or own.model_serializers
    otherwise = config.get("serialize_by_alias") or own.field_serializers
    more = config.get("extra") == "allow" or schema.model_computed_fields
    fewer = any(field.exclude or getattr(field, "exclude_if", None) for field in fields)
    remade = own.model_validators or own.root_validators
    hints = get_all_basemodel_annotations(schema).values()
    marks = [each for hint in hints for each in get_args(hint)[1:]]
    filled = any(issubclass(m if isinstance(m, type) else type(m), InjectedToolArg) for m in marks)
    return not (writes_itself_out or otherwise or more or fewer or remade or filled)


def _answered(tool: BaseTool, content: Any) -> Any:
    if type(content) is str:  # the message that LangChain makes of it would be read and thrown away
        return content
    said = StructuredTool(
        name=tool.name, description="", args_schema={"type": "object"}, func=lambda: content
    )
    return said.invoke(ToolCall(type="tool_call", id=_CALL_ID, name=tool.name, args={}))
