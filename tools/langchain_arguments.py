"""Arguments that do not get through to a LangChain tool: nobody supplies them, or they are dropped.

Both are noticed before a run. A call must not be made with other arguments than were given.
"""

from collections.abc import Collection
from inspect import Parameter, signature
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool

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
