"""``run``, ``resume``, ``answer``, ``threads`` and ``show``: one thread, from call to call."""

import json
import re
import signal
import sys
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.daruma_command import DONE, OTHER_PLAN, PLAN, Daruma, Said, command
from tests.mcp_servers import McpServerOfOurs
from tests.openai_answers import Reply
from tests.openai_server import Answerer, openai_server

from daruma.graph.command_line._output import Paper, Table


def planned(daruma: Daruma, *options: str, **script: Any) -> Said:
    """Run a planned task on thread ``t``."""
    model = daruma.script(**({"plan": [PLAN, OTHER_PLAN], "main": [DONE]} | script))
    return daruma(
        "run", "Do it", "--mode", "plan_exec", "--model", model, "--thread", "t", *options
    )


def commanded(daruma: Daruma, *options: str, calls: list[dict[str, Any]]) -> Said:
    """Run a task on thread ``t`` whose model calls tools and is done."""
    model = daruma.script(main=[{"calls": calls}, DONE])
    return daruma("run", "Do it", "--workspace", "ws", "--model", model, "--thread", "t", *options)


def test_what_is_told_while_it_happens_is_told_afterwards(daruma: Daruma) -> None:
    """FA-04: calls, phases and checks in the same words, live and by ``show``."""
    daruma.configure(
        "tools: {policy: {run_command: deny}}\nverification: {commands: [test -e a]}\n"
    )
    create = {"command": "create", "path": "a", "file_text": "x"}
    calls = [
        {"name": "run_command", "args": {"command": "rm b"}, "id": "1"},
        {"name": "str_replace_editor", "args": create, "id": "2"},
    ]

    live = commanded(daruma, calls=calls).out
    later = daruma("show", "t").out

    told = ["✗ $ rm b", "denied by policy: run_command", "✓ create a", "+ x", "✓ $ test -e a  "]
    for each in told:
        (line,) = [_plain(line) for line in live.splitlines() if each in line]
        assert line in [_plain(line) for line in later.splitlines()]


def _plain(line: str) -> str:
    """Return a line without the time of day, and how long it took."""
    return re.sub(r"\d+:\d\d:\d\d \+\d+:\d\d  |\d+\.\d s( · )?", "", line).rstrip()


@pytest.mark.long
def test_changed_tests_and_old_red_ones_are_told(daruma: Daruma) -> None:
    """VE-08, MO-10: by the run, by ``show`` and on the page; what is red bears no tick."""
    workspace = daruma.folder / "ws"
    workspace.mkdir(exist_ok=True)
    (workspace / "test_old.py").write_text("def test_old(): assert 0\n")
    new = {"command": "create", "path": "test_new.py", "file_text": "def test_n(): pass\n"}
    said = commanded(daruma, calls=[{"name": "str_replace_editor", "args": new}])
    page = daruma("show", "t", "--html", "-")

    for face in (said.out, daruma("show", "t").out):
        assert "tests    changed: test_new.py" in face
        assert "✓ pytest" not in face
        assert "· pytest -x -q" in face
    assert "tests changed: test_new.py" in page.out


@pytest.mark.long
def test_a_thread_keeps_the_model_that_it_ran_with(daruma: Daruma) -> None:
    """Unless one is given: whatever the settings name by now."""
    daruma("run", "x", "--model", daruma.script(main=[DONE, DONE, DONE]), "--thread", "t")
    daruma.configure("llm: {model: 'scripted:/no/such'}")

    again = daruma("run", "y", "--thread", "t")
    other = daruma("run", "z", "--thread", "new")
    given = daruma("run", "z", "--thread", "t", "--model", "scripted:/not/there")

    assert (again.code, "scripted:" in again.out) == (0, True)
    assert "/no/such" in other.complaint
    assert "/not/there" in given.complaint


def test_json_is_the_last_line_and_the_only_one(daruma: Daruma) -> None:
    """Standard output is for programs: one object, all else goes to standard error (FA-04)."""
    said = planned(daruma, "--yes", "--json")

    assert said.code == 0
    assert len(said.out.splitlines()) == 1
    assert said.json["thread"] == "t"
    assert said.json["status"] == "completed"
    assert said.json["phases"][0]["status"] == "completed"
    assert "Is this plan right? confirmed" in said.err


@pytest.mark.long
def test_a_task_does_not_write_the_next_ones_rules(daruma: Daruma) -> None:
    """A file that the model made or changed counts once a person agrees to it, wherever (SE-02)."""
    wanted = {"command": "create", "path": "daruma.yaml"}
    wanted["file_text"] = "tools: {policy: {run_command: allow}}"
    daruma.script(main=[{"calls": [{"name": "str_replace_editor", "args": wanted}]}, DONE])
    (home := daruma.folder / "home").mkdir()
    daruma.chdir(home)
    given = ("Do it", "--workspace", ".", "--model", "scripted:../script.json")
    assert daruma("run", *given).code == 0

    refused = daruma("run", *given)
    (other := daruma.folder / "other").mkdir()
    (other / "daruma.yaml").write_bytes((home / "daruma.yaml").read_bytes())
    daruma.chdir(other)
    met_again = daruma("run", *given)
    agreed = daruma("trust", "../home", "--yes")
    daruma.chdir(home)
    ran = daruma("run", *given)

    for said in (refused, met_again):
        assert "is not trusted, and would change tools.policy.run_command" in said.complaint
    assert [each.code for each in (agreed, ran)] == [0, 0]


def test_a_task_does_not_write_its_own_rules(daruma: Daruma) -> None:
    """Its workspace may hold ``daruma.yaml``: what is written there is no permission (SE-02)."""
    wanted = {"command": "create", "path": "daruma.yaml"}
    wanted["file_text"] = "tools: {policy: {run_command: allow}}"
    write = {"name": "str_replace_editor", "args": wanted, "id": "w"}
    turns = [[write], [command("touch one", "a")], [command("touch two", "b")]]
    daruma.script(main=[*({"calls": calls} for calls in turns), DONE])
    (home := daruma.folder / "home").mkdir()
    daruma.chdir(home)
    model = "scripted:../script.json"
    asked = daruma("run", "Do it", "--workspace", ".", "--model", model, "--thread", "t")
    assert asked.code == 3

    said = daruma("answer", "t", "--approve")
    (home / "daruma.yaml").unlink()
    daruma("answer", "t", "--approve", "a")  # void: the file is gone
    again = daruma("answer", "t", "--approve", "a")

    assert "would change tools.policy.run_command" in said.complaint
    assert again.code == 3
    assert [(home / name).exists() for name in ("one", "two")] == [True, False]


@pytest.mark.long
@pytest.mark.parametrize("again", ["resume", "retry"])
def test_a_reopened_thread_keeps_its_model_and_settings(daruma: Daruma, again: str) -> None:
    """It stops at a question before its first step: who answers goes on under the same rules."""
    asked = "run_command: {decision: confirm, required: true}"
    rules = f'{asked}, "run_command(touch two)": deny'
    daruma.configure(f"tools: {{policy: {{{rules}}}}}\n")
    commanded(daruma, calls=[command("touch one", "a")])
    daruma("answer", "t", "--deny")

    assert daruma(again, "t").code == 3
    (daruma.folder / "elsewhere").mkdir()
    daruma.chdir(daruma.folder / "elsewhere")
    said = daruma("answer", "t", "--edit", "a", "--args", '{"command": "touch two"}')

    assert said.code == 0
    assert not (daruma.folder / "ws" / "two").exists()


@pytest.mark.long
def test_a_thread_keeps_its_settings_and_its_model(
    daruma: Daruma, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answered from another folder, it still runs under the settings it was started with."""
    daruma.configure("verification: {commands: ['test -e marker']}\n")
    planned(daruma, "--workspace", "ws")
    monkeypatch.chdir(daruma.folder / "ws")

    said = daruma("answer", "t", "--confirm", "--json", "--model", "scripted:../script.json")

    assert said.json["status"] != "completed"
    assert "test -e marker" in said.json["verification"]


def test_a_narrow_list_keeps_the_names_whole() -> None:
    """At 60 columns goals are cut, names and statuses are not: they are there to be copied."""
    at, goal = datetime.now(UTC) - timedelta(hours=2), "A goal of many words " * 5
    names = ("demo-lively-panda-hehk", "t")
    rows = [(name, "unfinished", at, goal) for name in names]
    file = StringIO()
    console = Console(file=file, width=60, force_terminal=True, color_system=None)

    Table(("thread", "status", "when", "goal"), rows, cuts=True).show(Paper(console))

    head, *lines = file.getvalue().splitlines()
    assert head.split() == ["thread", "status", "when", "goal"]
    assert len(lines) == 2
    assert lines[0].startswith("demo-lively-panda-hehk  unfinished  2 h ago  A goal")
    assert max(map(len, lines)) <= 60


def test_a_narrow_list_breaks_what_has_lines_of_its_own() -> None:
    """At 30 columns all is whole, and what is to be pasted has one line (TL-13)."""
    at = datetime.now(UTC) - timedelta(hours=2)
    rows = [
        ("thread-0", "approval", at, "run_command: rm a.txt", "daruma answer thread-0 --approve")
    ]
    file = StringIO()
    console = Console(file=file, width=30, force_terminal=True, color_system=None)

    columns = ("thread", "kind", "since", "question", "answer")
    Table(columns, rows, below=2).show(Paper(console))

    lines = [line.rstrip() for line in file.getvalue().splitlines()]
    assert lines == [
        *("thread-0  approval  2 h ago", "  run_command: rm a.txt"),
        "  daruma answer thread-0 --approve",
    ]


# --- A thread whose rollback failed stops, says so, and goes on as a person decides (RO-03).


# --- The command line offers the tools of the MCP servers that the settings name.

SERVER = """
from mcp.server.fastmcp import FastMCP

server = FastMCP("notes", log_level="ERROR")

@server.tool()
def write(text: str) -> str:
    "Write it down."
    return f"wrote {text}"

server.run()
"""


def configured(daruma: Daruma, *command: str) -> None:
    """Name one server, and allow what it offers."""
    tools = {"mcp_servers": {"notes": {"command": command}}, "policy": {"mcp__*": "allow"}}
    daruma.configure(json.dumps({"tools": tools}))


@pytest.mark.long
def test_a_run_may_call_a_servers_tools(daruma: Daruma) -> None:
    """TL-22: in a process of its own, as a person starts it."""
    script = daruma.folder / "servers" / "server.py"
    script.parent.mkdir()
    script.write_text(SERVER)
    configured(daruma, sys.executable, str(script))
    call = {"name": "mcp__notes__write", "args": {"text": "this"}}
    told = DONE | {"expect": ["wrote this"]}
    model = daruma.script(main=[{"calls": [call]}, told])

    said = daruma.run("run", "Do it", "--model", model, "--json")

    assert (said.code, said.json["status"]) == (0, "completed"), said.err


@pytest.mark.long
def test_ctrl_c_ends_a_server(daruma: Daruma) -> None:
    """FA-11: it ran for this run alone, and was at work."""
    server = McpServerOfOurs(daruma.folder / "server")
    settings = {"mcp_servers": {"s": server.setting()}, "policy": {"mcp__*": "allow"}}
    daruma.configure(json.dumps({"tools": settings}))
    model = daruma.script(main=[{"calls": [{"name": "mcp__s__hang", "args": {"seconds": 600}}]}])
    with daruma.start("run", "Do it", "--model", model) as process:
        server.hear_of_hang()
        process.send_signal(signal.SIGINT)
        process.communicate()

    assert len(server.started) == 1
    assert not server.alive


# --- ``daruma run`` with the real OpenAI client, on a real repository, judged by real pytest.

PLAN_OPENAI_RUNS = Reply(
    '{"phases": [{"id": "p1", "title": "Fix add()", "instructions": "Repair calc.py."}]}'
)
DONE_OPENAI_RUNS = Reply("It is fixed.")
REFLECTION = Reply("I changed the wrong operator.")


@pytest.fixture
def daruma_openai_runs(daruma: Daruma, tmp_path: Path) -> Daruma:
    """The command, on a database of its own, with a repository whose test fails."""
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    test = "from calc import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"
    (repo / "test_calc.py").write_text(test)
    return daruma


def edit(old: str, new: str) -> Reply:
    """An answer that puts one operator in the place of another."""
    args = {"command": "str_replace", "path": "calc.py", "old_str": old, "new_str": new}
    return Reply(calls=[{"name": "str_replace_editor", "arguments": args}])


def run_openai_runs(
    daruma: Daruma, reply: Answerer | list[Reply]
) -> tuple[Said, list[dict[str, Any]]]:
    """Run the task against a server and return what was said, and what the server was asked."""
    with openai_server(reply) as server:
        daruma.setenv("OPENAI_BASE_URL", server.url)
        daruma.setenv("OPENAI_API_KEY", "sk-test")
        said = daruma(
            "run", "Make the tests pass", "--workspace", "repo", "--mode", "plan_exec",
            "--model", "openai:test", "--yes", "--json",
        )  # fmt: skip
        return said, server.requests


def test_a_wrong_fix_is_found_reflected_on_and_put_right(daruma_openai_runs: Daruma) -> None:
    """What pytest said reaches the model; the second attempt is verified green (BU-02)."""
    replies = [
        *[PLAN_OPENAI_RUNS, edit("a - b", "a * b"), DONE_OPENAI_RUNS, DONE_OPENAI_RUNS],
        *[REFLECTION, edit("a * b", "a + b"), DONE_OPENAI_RUNS],
    ]

    said, requests = run_openai_runs(daruma_openai_runs, replies)

    assert (said.code, said.json["status"]) == (0, "completed")
    assert said.json["budgets"]["verify"] == 3
    assert "assert 6 == 5" in str(requests[3]["messages"])
    assert len(requests) == 7


@pytest.mark.long
def test_a_recovery_whose_failure_ended_the_task_did_not_work(daruma: Daruma) -> None:
    """RE-08: ``show`` tells it as the result does."""
    (daruma.folder / "ws").mkdir(exist_ok=True)
    same, other = (
        {"calls": [{"name": "search", "args": {"pattern": pattern}}]} for pattern in ("a", "b")
    )
    script = daruma.script(main=[same, same, same, other, same, same, same], recovery=[DONE])
    ended = daruma(
        "run", "Do it", "--model", script, "--thread", "t", "--workspace", "ws", "--json"
    )

    shown = daruma("show", "t", "--json").json
    assert [each["worked"] for each in ended.json["recoveries"]] == [False]
    assert [each["worked"] for each in shown["recoveries"]] == [False]
