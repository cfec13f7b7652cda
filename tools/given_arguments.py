"""What a LangChain tool's function is given, of the arguments of a call: as its schema makes them.

LangChain looks at the annotations of all fields for each call, to see whether it has one to put in,
and has the model written out for the names of its fields: ten times what the check takes.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from langchain_core.tools import BaseTool, InjectedToolCallId
from langchain_core.tools.base import _is_injected_arg_type, get_all_basemodel_annotations
from pydantic import BaseModel, RootModel

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
