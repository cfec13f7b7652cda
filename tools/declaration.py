"""What the application declares of a LangChain tool, in ``tool.metadata["daruma"]``."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from langchain_core.tools import BaseTool
from pydantic import BaseModel, ConfigDict, ValidationError

from daruma.state.errors import DarumaError
from daruma.tools.canonical import Canonical, DateKind
from daruma.tools.tool import Effect


class ToolRefused(DarumaError):
    """Raised when a tool that was passed in can not work, or declares what can not be."""


class Declaration(BaseModel):
    """What running the tool changes, whether it may be repeated, what makes its calls canonical.

    See :class:`~daruma.tools.tool.Tool` for the first, TL-19 for the last.
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
        """Return what :func:`~daruma.tools.canonical.canonical_call` goes by, None for nothing."""
        changes = self.argument_aliases or self.promote_to or self.dates
        if not changes and not self.ask_for:
            return None
        return Canonical(
            self.argument_aliases,
            self.promote_to,
            tuple(self.promote_when),
            self.dates,
            self.ask_for,
        )


def declared(tool: BaseTool, parameters: Mapping[str, Any]) -> Declaration:
    """Read a tool's declaration. Raises :class:`ToolRefused` for one that can not be meant."""
    try:
        declaration = Declaration.model_validate((tool.metadata or {}).get("daruma", {}))
    except ValidationError as error:
        problem = _told(error)
    else:
        problem = _contradiction(declaration, parameters)
    if problem:
        raise ToolRefused(f"the tool {tool.name!r} declares in metadata['daruma'] {problem}")
    return declaration


def _told(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    key = ".".join(map(str, first["loc"]))
    if first["type"] != "extra_forbidden":
        return f"{key or 'what'}: {first['msg']} (given: {first['input']!r:.100})"
    close = get_close_matches(key, Declaration.model_fields, n=1, cutoff=0.5)
    hint = (
        f"did you mean {close[0]!r}?" if close else f"known: {', '.join(Declaration.model_fields)}"
    )
    return f"an unknown key {key!r}; {hint}"


def _contradiction(declaration: Declaration, parameters: Mapping[str, Any]) -> str:
    if bool(declaration.promote_to) != bool(declaration.promote_when):
        return "one of promote_to and promote_when: both are needed, or neither"
    arguments = parameters.get("properties", {})
    key = declaration.idempotency_key
    if key and arguments.get(key, {}).get("type") != "string":
        return f"idempotency_key {key!r}, and that is no argument that takes a string"
    if strangers := {*declaration.dates, *declaration.ask_for} - (arguments.keys() - {key}):
        return f"dates or ask_for {min(strangers)!r}, which is no argument that the model gives"
    return _misnamed(declaration, arguments)


def _misnamed(declaration: Declaration, arguments: Mapping[str, Any]) -> str:
    named = {*arguments, *declaration.promote_when}
    for alias, name in declaration.argument_aliases.items():
        if alias in arguments:
            return f"{alias!r} as another name of {name!r}, and it is an argument of its own"
        if name not in named:
            return f"{alias!r} as another name of {name!r}, which is no argument of it"
    return ""
