"""What a person agreed to of an MCP tool, and what is asked about again (SE-06)."""

from typing import Any

from daruma.state.settings import PolicyRule
from daruma.tools.calls import Surroundings, Tool
from daruma.tools.calls.policy._policy import check_pin, find_unversioned

SHA = "sha256:" + "a" * 64
VERSIONED = (
    "npx -y @scope/server@1.2.3 --root .",
    "npx --package=server@1.2.3 -- serve",
    "npx -p server@1.2.3 -p other@2.0.0 serve",
    "npm exec server@1.2.3",
    "pnpm dlx server@1.2.3-beta.1",
    "npx ./build/server.js",
    "uvx server==1.2",
    "uvx server[extra]@1.2.3 --port 3",
    "uvx --python 3.12 --from server==1.2.3 serve",
    "uvx --with other==2.0 server==1.2.3",
    f"uvx --from git+https://host/server@{'a' * 40} serve",
    "uv tool run server==1.2.3",
    "pipx run --spec server==1.2.3 serve",
    "docker run -i --rm -e KEY=x host/server:1.2.3",
    f"docker run -i host/server@{SHA}",
    "python -m server",
    "/usr/bin/server npx",
    "https://host/mcp",
)
LOOSE = (
    ("npx -y @scope/server --root .", "@scope/server"),
    ("npx server@latest", "server@latest"),
    ("npx server@^1.2.3", "server@^1.2.3"),
    ("npx server@1", "server@1"),
    ("/opt/node/bin/npx -y server", "server"),
    ("npx.cmd server", "server"),
    ("npx -p server@1.2.3 -p other serve", "other"),
    ("bunx server", "server"),
    ("npm exec -- server", "server"),
    ("uvx server", "server"),
    ("uvx --python 3.12 server", "server"),
    ("uvx --with other server==1.2.3", "other"),
    ("uvx --from git+https://host/server@main serve", "git+https://host/server@main"),
    ("pipx run server", "server"),
    ("docker run -i --rm host/server", "host/server"),
    ("docker run -i host/server:latest", "host/server:latest"),
    ("env KEY=x npx -y server", "server"),
    ("npx", "npx"),
)


def test_a_command_that_names_no_version_is_told() -> None:
    """SE-06: npx and its kin run what is newest today; a shell is looked into."""
    for command, loose in (*((each, "") for each in VERSIONED), *LOOSE):
        assert find_unversioned(command.split()) == loose
    assert find_unversioned(["sh", "-c", "exec npx -y 'server'"]) == "server"
    assert find_unversioned(["cmd", "/c", "npx server@1.2.3"]) == ""


async def nothing(_: object, __: Surroundings) -> str:
    return ""


def a_tool(description: str = "Pay.", server: str = "server", **how: object) -> Tool:
    given = {"origin": "mcp", "server": tuple(server.split())} | how
    return Tool("mcp__s__pay", description, {"type": "object"}, nothing, **given)  # type: ignore[arg-type]


ALLOWED, DENIED = PolicyRule(decision="allow"), PolicyRule(decision="deny")
CASES: list[tuple[str, Tool, PolicyRule, Tool | None, str]] = [
    ("never ran", a_tool(), ALLOWED, None, "allow"),
    ("the same", a_tool(), ALLOWED, a_tool(), "allow"),
    ("other words", a_tool("Pay all."), ALLOWED, a_tool(), "confirm"),
    ("another server", a_tool(server="other"), ALLOWED, a_tool(), "confirm"),
    ("another effect", a_tool(effect="none"), ALLOWED, a_tool(), "confirm"),
    ("denied", a_tool("Pay all."), DENIED, a_tool(), "deny"),
    ("no version", a_tool(server="npx s"), ALLOWED, None, "confirm"),
    ("no version, approved", a_tool(server="npx s"), ALLOWED, a_tool(server="npx s"), "allow"),
    ("our own", a_tool("Pay all.", origin="application"), ALLOWED, a_tool(), "allow"),
]


def test_a_tool_is_pinned_by_what_ran_before() -> None:
    """SE-06: whatever the policy allows; the reason is told with it."""
    tool: Any
    rule: Any
    before: Any
    for tool, rule, before, decision in [c[1:] for c in CASES]:
        found = check_pin(tool, rule, before.definition if before else None)

        assert found.decision == decision
        assert bool(found.reason) == (decision != rule.decision)
