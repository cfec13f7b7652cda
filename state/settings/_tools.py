"""The settings of the tool loop: what may be called, and how calls are read."""

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from daruma.state.settings._sections import Section

# --- Names of time zones.


def checked_time_zone(name: str) -> str:
    """Return the IANA name of a time zone. Raises ValueError for one that is not known here."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"there is no time zone {name!r}: take one like Europe/Berlin") from None
    return name


# --- The keys of the policy: which calls a rule is about, by the tool's name and its arguments.

SHELL_TOOL = "run_command"
"""The tool whose rules may name the beginning of a command."""

_KEY = re.compile(r"([^\s()]+)(?:\((.*)\))?", re.DOTALL)
_ARGUMENT = re.compile(r"\s*([A-Za-z_][\w-]*)\s*=\s*(\S.*?)\s*", re.DOTALL)
_COMMA = re.compile(r",(?![^{]*\})")  # not the commas of {a,b}
_COMMAND_HAS = frozenset({"command", "cwd", "timeout", "write"})


@dataclass(frozen=True)
class PolicyKey:
    """A key that was read. ``words`` begin a command, ``globs`` are patterns by argument.

    ``open_end`` says that a command may go on behind its words. ``bare`` keys speak of every call.
    """

    name: str
    words: tuple[str, ...] | None = None
    open_end: bool = False
    globs: tuple[tuple[str, str], ...] = ()

    @property
    def bare(self) -> bool:
        """Whether the key says nothing of a call's arguments."""
        return self.words is None and not self.globs

    @property
    def exact(self) -> bool:
        """Whether the name is one tool's, not a pattern."""
        return not set("*?[") & set(self.name)


@lru_cache(maxsize=1024)
def policy_key(text: str) -> PolicyKey:
    """Read ``NAME``, ``run_command(words of a command *)`` or ``NAME(argument=pattern, ...)``.

    Raises ValueError, saying what can not be read.
    """
    found = _KEY.fullmatch(text)
    if found is None:
        raise ValueError("a key is NAME, run_command(COMMAND *) or NAME(argument=pattern)")
    name, inner = found.groups()
    _refuse_broken(name)
    if inner is None:
        return PolicyKey(name)
    arguments = [_ARGUMENT.fullmatch(part) for part in _COMMA.split(inner)]
    globs = tuple((each[1], each[2]) for each in arguments if each)
    if len(globs) == len(arguments) and (name != SHELL_TOOL or {*dict(globs)} <= _COMMAND_HAS):
        for _, glob in globs:
            _refuse_broken(glob)
        return PolicyKey(name, globs=globs)
    return _command_key(name, inner)


def checked_policy_key(text: str) -> str:
    """Return a key that can be read as it is. Raises ValueError for another one."""
    policy_key(text)
    return text


def _command_key(name: str, inner: str) -> PolicyKey:
    if name != SHELL_TOOL:
        raise ValueError(
            f"not argument=pattern, and only {SHELL_TOOL} takes the beginning of a command"
        )
    try:
        words = shlex.split(inner)
    except ValueError as error:
        raise ValueError(f"the command can not be read: {str(error).lower()}") from None
    if not words or re.match(r"\w+=", words[0]):
        raise ValueError("no command is named: write it as in run_command(git push *)")
    open_end = words[-1] == "*"
    kept = tuple(words[:-1] if open_end else words)
    for word in kept:
        _refuse_broken(word)
    return PolicyKey(name, words=kept, open_end=open_end)


def _refuse_broken(glob: str) -> None:
    try:
        re.compile(translate(glob))
    except re.error as error:
        raise ValueError(f"{glob!r} is no pattern: {error}") from None


# --- The settings of the tool loop: what the model may call, and how its calls are read.

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


def _as_text(value: Any) -> Any:
    """Return what YAML reads as a number or as true, as the text that it was written as."""
    return json.dumps(value) if isinstance(value, int | float) else value


def _as_list(value: Any) -> Any:
    if isinstance(value, str):
        raise ValueError('write a list, as in ["-y", "server"]')
    return value


Word = Annotated[str, BeforeValidator(_as_text)]
"""A text; one that names a variable as ``${NAME}`` is not its value."""

_SAME: Final = {
    **dict.fromkeys(("transport", "transportType"), "type"),
    **dict.fromkeys(("serverUrl", "httpUrl"), "url"),
}
_SAYS_NOTHING: Final[Mapping[str, object]] = {
    "disabled": False, "enabled": True, "autoApprove": [], "alwaysAllow": [], "trust": False,
}  # fmt: skip
"""What other programs write beside every server of theirs (Cline, Windsurf, Gemini), unasked."""


class McpServer(Section):
    """An MCP server, as everybody writes one (FA-11): a program to start, or an address.

    ``${NAME}`` in a text is an environment variable, looked up when the server is started, so that
    no secret has to stand in the settings; ``${NAME:-TEXT}`` has a default.
    """

    type: Literal["stdio", "http", "sse"] | None = Field(
        default=None,
        description="How it is spoken to, also as transport; null: stdio to a command, "
        "streamable HTTP to a url, SSE to one that ends in /sse.",
    )
    command: str | tuple[Word, ...] = Field(
        default=(), description="Program, or program and arguments."
    )
    args: Annotated[tuple[Word, ...], BeforeValidator(_as_list)] = Field(
        default=(), description="Arguments of the program."
    )
    env: dict[str, Word] = Field(default={}, description="Environment variables of the program.")
    cwd: str | None = Field(
        default=None, description="Folder that the program runs in, as a whole path; null: /."
    )
    url: str | None = Field(default=None, description="Address of a server that runs already.")
    headers: dict[str, Word] = Field(default={}, description="HTTP headers of every request.")

    @model_validator(mode="before")
    @classmethod
    def _with_one_type(cls, given: Any) -> Any:
        """Read what has other names elsewhere, and leave out what says nothing."""
        if not isinstance(given, Mapping):
            return given
        known = {
            name if (same := _SAME.get(name, name)) in given else same: each
            for name, each in given.items()
            if each is not None and (name not in _SAYS_NOTHING or each != _SAYS_NOTHING[name])
        }
        if isinstance(kind := known.get("type"), str):
            plain = kind.lower().replace("-", "").replace("_", "")
            known["type"] = {"streamablehttp": "http"}.get(plain, plain)
        return known

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if bool(self.argv) == bool(self.url):
            raise ValueError("an MCP server needs a command or a url, one of them")
        if self.type and (self.type == "stdio") == bool(self.url):
            raise ValueError(f"type {self.type} goes with a {'command' if self.url else 'url'}")
        if self.url and (self.args or self.env or self.cwd):
            raise ValueError("args, env and cwd go with a command, not with a url")
        if self.argv and self.headers:
            raise ValueError("headers go with a url, not with a command")
        if self.url and not re.match(r"https?://.|\$\{", self.url):
            raise ValueError("its url has to begin with http:// or https://")
        if self.cwd is not None and not self.cwd.startswith(("/", "${")):
            raise ValueError("cwd has to be a whole path")
        return self

    @property
    def argv(self) -> tuple[str, ...]:
        """The program and its arguments; empty for an address."""
        program = (self.command,) if isinstance(self.command, str) else self.command
        return (*program, *self.args) if any(program) else ()

    @property
    def transport(self) -> Literal["stdio", "http", "sse"]:
        """How it is spoken to."""
        if self.type or not self.url:
            return self.type or "stdio"
        return "sse" if urlsplit(self.url).path.rstrip("/").endswith("/sse") else "http"


ALL_SERVERS: Final = ("mcpServers", "servers")
"""What other programs' files call their servers: such a file can be given whole."""


def unpacked_servers(given: Any) -> Any:
    """Return servers by name, also of a file as Claude Desktop, Cursor or VS Code have it whole.

    What else such a file holds is not about servers.
    """
    if not isinstance(given, Mapping):
        return given
    named = (given.get(name) for name in ALL_SERVERS)
    held = [each for each in named if isinstance(each, Mapping) and not _is_server(each)]
    if not held:
        return given
    beside = {each: it for each, it in given.items() if _is_server(it)}
    return {name: it for servers in (*held, beside) for name, it in servers.items()}


def _is_server(given: Any) -> bool:
    values = (given.get("command"), given.get("url")) if isinstance(given, Mapping) else ()
    return any(value and not isinstance(value, Mapping) for value in values)


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
    read_only_first: bool = Field(
        default=True,
        description="Run a command read-only and without network before a person is asked about "
        "it, at sandbox level namespace; who is asked only if that does not do.",
    )
    always: Literal["never", "thread", "workspace"] = Field(
        default="thread",
        description="How far a yes may reach that is given for calls to come: this thread, or "
        "all threads in the workspace. On the command line it is the workspace.",
    )
    profile: str | None = Field(default=None, description="Which tools are shown; null: all.")
    profiles: dict[str, tuple[str, ...]] = Field(
        default={}, description="Own profiles: names or patterns of the tools they show."
    )
    mcp_servers: Annotated[dict[str, McpServer], BeforeValidator(unpacked_servers)] = Field(
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
