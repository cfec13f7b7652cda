"""Scripts for the scripted chat model: their shape, and reading them with errors that say where."""

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    NonNegativeInt,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails

from daruma.graph.models.errors import ScriptInvalid

DEFAULT_ROLE = "main"


class Usage(BaseModel):
    """Tokens that a turn reports instead of the estimate."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: NonNegativeInt
    output: NonNegativeInt


class Call(BaseModel):
    """A tool call; `args` as text stands for exactly what a model wrote, broken JSON included."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    args: dict[str, JsonValue] | str = Field(default_factory=dict)
    id: str | None = None


class Turn(BaseModel):
    """What the model answers once, and what the request must hold for it to do so."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    say: str | None = None
    json_: JsonValue = Field(default=None, alias="json")
    calls: tuple[Call, ...] = ()
    raise_: str | None = Field(default=None, alias="raise")
    status: int | None = Field(default=None, ge=400, le=599)
    wait: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    attempts: "tuple[Turn, ...]" = ()
    expect: tuple[str, ...] = ()
    expect_tools: tuple[str, ...] | None = None
    usage: Usage | None = None
    finish_reason: str | None = None

    @model_validator(mode="after")
    def _answers_in_one_way(self) -> Self:
        spoken = self.model_fields_set & {"say", "json_", "raise_", "attempts"}
        if len(spoken) > 1 or (self.raise_ is not None and self.calls):
            raise ValueError("say, json and raise exclude each other, and raise excludes calls")
        if not spoken and not self.calls:
            raise ValueError("a turn needs one of say, json, calls or raise")
        if self.status is not None and self.raise_ is None:
            raise ValueError("a status is that of a fault: it needs raise")
        return self

    @model_validator(mode="after")
    def _attempts_alone(self) -> Self:
        if "attempts" not in self.model_fields_set:
            return self
        if not self.attempts:
            raise ValueError("attempts needs a turn for a request")
        if self.model_fields_set != {"attempts"} or any(each.attempts for each in self.attempts):
            raise ValueError("attempts stand alone: each is a turn of its own")
        return self

    def at(self, attempt: int) -> "Turn":
        """Return what a request is answered with; ``attempt`` counts those of one call, from 1."""
        return self.attempts[min(attempt, len(self.attempts)) - 1] if self.attempts else self

    @property
    def text(self) -> str:
        """What the answer says; empty for a turn of calls only."""
        if "json_" in self.model_fields_set:
            return json.dumps(self.json_, ensure_ascii=False)
        return self.say or ""


Script = Mapping[str, tuple[Turn, ...]]
_SCRIPT = TypeAdapter(dict[str, tuple[Turn, ...]])


def read_script(path: Path) -> Any:
    """Load a script's data from JSON (by its suffix) or YAML; `ScriptInvalid` when that fails."""
    import yaml  # only where there is one to read

    try:
        text = path.read_text(encoding="utf-8")
        return json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except OSError as error:
        raise ScriptInvalid(f"cannot read the script {path}: {error.strerror}") from error
    except (ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise ScriptInvalid(f"the script {path} is neither YAML nor JSON: {reason}") from error


def parse_script(data: Any, *, source: str) -> Script:
    """Check a script: a mapping of role to turns, or a bare list, which is role `main`'s."""
    try:
        return _SCRIPT.validate_python({DEFAULT_ROLE: data} if isinstance(data, list) else data)
    except ValidationError as error:
        raise ScriptInvalid(f"{source}: {_complaint(error.errors()[0])}") from error


def _complaint(error: ErrorDetails) -> str:
    loc = error["loc"]
    if error["type"] == "extra_forbidden":
        return f"{_place(loc[:-1])}: {_unknown(str(loc[-1]), inside=loc[:-1])}"
    return f"{_place(loc) or 'script'}: {error['msg'].removeprefix('Value error, ')}"


def _place(loc: tuple[int | str, ...]) -> str:
    """`main[1].calls[0]`, without the tags that pydantic adds for the arms of a union."""
    parts = [f"[{p}]" if isinstance(p, int) else f".{p}" for p in loc if "[" not in str(p)]
    return "".join(parts).lstrip(".")


def _unknown(field: str, *, inside: tuple[int | str, ...]) -> str:
    model = Call if "calls" in inside[2:] else Usage if "usage" in inside[2:] else Turn
    known = [info.alias or name for name, info in model.model_fields.items()]
    nearest = difflib.get_close_matches(field, known, n=1, cutoff=0.0)[0]
    return f'unknown field "{field}"; the nearest known one is "{nearest}"'
