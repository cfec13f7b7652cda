"""What a person agreed to of an MCP tool, and what is asked about again (SE-06). Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Final, NamedTuple

from daruma.state.settings import PolicyRule
from daruma.tools.calls._tool import Tool

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


def unversioned(command: Sequence[str]) -> str:
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


def pinned(tool: Tool, rule: PolicyRule, ran_as: str | None) -> PolicyRule:
    """Return the rule for a call of an MCP tool, which is asked about where it is not pinned.

    ``ran_as`` is the definition that the tool had when it ran last on this thread, which a person
    or the policy had agreed to; a tool whose server names no version is asked about before that.
    """
    if tool.origin != "mcp" or rule.decision == "deny":
        return rule
    why = ""
    if ran_as is not None and ran_as != tool.definition:
        why = f"{REDEFINED} is not what it was when the tool ran before"
    elif ran_as is None and (loose := unversioned(tool.server)):
        why = f"the command of its server names no version of {loose}: it may change by itself"
    if not why:
        return rule
    reason = f"{rule.reason}; {why}" if rule.reason else why
    return rule.model_copy(update={"decision": "confirm", "reason": reason})


REDEFINED: Final = "the description, the schema or the server of the tool"
