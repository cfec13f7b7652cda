"""A tool's function is given what LangChain would give it, of whatever schema."""

from collections.abc import Callable
from typing import Annotated, Any, Self

import pytest
from langchain_core.tools import InjectedToolCallId, StructuredTool
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    computed_field,
    field_serializer,
    model_serializer,
    model_validator,
)
from typing_extensions import override

from daruma.tools.calls.langchain import given_arguments


class Fields(BaseModel):
    """A default, an alias, and a field that is made if it is not given."""

    first: int
    second: int = 3
    third: list[int] = Field(default_factory=list, alias="last")


class Aliased(BaseModel):
    """Needs what goes by another name."""

    first: int = Field(alias="one")


class Starred(BaseModel):
    """What LangChain takes for the starred arguments of a function."""

    first: int = 1
    args: list[int] = []
    kwargs: dict[str, int] = {}


class Strict(Fields):
    """Takes nothing that it does not know."""

    model_config = ConfigDict(extra="forbid")


class Open(Fields):
    """Passes on what it does not know."""

    model_config = ConfigDict(extra="allow")


class Computing(Fields):
    """Gives more than it takes."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def double(self) -> int:
        return 2 * self.first


class Keeping(Fields):
    """Gives less than it takes."""

    own: int = Field(default=5, exclude=True)


class Writing(Fields):
    """Writes itself out in its own way."""

    @model_serializer
    def written(self) -> dict[str, Any]:
        return {"second": 0}


class Dumping(Fields):
    """Writes itself out in another way."""

    @override
    def model_dump(self, **_: Any) -> dict[str, Any]:
        return {"first": 0}


class Refusing(Fields):
    """Can not be written out."""

    @field_serializer("first")
    def refused(self, _: int) -> int:
        raise ValueError("no")


class Renaming(Fields):
    """Is written out by other names."""

    model_config = ConfigDict(serialize_by_alias=True)


class Sparing(Fields):
    """Gives a field only if it is worth it."""

    own: int = Field(default=5, exclude_if=lambda value: value == 5)


class Filled(Fields):
    """Has a field that LangChain fills in."""

    call: Annotated[str, InjectedToolCallId] = ""


class Grown(Fields):
    """Has more fields than what it is made of."""

    own: int = 5


class Becoming(Fields):
    """Turns into another kind."""

    @model_validator(mode="wrap")
    @classmethod
    def grown(cls, _given: Any, _check: Any) -> Any:
        return Grown(first=1, own=2)


class Dropping(Fields):
    """Drops a field that goes without saying."""

    @model_validator(mode="after")
    def drop(self) -> Self:
        if "second" not in self.model_fields_set:
            del self.second
        return self


class Empty(BaseModel):
    """Checks nothing."""

    model_config = ConfigDict(extra="forbid")


def fill_in(first: int, call: Annotated[str, InjectedToolCallId]) -> str:
    """Want what the schema does not say."""
    return f"{first} {call}"


def work(**given: Any) -> str:
    """Do it."""
    return str(given)


def outcome(give: Callable[[], Any]) -> Any:
    try:
        return give()
    except (ValidationError, ValueError, AttributeError) as error:
        return type(error)


SCHEMAS = (
    Fields,
    Aliased,
    Starred,
    Strict,
    Open,
    Computing,
    Keeping,
    Writing,
    Dumping,
    Refusing,
    Renaming,
    Sparing,
    Filled,
    Becoming,
    Dropping,
    Empty,
)
ARGS: tuple[dict[str, Any], ...] = (
    {"first": 1},
    {"first": "2", "last": [9]},
    {"first": 1, "third": [2]},
    {"first": 1, "second": 5, "other": 6, "own": 7},
    {"first": 1, "args": [1], "kwargs": {"a": 1}},
    {"first": 1, "call": "mine"},
    {"one": 1},
    {"first": "x"},
    {},
)


@pytest.mark.parametrize("args", ARGS, ids=str)
@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("function", [work, fill_in])
def test_it_is_what_langchain_gives(
    function: Any, schema: type[BaseModel], args: dict[str, Any]
) -> None:
    """The same arguments in the same order, or the same refusal; what was asked for stays."""
    tool = StructuredTool(name="t", description="t", func=function, args_schema=schema)
    asked = dict(args)

    ours = outcome(lambda: list(given_arguments(tool, asked, "call").items()))

    assert ours == outcome(lambda: list(tool._to_args_and_kwargs(dict(args), "call")[1].items()))
    assert asked == args


def test_a_schema_is_looked_through_once() -> None:
    """And its model is not written out."""
    written: list[Any] = []

    class Listed(Fields):
        """Tells how its fields are asked for."""

        def __getattribute__(self, name: str) -> Any:
            written.append(name)
            return super().__getattribute__(name)

    tool = StructuredTool(name="t", description="t", func=work, args_schema=Listed)
    given = given_arguments(tool, {"first": 1}, "call")

    assert given == {"first": 1, "second": 3, "third": []}
    assert "model_dump" not in written
