"""Arguments that a tool expects from whoever runs it: LangGraph's ``ToolNode`` fills them in."""

from inspect import Parameter, signature
from typing import Any

from langchain_core.tools import BaseTool


def not_supplied(tool: BaseTool) -> list[str]:
    """Return the injected arguments without a default: nobody here could say what to give.

    ``InjectedState``, ``InjectedStore``, ``InjectedToolCallId``, ``InjectedToolArg``,
    ``ToolRuntime``. A ``RunnableConfig`` is none of them: LangChain itself supplies it.
    """
    return sorted({*_of_the_schema(tool), *_of_the_function(tool)})


def _of_the_schema(tool: BaseTool) -> set[str]:
    wanted: dict[str, Any] = getattr(tool.args_schema, "model_fields", {})
    shown: dict[str, Any] = getattr(tool.tool_call_schema, "model_fields", {})
    return {name for name, field in wanted.items() if field.is_required()} - shown.keys()


def _of_the_function(tool: BaseTool) -> set[str]:
    own = getattr(tool, "coroutine", None) or getattr(tool, "func", None) or tool._run
    parameters = signature(own).parameters.values()
    required = {each.name for each in parameters if each.default is Parameter.empty}
    return required & tool._injected_args_keys
