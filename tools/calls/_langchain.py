"""Calling a LangChain tool: with the arguments it takes, as LangChain does or by itself."""

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from inspect import Parameter, signature
from types import FunctionType, MethodType
from typing import Any, Final, get_type_hints

from langchain_core.callbacks import BaseCallbackManager, CallbackManager
from langchain_core.messages import ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool
from langchain_core.tools import Tool as PlainTool
from langchain_core.tools.base import (
    _format_output,
    _is_injected_arg_type,
    get_all_basemodel_annotations,
)
from pydantic import BaseModel, RootModel

from daruma.tools.threads import in_tool_thread

# --- Whether LangChain's functions are still its own: classes override them, tracers wrap them.


class ClassFunctions:
    """Some functions of a class, as they were when this was made."""

    def __init__(self, cls: type, *names: str) -> None:
        self._were = {name: getattr(cls, name, None) for name in names}
        self._unwrapped = all(_is_plain(each, cls) for each in self._were.values())

    def of(self, it: object) -> bool:
        """Whether an object or a class has them all, with nothing in their place or around."""
        return self._unwrapped and all(
            _function_of(it, name) is was for name, was in self._were.items()
        )


def _function_of(it: object, name: str) -> object:
    found = getattr(it, name, None)
    # A wrapper may answer for what it wraps, whatever it is asked for but its type.
    return found.__func__ if type(found) is MethodType else found


def _is_plain(function: Any, cls: type) -> bool:
    """Whether it is a class's own function: what is wrapped keeps what it is wrapped around."""
    return (
        type(function) is FunctionType
        and function.__module__ == cls.__module__
        and not hasattr(function, "__wrapped__")
    )


# --- What a LangChain tool's function is given, of the arguments of a call: as its schema makes
# them.
#
# LangChain looks at the annotations of all fields for each call, to see whether it has one to put
# in, and has the model written out for the names of its fields: ten times what the check takes.

_SYNTHETIC: Final = ("args", "kwargs")
"""What Pydantic calls the fields of a function's starred arguments."""


def given_arguments(tool: BaseTool, args: Mapping[str, Any], call_id: str) -> dict[str, Any]:
    """Return what LangChain would give. Raises what the schema does."""
    schema: Any = tool.args_schema
    if isinstance(schema, type) and _gives_its_fields(schema) and not tool._injected_args_keys:
        return _validated(schema, args)
    _, given = tool._to_args_and_kwargs(dict(args), call_id)
    return given


def _validated(schema: type[BaseModel], args: Mapping[str, Any]) -> dict[str, Any]:
    read = schema.model_validate(args)
    there = read.model_fields_set
    return {
        name: getattr(read, name)
        for name, field in schema.model_fields.items()
        if name in args or name in there or (name not in _SYNTHETIC and not field.is_required())
    }


@lru_cache(maxsize=256)
def _gives_its_fields(schema: type) -> bool:
    """Whether a schema's fields are all that it gives, and none is for LangChain to fill in.

    One without fields checks nothing: whatever it is given, the function is given nothing. What
    checks a model as a whole may drop fields of it, or make another kind of it.
    """
    if not issubclass(schema, BaseModel) or issubclass(schema, RootModel):
        return False
    own = schema.__pydantic_decorators__
    config, fields = schema.model_config, schema.model_fields.values()
    writes_itself_out = schema.model_dump is not BaseModel.model_dump or own.model_serializers
    otherwise = config.get("serialize_by_alias") or own.field_serializers
    more = config.get("extra") == "allow" or schema.model_computed_fields
    fewer = any(field.exclude or getattr(field, "exclude_if", None) for field in fields)
    hints = get_all_basemodel_annotations(schema).values()
    remade = own.model_validators or own.root_validators
    filled = any(_is_injected_arg_type(hint, injected_type=InjectedToolCallId) for hint in hints)
    return bool(schema.model_fields) and not (
        writes_itself_out or otherwise or more or fewer or remade or filled
    )


# --- Arguments that do not get through to a LangChain tool: nobody supplies them, or they are
# dropped.
#
# Both are noticed before a run. A call must not be made with other arguments than were given.

KEPT = ("config", "run_manager", "self")
"""Names that a ``StructuredTool`` has for its own arguments: it drops, or trips over, a model's."""

_MANGLED = {"v__args": "args", "v__kwargs": "kwargs"}
"""What Pydantic's form of a function calls these two; the function is then called with that."""


def not_supplied(tool: BaseTool) -> list[str]:
    """Return the injected arguments without a default: nobody here could say what to give.

    ``InjectedState``, ``InjectedStore``, ``InjectedToolCallId``, ``InjectedToolArg``,
    ``ToolRuntime``. A ``RunnableConfig`` is none of them: LangChain itself supplies it.
    """
    return sorted({*_of_the_schema(tool), *_of_the_function(tool)})


def not_passed_on(tool: BaseTool, arguments: Collection[str]) -> list[str]:
    """Return those of the arguments that LangChain would not hand to the tool as they are."""
    if not isinstance(tool, StructuredTool):
        return []
    fields = getattr(tool.args_schema, "model_fields", {})
    mangled = [name for field, name in _MANGLED.items() if field in fields]
    return [name for name in KEPT if name in arguments] + mangled


def _of_the_schema(tool: BaseTool) -> set[str]:
    wanted: dict[str, Any] = getattr(tool.args_schema, "model_fields", {})
    shown: dict[str, Any] = getattr(tool.tool_call_schema, "model_fields", {})
    return {name for name, field in wanted.items() if field.is_required()} - shown.keys()


def _of_the_function(tool: BaseTool) -> set[str]:
    injected = tool._injected_args_keys
    if not injected:
        return set()
    own = getattr(tool, "coroutine", None) or getattr(tool, "func", None) or tool._run
    parameters = signature(own).parameters.values()
    return {each.name for each in parameters if each.default is Parameter.empty} & injected


# --- Making the call of a LangChain tool: as LangChain does where anybody listens, else by itself.
#
# LangChain reads the function's signature and its hints, and the schema's, at each call: to tell
# listeners of it, and to see what else the function wants. That is ten times what the call takes,
# and of calls that were asked for together each begins after that of the others.

Function = Callable[..., Any]

_OWN: Final = ClassFunctions(StructuredTool, "ainvoke", "_arun", "_run")
_OF_ALL: Final = ClassFunctions(BaseTool, "invoke", "run", "arun")
_BELOW: Final = ClassFunctions(BaseTool, "ainvoke")
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
    function = _function_of_tool(tool)
    if type(tool) is not StructuredTool or not isinstance(tool.args_schema, type) or not function:
        return None
    try:
        named, hints = signature(function).parameters, get_type_hints(function)
    except Exception:  # noqa: BLE001  # hints are evaluated: whatever their names come to
        return None
    return None if "callbacks" in named or RunnableConfig in hints.values() else function


def _function_of_tool(tool: BaseTool) -> Function | None:
    return getattr(tool, "coroutine", None) or getattr(tool, "func", None)


def _is_all(function: Function, tool: BaseTool) -> bool:
    """Whether LangChain would do no more now than call this: tools can change, and be listened to.

    Handlers come from the run around it, the tool, the process and the environment.
    """
    if not (_OWN.of(tool) and _OF_ALL.of(tool) and _BELOW.of(BaseTool)):
        return False
    handles = tool.handle_tool_error or tool.handle_validation_error
    if handles or tool.response_format != "content" or _function_of_tool(tool) is not function:
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
