"""A call of a tool as LangChain's tracers see it: one run of kind ``tool``, ended on every path."""

from collections.abc import Mapping
from typing import Any

from langchain_core.runnables.config import ensure_config, get_async_callback_manager_for_config

from daruma.tools.tool import Surroundings, Tool


async def run_shown(tool: Tool, args: Mapping[str, Any], surroundings: Surroundings) -> str:
    """Run a tool that is no LangChain tool, and show that to the callbacks of the run around it.

    LangChain's own tools show themselves. Raises what the tool does.
    """
    manager = get_async_callback_manager_for_config(ensure_config())
    if not manager.handlers:
        return await tool.run(args, surroundings)
    serialized = {"name": tool.name, "description": tool.description}
    run = await manager.on_tool_start(serialized, str(dict(args)), inputs=dict(args))
    try:
        output = await tool.run(args, surroundings)
    except BaseException as error:
        await run.on_tool_error(error)
        raise
    await run.on_tool_end(output)
    return output
