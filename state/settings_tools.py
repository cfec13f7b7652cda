"""The settings of the tool loop: what the model may call, and how its calls are read."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from daruma.state.policy_key import checked_policy_key
from daruma.state.settings_section import Section
from daruma.state.time_zone import checked_time_zone

InDoubt = Literal["ask", "tell"]


class PolicyRule(Section):
    """What becomes of a call that the rule's pattern matches.

    A ``required`` approval that is denied stops the task, unless ``deny_effect`` says continue.
    ``in_doubt`` goes before the setting of that name.
    """

    decision: Literal["allow", "deny", "confirm"] = Field(
        description="Run it, refuse it, or ask a person first."
    )
    required: bool = Field(default=False, description="Without a yes the task can not go on.")
    deny_effect: Literal["block", "continue"] | None = Field(
        default=None, description="What a no does to the task; null: block where it is required."
    )
    reason: str = Field(default="", description="What the person, or the model, is told.")
    in_doubt: InDoubt | None = Field(
        default=None,
        description="What is done about a call that may have run; null: tools.in_doubt.",
    )


class McpServer(Section):
    """Where an MCP server is: a program to start, or an address. Exactly one of the two."""

    command: tuple[str, ...] = Field(default=(), description="Program and arguments, over stdio.")
    url: str | None = Field(default=None, description="Address, over streamable HTTP.")

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if bool(self.command) == bool(self.url):
            raise ValueError("an MCP server needs a command or a url, one of them")
        return self


class Tools(Section):
    """What the model may call, and how its calls are read."""

    normalize_names: bool = Field(
        default=True, description="readFile, read-file and functions.read_file mean read_file."
    )
    name_aliases: dict[str, str] = Field(default={}, description="Other names for tools.")
    name_repair_attempts: int = Field(
        default=1, ge=0, description="Model calls that may propose names for unknown ones."
    )
    name_repair_max_visible_names: int = Field(
        default=100, ge=1, description="Tool names shown to the model that repairs names."
    )
    name_repair_max_candidates: int = Field(
        default=10, ge=1, description="Unknown names given to it at once."
    )
    call_repair_attempts: int = Field(
        default=1, ge=0, description="Model calls that may repair arguments."
    )
    call_repair_max_candidates: int = Field(
        default=10, ge=1, description="Calls given to one such model call."
    )
    call_repair_max_schema_bytes: int = Field(
        default=4096, ge=256, description="Bytes of each tool's schema shown to it."
    )
    max_argument_bytes: int = Field(
        default=262_144, ge=1024, description="Larger arguments of a call are refused."
    )
    validate_schema: bool = Field(
        default=True, description="Repair arguments, too, that do not fit a tool's schema."
    )
    max_calls_per_turn: int | None = Field(
        default=20, ge=1, description="Calls kept of one answer; the rest is left out, on record."
    )
    max_result_chars: int = Field(
        default=20_000,
        ge=1000,
        le=30_000,
        description="Characters of a result that are shown; the rest is kept and can be read.",
    )
    timeout: float | None = Field(
        default=600.0, gt=0, description="Seconds for one call of a tool of the application."
    )
    in_doubt: InDoubt = Field(
        default="ask",
        description="A call that a crash cut short, and that may have had its effect: ask a person "
        "what became of it, or tell the model that it is unknown.",
    )
    profile: str | None = Field(default=None, description="Which tools are shown; null: all.")
    profiles: dict[str, tuple[str, ...]] = Field(
        default={}, description="Own profiles: names or patterns of the tools they show."
    )
    mcp_servers: dict[str, McpServer] = Field(
        default={}, description="MCP servers whose tools the command line offers."
    )
    toolsets: tuple[Literal["assistant", "knowledge"], ...] = Field(
        default=(), description="Tools that are shown beside those of workspace, memory and skills."
    )
    time_zone: Annotated[str, AfterValidator(checked_time_zone)] | None = Field(
        default=None, description="Whose today and tomorrow: Europe/Berlin; null: the machine's."
    )
    policy: dict[
        Annotated[str, AfterValidator(checked_policy_key)],
        Literal["allow", "deny", "confirm"] | PolicyRule,
    ] = Field(
        default={},
        description="Tool name or pattern, with or without arguments, to a decision or a rule.",
    )
