"""The form that a task's answer is to have, and an answer read in it (FA-10)."""

import json
from dataclasses import dataclass, is_dataclass
from functools import cached_property
from typing import Any, Final, Self

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from typing_extensions import is_typeddict

from daruma.state.text import unstorable_part
from daruma.tools.calls import Tool, object_schema_problem
from daruma.tools.calls.repair import read_structured
from daruma.tools.errors import ToolError

WANTED: Final = "has to be a Pydantic class, a dataclass, a TypedDict or a JSON schema (a dict)"


@dataclass(frozen=True)
class ResponseFormat:
    """A JSON schema of objects; ``adapter`` makes instances of them, None where they stay dicts."""

    schema: dict[str, Any]
    adapter: TypeAdapter[Any] | None = None

    @classmethod
    def of(cls, given: object) -> Self:
        """Return the form that a class or a schema stands for. Raises ValueError, in one line."""
        adapter, schema = None, given
        if isinstance(given, type) and (
            issubclass(given, BaseModel) or is_dataclass(given) or is_typeddict(given)
        ):
            try:
                adapter = TypeAdapter[Any](given)
                schema = adapter.json_schema()
            except (PydanticUserError, NameError, TypeError) as error:
                said = " ".join(str(error).split())
                raise ValueError(f"is a class without a JSON schema: {said:.300}") from None
        if not isinstance(schema, dict):
            raise ValueError(f"{WANTED}, not {given!r:.80}")
        if problem := object_schema_problem(schema):
            raise ValueError(f"is no JSON schema of an object: {problem}")
        return cls(schema, adapter)

    @cached_property
    def asked(self) -> Tool:
        """The answer as the arguments of a call: by that it is read, and what a model is shown."""
        return Tool("answer", "", self.schema, _not_run, effect="none")

    def read(self, text: str, max_bytes: int) -> dict[str, Any] | str:
        """Return the one value that a text holds, as JSON, or what is wrong with it, in a line."""
        read = read_structured(text, self.asked, max_bytes=max_bytes)
        if isinstance(read, str):
            return read
        try:
            self._validated(read)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            return f"{'.'.join(map(str, first['loc'])) or 'the whole'}: {first['msg']}"
        except Exception as error:  # noqa: BLE001 - anybody's validators
            return f"a validator of its class raised {type(error).__name__}: {error}"
        return unstorable_part(read) or read

    def typed(self, value: Any) -> Any:
        """Return the instance that a stored value is of; the value itself where it fits no more."""
        try:
            return self._validated(value) if isinstance(value, dict) else value
        except Exception:  # noqa: BLE001 - anybody's validators
            return value

    def _validated(self, value: dict[str, Any]) -> Any:
        # As JSON: a strict model takes a date from a text there only.
        return self.adapter.validate_json(json.dumps(value)) if self.adapter else value


async def _not_run(*_: object) -> str:
    raise ToolError("an answer is no call")
