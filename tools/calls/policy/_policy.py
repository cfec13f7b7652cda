"""The policy: whether a call runs, is refused or waits for a person; what a profile shows."""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence, Set
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import Any, Final, NamedTuple

from daruma.state.settings import (
    SHELL_TOOL,
    PolicyKey,
    PolicyRule,
    SettingsError,
    Tools,
    policy_key,
)
from daruma.tools.calls._tool import Tool, name_key
from daruma.tools.calls.policy._shell import (
    Unclear,
    commands_started,
    is_one_command,
    may_run,
    may_start,
    path_parts,
    program_of,
)
from daruma.tools.files import Glob

# --- Whether an argument of a call fits a pattern of the policy. Pure.
#
# Two questions with two answers when in doubt: :func:`surely_fits` says no, :func:`may_fit` says
# yes. Links are not seen here: what a path leads to is known only when it is opened.

MOST_PARTS: Final = 100
"""Pieces of a path; one with more is not looked at, but taken for the worse."""

DEEPEST: Final = 20
"""Lists and objects within each other, likewise."""

_NAMES_OF_PATHS: Final = ("path", "file", "dir", "folder", "cwd", "root", "target", "dest")

NONE: Final = object()
UNTOLD: Final = object()


class _TooDeep(Exception):
    """Raised for a value that can not be looked at."""


def surely_fits(name: str, value: object, glob: str) -> bool:
    """Whether all that a value holds fits; a path must stay inside the pattern's folder."""
    try:
        texts = list(_texts(value))
    except _TooDeep:
        return False
    as_path = "/" in glob or any(part in name.casefold() for part in _NAMES_OF_PATHS)
    fits = _path_inside if as_path else fnmatchcase
    return bool(texts) and all(fits(text, glob) for text in texts)


def may_fit(value: object, glob: str) -> bool:
    """Whether anything that a value holds may fit, as text or as a path, in any case of letters.

    As text, ``*`` stands for slashes too. A path that is absolute or leads out of the workspace
    may lead back in: its end is what counts. ``folder/**`` includes the folder itself.
    """
    try:
        texts = [_folded(text) for text in _texts(value)]
    except _TooDeep:
        return True
    folded = _folded(glob)
    return any(fnmatchcase(text, folded) or _path_near(text, folded) for text in texts)


def argument(args: Mapping[str, Any], parameters: Mapping[str, Any], name: str) -> object:
    """Return the argument that a tool will get: the given one, its default, ``UNTOLD``, ``NONE``.

    ``UNTOLD`` is one that may be left out, with a default that its schema does not tell.
    """
    if name in args:
        return args[name]
    properties, required = parameters.get("properties"), parameters.get("required")
    if not isinstance(properties, Mapping) or name not in properties:
        return NONE
    untold = NONE if isinstance(required, list) and name in required else UNTOLD
    schema = properties[name]
    return schema.get("default", untold) if isinstance(schema, Mapping) else untold


def _texts(value: object, depth: int = DEEPEST) -> Iterator[str]:
    if depth == 0:
        raise _TooDeep
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple) and value:
        parts = [*value, *value.values()] if isinstance(value, Mapping) else value
        for each in parts:
            yield from _texts(each, depth - 1)
    else:
        try:
            yield json.dumps(value, default=str)
        except ValueError:  # a number of too many digits
            raise _TooDeep from None


def _path_inside(text: str, glob: str) -> bool:
    path = path_parts(text)
    if len(path) > MOST_PARTS or ".." in path or text.startswith("~"):
        return False
    if text.startswith("/") != glob.startswith("/"):
        return False
    return Glob(_joined(path_parts(glob), glob)).matches("/".join(path) or ".")


def _path_near(text: str, glob: str) -> bool:
    path = path_parts(text)
    if len(path) > MOST_PARTS:
        return True
    pattern = _joined(path_parts(glob), glob)
    patterns = [Glob(pattern), *([Glob(base)] if (base := pattern.removesuffix("/**")) else [])]
    far = text.startswith(("/", "~")) or ".." in path
    ends = range(len(path)) if far else range(min(1, len(path)))
    return any(each.matches("/".join(path[at:])) for each in patterns for at in ends)


def _joined(pieces: tuple[str, ...], glob: str) -> str:
    """Return a normal pattern; one with a slash keeps one, so that it is matched from the root."""
    return ("./" if "/" in glob and len(pieces) == 1 else "") + "/".join(pieces)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text.casefold())


# --- The policy: whether a call may run, may not, or waits for a person. Pure.

_ALLOW = PolicyRule(decision="allow")
_CONFIRM_COMMAND = PolicyRule(decision="confirm", reason="commands are confirmed unless known safe")
_CONFIRM_MCP = PolicyRule(
    decision="confirm", reason="tools of an MCP server are confirmed unless they only look"
)

_PATHS = r"(?: (?!-|/|~|\S*\.\.)[\w./:-]+)*"
_SAFE_COMMANDS = re.compile(
    rf"(?:python3? -m )?pytest(?: -(?:x|q|v|vv|s))*{_PATHS}"
    rf"|ruff (?:check|format --check){_PATHS}"
    r"|git (?:status|diff|log --oneline)"
)
"""Commands that only look, or run the tests as verification does anyway: whole lines, no shell."""

COMMANDS: Final = frozenset({SHELL_TOOL, "run_tests"})
"""The built-in tools that run commands: what they can reach depends on the sandbox."""

UNCONFINED: Final = "nothing confines commands: sandbox.require is none"


def decide(
    tool: Tool, args: Mapping[str, Any], settings: Tools, *, unconfined: bool = False
) -> PolicyRule:
    """Return the rule for a call, whatever its arguments hold.

    ``unconfined`` says that commands run at sandbox level none: there every one that is not denied
    is asked about, tests too, and only a person can say yes (SE-04).
    """
    rule = _by_policy(tool, args, settings)
    if not unconfined or not tool.builtin or tool.name not in COMMANDS or rule.decision == "deny":
        return rule
    asked = {"decision": "confirm", "required": True, "reason": rule.reason or UNCONFINED}
    return rule.model_copy(update={**asked, "deny_effect": rule.deny_effect or "continue"})


def runs_read_only(rule: PolicyRule, args: Mapping[str, Any], settings: Tools) -> bool:
    """Whether a call is run read-only before a person is asked about it (TL-24).

    Only what no rule of the settings speaks of: one that says ``confirm`` wants to be asked. Nor is
    it tried with what is there to take away, even if it should find nothing to take.
    """
    if not settings.read_only_first or rule is not _CONFIRM_COMMAND or args.get("write"):
        return False
    try:
        started = commands_started(str(args.get("command", "")))
        return not any(program_of(words[0]) in _TAKE_AWAY for words in started)
    except Unclear:  # then what it can do is left to the sandbox
        return True


_TAKE_AWAY: Final = frozenset({
    "rm", "rmdir", "unlink", "shred", "mv", "dd", "truncate", "chmod", "chown", "chgrp",
    "kill", "pkill", "killall",
})  # fmt: skip


def _by_policy(tool: Tool, args: Mapping[str, Any], settings: Tools) -> PolicyRule:
    """Return the rule of the settings.

    Of the rules whose key fits, one that denies wins. Else a key with arguments goes before one
    without, an exact name before a pattern, and what stands first in the settings before the rest.
    In doubt whether a key fits, ``deny`` and ``confirm`` hold and ``allow`` does not.

    Without a rule, commands are confirmed unless known safe, and so are tools of an MCP server
    unless they change nothing. All else is allowed: reading and writing in the workspace, and the
    tools that the application passed in.
    """
    fitting: list[tuple[bool, bool, bool, int, PolicyRule]] = []
    for text, given in settings.policy.items():
        rule = given if isinstance(given, PolicyRule) else PolicyRule(decision=given)
        key = policy_key(text)
        if fnmatchcase(tool.name, key.name) and _fits(key, tool, args, rule):
            rank = rule.decision != "deny", key.bare, not key.exact
            fitting.append((*rank, len(fitting), rule))
    if fitting:
        return min(fitting)[-1]
    if tool.origin == "mcp":
        return _ALLOW if tool.effect == "none" else _CONFIRM_MCP
    commands = tool.builtin and tool.name == SHELL_TOOL
    return _CONFIRM_COMMAND if commands and not is_known_safe(args) else _ALLOW


def _fits(key: PolicyKey, tool: Tool, args: Mapping[str, Any], rule: PolicyRule) -> bool:
    allows = rule.decision == "allow"
    if key.words is not None:
        line = args.get("command")
        if not isinstance(line, str):
            return not allows
        return is_one_command(line, key) if allows else may_run(line, key)
    return all(_argument_fits(tool, args, name, glob, allows=allows) for name, glob in key.globs)


def _argument_fits(
    tool: Tool, args: Mapping[str, Any], name: str, glob: str, *, allows: bool
) -> bool:
    value = argument(args, tool.parameters, name)
    if value is NONE or value is UNTOLD:
        return value is UNTOLD and not allows
    shell = tool.name == SHELL_TOOL and name == "command"
    if not allows:
        return may_fit(value, glob) or (shell and may_start(str(value), glob))
    fits = surely_fits(name, value, glob)
    return fits and (not shell or is_one_command(str(value), _ANY_COMMAND))


_ANY_COMMAND = PolicyKey(SHELL_TOOL, words=(), open_end=True)


def is_known_safe(args: Mapping[str, Any]) -> bool:
    """Whether a call of ``run_command`` only looks, or runs the tests as verification does."""
    line = args.get("command")
    safe = isinstance(line, str) and _SAFE_COMMANDS.fullmatch(line.strip(" \t\n"))
    return bool(safe) and not args.get("cwd")


# --- Rules of the policy have to be about something: checked when the graph is built. Pure.


def check_policy(settings: Tools, tools: Mapping[str, Tool]) -> None:
    """Raise ``SettingsError`` for a rule whose tool or argument is plainly misspelt.

    A name that resembles none is let be: settings are shared by graphs with other tools. So is one
    that is a letter off from a tool of the application which has a rule of its own.
    """
    ruled = {policy_key(text).name for text in settings.policy}
    for text in settings.policy:
        key = policy_key(text)
        said = _misspelt(key, tools, ruled) if key.exact else None
        if said:
            raise SettingsError(f"setting 'tools.policy.{text}': {said}")


def _misspelt(key: PolicyKey, tools: Mapping[str, Tool], ruled: Set[str]) -> str | None:
    tool = tools.get(key.name)
    if tool is None:
        alike = [each for each in tools if name_key(each) == name_key(key.name)]
        builtin = [each for each, tool in tools.items() if tool.builtin]
        close = get_close_matches(key.name, builtin, n=1, cutoff=0.8)
        slips = [each for each in tools if each not in ruled and _is_slip(key.name, each)]
        meant = next(iter((*alike, *close, *slips)), None)
        return f"there is no tool {key.name!r}; did you mean {meant!r}?" if meant else None
    known = tool.parameters.get("properties", {})
    if tool.parameters.get("additionalProperties", True) is not False:
        return None
    for name, _ in key.globs:
        if name not in known:
            return f"{key.name!r} has no argument {name!r}; it has: {', '.join(known)}"
    return None


def _is_slip(written: str, name: str) -> bool:
    """Whether one letter behind the first is another, missing or too many, or two are swapped."""
    for at in range(1, max(len(written), len(name))):
        ours, theirs = written[at:], name[at:]
        if written[:at] != name[:at] or (ours[:1] + theirs[:1]).isdigit():
            continue
        swapped = ours[:2] == theirs[:2][::-1] and ours[2:] == theirs[2:]
        if swapped or ours[1:] in (theirs, theirs[1:]) or ours == theirs[1:]:
            return True
    return False


# --- Policy profiles: which tools the model is shown at all (TL-06). Pure.

LIBRARIAN_RETRIEVAL = (
    "search_knowledge",
    "hybrid_search",
    "web_search",
    "get_knowledge_graph_context",
)
"""The names of AS-02."""

BUILTIN_PROFILES = ("all", "read_only", "librarian_retrieval")


def profile_shows(settings: Tools, tool: Tool) -> bool:
    """Whether the profile in use shows a tool. One's own profile goes before a built-in one.

    Raises :class:`~daruma.state.settings.SettingsError` for a profile that is not there.
    """
    profile = settings.profile or "all"
    if profile == "all" and not settings.profiles:
        return True
    check_profile(settings)
    if profile in settings.profiles:
        return any(fnmatchcase(tool.name, pattern) for pattern in settings.profiles[profile])
    if profile == "read_only":
        return tool.effect == "none"
    return profile == "all" or tool.name in LIBRARIAN_RETRIEVAL


def check_profile(settings: Tools) -> None:
    """Raise ``SettingsError`` for a profile that is not there, naming those that are."""
    try:
        check_profile_name(settings.profile, settings)
    except SettingsError as error:
        raise SettingsError(f"setting 'tools.profile': {error}") from None


def check_profile_name(profile: str | None, settings: Tools) -> None:
    """Raise ``SettingsError`` for the name of a profile that is not there; None is no name."""
    known = list(dict.fromkeys((*BUILTIN_PROFILES, *settings.profiles)))
    if profile is None or profile in known:
        return
    close = get_close_matches(profile, known, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    raise SettingsError(f"there is no profile {profile!r}{hint} There are: {', '.join(known)}")


# --- Programs that fetch what they run: which words of theirs name it, and what a version is.


class Runner(NamedTuple):
    """How one is called. ``named_by`` options name a package in place of the first word.

    ``also_by`` options name further ones, ``valued`` ones take a word that names none.
    """

    version: str
    named_by: frozenset[str] = frozenset()
    also_by: frozenset[str] = frozenset()
    valued: frozenset[str] = frozenset()


_LOCAL: Final = r"\.{0,2}/.*"
_NODE: Final = Runner(
    rf"(?:@[^/@]+/)?[^@/]+@\d+\.\d+\.\d+[\w.+-]*|{_LOCAL}",
    named_by=frozenset({"-p", "--package"}),
    valued=frozenset({"--registry", "--cache", "--prefix", "-w", "--workspace", "--node-options"}),
)
_UV: Final = Runner(
    rf"[\w.-]+(?:\[[\w,.-]+\])?(?:==|@)\d[\w.!+]*|git\+\S+@[0-9a-f]{{7,40}}|{_LOCAL}",
    named_by=frozenset({"--from", "--spec"}),
    also_by=frozenset({"--with"}),
    valued=frozenset(
        {"-p", "--python", "-i", "--index", "--index-url", "--default-index", "--pip-args"}
        | {"--extra-index-url", "-c", "--constraints", "--directory", "--cache-dir", "--env-file"}
    ),
)
_IMAGE: Final = Runner(
    r"\S+(?::(?!latest$)[\w.-]+|@sha256:[0-9a-f]{64})",
    valued=frozenset(
        {"-e", "--env", "-v", "--volume", "-p", "--publish", "--name", "--network", "--mount"}
        | {"-w", "--workdir", "-u", "--user", "--env-file", "--entrypoint", "-h", "--hostname"}
    ),
)
RUNNERS: Final[Mapping[tuple[str, ...], Runner]] = {
    **dict.fromkeys([("npx",), ("bunx",), ("pnpx",), ("pnpm", "dlx"), ("yarn", "dlx")], _NODE),
    **dict.fromkeys([("npm", "exec"), ("npm", "x"), ("bun", "x")], _NODE),
    **dict.fromkeys([("uvx",), ("uv", "tool", "run"), ("uv", "x"), ("pipx", "run")], _UV),
    **dict.fromkeys([("docker", "run"), ("podman", "run"), ("nerdctl", "run")], _IMAGE),
}

_WITHIN: Final = frozenset(
    {"sh", "bash", "zsh", "dash", "env", "cmd", "powershell", "pwsh", "exec"}
)
"""Programs whose words hold the command that counts."""


def find_unversioned(command: Sequence[str]) -> str:
    """Say what of a server's command may become another program by itself; empty for nothing."""
    words = [*command]
    within = bool(words) and _program(words[0]) in _WITHIN
    if within:
        words = " ".join(words).replace('"', " ").replace("'", " ").split()
    for at in range(len(words) if within else 1):
        for prefix, runner in RUNNERS.items():
            if tuple(map(_program, words[at : at + len(prefix)])) == prefix:
                named = [*_packages(words[at + len(prefix) :], runner)]
                loose = [each for each in named if not re.fullmatch(runner.version, each)]
                return " ".join(loose or ([] if named else prefix))
    return ""


def _program(word: str) -> str:
    return re.sub(r"\.(?:exe|cmd|bat|ps1)$", "", PurePath(word.replace("\\", "/")).name.casefold())


def _packages(words: Sequence[str], runner: Runner) -> Iterator[str]:
    named, rest = False, iter(words)
    for word in rest:
        option, equals, value = word.partition("=")
        if option in runner.named_by | runner.also_by:
            named = named or option in runner.named_by
            yield value if equals else next(rest, "")
        elif word in runner.valued:
            next(rest, "")
        elif not word.startswith("-"):
            if not named:
                yield word
            return


# --- Whether a call of an MCP tool is one of what was approved.


def check_pin(tool: Tool, rule: PolicyRule, ran_as: str | None) -> PolicyRule:
    """Return the rule for a call of an MCP tool; it is asked about where it is not pinned (SE-06).

    ``ran_as`` is the definition that the tool had when it ran last on this thread, which a person
    or the policy had agreed to; a tool whose server names no version is asked about before that.
    """
    if tool.origin != "mcp" or rule.decision == "deny":
        return rule
    why = ""
    if ran_as is not None and ran_as != tool.definition:
        why = f"{REDEFINED} is not what it was when the tool ran before"
    elif ran_as is None and (loose := find_unversioned(tool.server)):
        why = f"the command of its server names no version of {loose}: it may change by itself"
    if not why:
        return rule
    reason = f"{rule.reason}; {why}" if rule.reason else why
    return rule.model_copy(update={"decision": "confirm", "reason": reason})


REDEFINED: Final = "the description, the schema or the server of the tool"
