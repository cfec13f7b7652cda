"""Making a tool that ships with Daruma."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from daruma.tools.errors import ToolError
from daruma.tools.tool import Effect, Surroundings, Tool, Toolset

Args = TypeVar("Args", bound=BaseModel)


def shipped_tool(
    name: str,
    args_type: type[Args],
    effect: Effect,
    run: Callable[[Args, Surroundings], Awaitable[str]],
    *,
    toolset: Toolset = "workspace",
    idempotent: bool = False,
) -> Tool:
    """Make a tool that ships of a function; its arguments are a model whose docstring tells of it.

    The model is shown the schema of ``args_type``; ``run`` is given one that was validated.
    """

    async def checked(args: Mapping[str, Any], surroundings: Surroundings) -> str:
        return await run(_read(args_type, args), surroundings)

    schema = args_type.model_json_schema()
    return Tool(
        name=name,
        description=schema.pop("description", ""),
        parameters=schema,
        run=checked,
        effect=effect,
        origin="builtin",
        toolset=toolset,
        idempotent=idempotent,
    )


def _read(args_type: type[Args], args: Mapping[str, Any]) -> Args:
    try:
        return args_type.model_validate(dict(args))
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors()
        )
        raise ToolError(f"invalid arguments: {problems}") from None
