"""The command line as a whole: quick to start, one line for a mistake, nothing lost by one."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import openai
import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, StateGraph
from tests.damages import DAMAGES, restored
from tests.daruma_command import DONE, PLAN, Daruma, command
from tests.fault_proxy import FaultProxy, fault_proxy, passing
from tests.mcp_servers import McpServerOfOurs
from tests.openai_answers import Reply
from tests.openai_server import Answer, Fault, openai_server
from tests.terminal import Terminal
from typing_extensions import TypedDict

from daruma import open_postgres
from daruma.graph.command_line._messages import complaint, kept
from daruma.graph.command_line._threads import seconds_of, size_of
from daruma.graph.models._faults import ScriptExhausted


def test_help_does_not_wait_for_the_machine() -> None:
    """``daruma --help`` imports none of the slow libraries."""
    slow = ["langgraph", "langchain_core", "langchain_openai", "psycopg", "pydantic", "openai"]
    script = (
        "import sys\nfrom daruma.graph.command_line import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit as end:\n    assert end.code == 0\n"
        f"print([name for name in {slow} if name in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )

    assert "Commands" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


def test_nothing_is_imported_from_the_current_folder(tmp_path: Path) -> None:
    """SE-01: a task may have written there, and `python -m` looks there first."""
    for name in ("typer", "yaml", "pydantic", "json"):
        (tmp_path / f"{name}.py").write_text("open('canary', 'w')")
    argv = [sys.executable, "-m", "daruma", "--version"]
    subprocess.run(argv, cwd=tmp_path, check=True, capture_output=True)

    assert not (tmp_path / "canary").exists()


EXPECTED_FINDINGS = {"Python", "langgraph", "Postgres", "sandbox", "model", "git", "pytest", "ruff"}


def findings(daruma: Daruma, *options: str) -> tuple[int, dict[str, dict[str, Any]]]:
    said = daruma("doctor", "--json", *options)
    return said.code, {each["name"]: each for each in json.loads(said.out)}


def test_the_doctor_looks_at_everything_and_shows_no_key(daruma: Daruma) -> None:
    """What is there is named with its version; of a key only that it is there."""
    daruma.setenv("OPENAI_API_KEY", "sk-very-secret")
    daruma.setenv("DARUMA_LLM__MODEL", "openai:test")

    said = daruma("doctor")
    code, found = findings(daruma)

    assert (said.code, code) == (0, 0)
    assert found.keys() >= EXPECTED_FINDINGS
    assert found["model"]["state"] == "ok"
    assert "OPENAI_API_KEY is set" in said.out
    assert "very-secret" not in said.out + said.err


def test_the_doctor_says_what_is_wrong_with_a_database_and_looks_at_the_rest(
    daruma: Daruma,
) -> None:
    """One of another version: what refuses it sends people here."""
    daruma("threads")
    with psycopg.connect(daruma.url, autocommit=True) as owner:
        owner.execute("UPDATE daruma_version SET v = v - 1")

    code, found = findings(daruma)

    assert (code, found["Postgres"]["state"]) == (1, "missing")
    assert "another version of Daruma" in found["Postgres"]["text"]
    assert found.keys() >= EXPECTED_FINDINGS


PATHS = {
    "the system's": ("/usr/bin", ""),
    "the home folder's own programs": ("{home}/.local/bin", ""),
    "a toolchain": ("{home}/.cargo/bin", ""),
    "what is not there": ("{home}/gone/bin", ""),
    "the current folder": (".", "'.' can be written by tasks"),
    "an empty one": ("", "'.' can be written by tasks"),
    "an environment of the workspace": ("{home}/work/.venv/bin", "can be written by tasks"),
    "a folder of the home": ("{home}/mine/bin", "commands can read {home}/mine, for"),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("what", PATHS)
def test_the_doctor_names_places_of_programs_that_are_risky(
    what: str, daruma: Daruma, tmp_path: Path
) -> None:
    """SE-01, SE-05: what a task leaves there a shell runs; what lies in the home is shown."""
    path, told = (text.format(home=tmp_path) for text in PATHS[what])
    for name in (".local/bin", ".cargo/bin", "work/.venv/bin", "mine/bin"):
        (tmp_path / name).mkdir(parents=True)
    daruma.chdir(tmp_path / "work")
    daruma.setenv("HOME", str(tmp_path))
    daruma.setenv("PATH", f"{path}:/usr/bin:/bin")

    code, found = findings(daruma)

    assert code == 0
    assert found.get("PATH", {"state": "note"})["state"] == "note"
    said = found.get("PATH", {"text": ""})["text"]
    assert told in said if told else not said


ASKED: dict[str, tuple[Answer, str]] = {
    "an answer": (Reply("ok"), "openai:m at http://ADDRESS/v1: answered in "),
    "an unknown model": (
        Fault(404, {"error": {"message": "no model m", "code": "model_not_found"}}),
        "openai:m: ADDRESS HTTP 404: no such model or address: no model m; check the model's name",
    ),
    "a wrong key": (
        Fault(401, {"error": {"message": "Incorrect API key: sk-very-secret"}}),
        "openai:m: ADDRESS HTTP 401: the key is refused: Incorrect API key: [key]; check OPENAI",
    ),
    "a used-up quota": (
        Fault(429, {"error": {"message": "Pay.", "code": "insufficient_quota"}}),
        "openai:m: ADDRESS HTTP 429: the quota or the credit is used up: Pay.; add credit",
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("case", ASKED)
def test_the_doctor_asks_the_model_if_told_to(daruma: Daruma, case: str) -> None:
    """FA-09: one request; what is wrong is one line: the address, the reason, what to do."""
    answer, expected = ASKED[case]
    daruma.setenv("OPENAI_API_KEY", "sk-very-secret")
    daruma.setenv("DARUMA_LLM__MODEL", "openai:m")
    with openai_server(lambda _: answer) as server:
        daruma.setenv("DARUMA_LLM__OPTIONS__MAIN__BASE_URL", server.url)
        _, offline = findings(daruma)
        assert (offline["model"]["state"], server.requests) == ("ok", [])
        assert "not asked" in offline["model"]["text"]

        code, found = findings(daruma, "--online")

    address = server.url.removeprefix("http://").removesuffix("/v1")
    assert found["model"]["text"].startswith(expected.replace("ADDRESS", address))
    assert "very-secret" not in found["model"]["text"]
    assert (code, found["model"]["state"]) == ((0, "ok") if case == "an answer" else (1, "missing"))
    assert len(server.requests) == 1


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:1/v1", "no connection to 127.0.0.1:1: connection refused; check the ad"),
        ("SERVER", "no such model or address: there is nothing at /chat/completions; does its ad"),
        (
            "SERVER/v1/chat/completions",
            "the address that is set has to end before /chat/completions",
        ),
    ],
)
def test_the_doctor_tells_of_a_wrong_address(daruma: Daruma, url: str, expected: str) -> None:
    """A dead one, and one without /v1; where there is no key, its variable is named."""
    daruma.setenv("DARUMA_LLM__MODEL", "openai:m")
    daruma.setenv("OPENAI_KEY", "sk-very-secret")
    with openai_server(lambda _: Reply("ok"), strict=False) as server:
        daruma.setenv("OPENAI_BASE_URL", url.replace("SERVER", server.url.removesuffix("/v1")))

        code, found = findings(daruma, "--online")

    assert expected in found["model"]["text"]
    assert (code, found["model"]["state"]) == (1, "missing")
    assert found["key"]["text"].startswith("OPENAI_API_KEY is not set (OPENAI_KEY is: was it me")


@pytest.mark.long
def test_the_doctor_lists_the_tools_of_mcp_servers(daruma: Daruma) -> None:
    """FA-11: it starts them only where it is asked to, and says why one does not start."""
    server = McpServerOfOurs(daruma.folder / "server")
    servers = {"s": server.setting(), "gone": {"command": "/no/such/program"}}
    daruma.configure(json.dumps({"tools": {"mcp_servers": servers}}))
    _, named = findings(daruma)
    begun = server.started
    _, found = findings(daruma, "--online")

    assert "not started" in named["MCP s"]["text"]
    assert (begun, server.alive) == ([], [])
    assert "mcp__s__pid, mcp__s__die" in found["MCP s"]["text"]
    assert found["MCP gone"]["state"] == "missing"


# --- Whatever goes wrong is one line; a bug's traceback is kept in a file.


def test_a_lost_database_says_how_to_go_on() -> None:
    """DU-04: nothing is lost."""
    said = complaint(psycopg.OperationalError("server closed\nthe connection"))

    assert said is not None
    assert "server closed the connection" in said
    assert "daruma resume" in said


def test_a_role_that_may_not_write_is_no_lost_database(daruma: Daruma) -> None:
    """To wait for it to come back would be waiting for ever: what is missing is a grant."""
    daruma("threads")
    with psycopg.connect(daruma.url, autocommit=True) as connection:
        connection.execute("CREATE ROLE daruma_reader NOLOGIN")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO daruma_reader")
        try:
            daruma.setenv("PGOPTIONS", "-c role=daruma_reader")
            said = daruma("run", "Hi", "--mode", "direct_chat", "--model", daruma.script())
        finally:
            connection.execute("DROP OWNED BY daruma_reader")
            connection.execute("DROP ROLE daruma_reader")

    assert "the database refused it (permission denied for table" in said.complaint
    assert "granted" in said.complaint


def test_a_key_that_a_provider_quotes_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider's own exception, where emergency is switched off, says what it likes."""
    monkeypatch.setenv("SOME_API_KEY", "own-secret")
    said = complaint(openai.OpenAIError("the key own-secret is wrong"))

    assert said is not None
    assert "the key [key] is wrong" in said


def test_a_script_that_ends_too_early_is_no_bug() -> None:
    """It is raised as it is where emergency is switched off."""
    assert complaint(ScriptExhausted("no turn")) == (
        "ScriptExhausted: no turn; `daruma show THREAD` says where it stands"
    )


def test_a_bug_is_one_line_and_its_traceback_is_kept() -> None:
    """Never a bare traceback, and never a lost one."""
    error = ZeroDivisionError("planted")

    assert complaint(error) is None
    line = kept(error)

    file = Path(line.rsplit(" ", 1)[-1])
    assert "\n" not in line
    assert "ZeroDivisionError: planted" in file.read_text()
    file.unlink()


# --- What the command line says of a damaged thread, and how one goes on with it (DU-05).


@pytest.fixture
def damaged(daruma: Daruma, postgres_url: str) -> Daruma:
    """The command, with a whole thread ``w``, and a finished one ``t`` whose end is damaged."""
    model = daruma.script(plan=[PLAN], main=[DONE])
    assert daruma("run", "Chat", "--mode", "direct_chat", "--model", model, "--thread", "w")
    daruma("run", "Do it", "--mode", "plan_exec", "--model", model, "--thread", "t")
    assert daruma("answer", "t", "--confirm").code == 0
    with psycopg.connect(postgres_url) as connection:
        connection.execute(DAMAGES["a lost value"].encode())
    return daruma


LISTED = (
    "a lost value",
    "a row of another form",
    "a row of nothing",
    "a row with no time",
    "a broken manifest",
    "metadata of another form",
)


def test_the_other_threads_are_listed(damaged: Daruma, postgres_url: str) -> None:
    """The damaged one among them, by its name, whatever the damage is."""
    for name in LISTED:
        with restored(postgres_url) as connection:
            connection.execute(DAMAGES[name].encode())
            listed = dict(line.split("\t")[:2] for line in damaged("threads").out.splitlines())

        assert listed == {"t": "damaged", "w": "completed, not checked"}, name


class Ordered(TypedDict, total=False):
    messages: list[Any]
    job: str


@pytest.mark.parametrize(
    ("given", "goal"),
    [
        ({"messages": [HumanMessage("Build it"), AIMessage("How?")]}, "Build it"),
        ({"messages": ["no message"], "job": "Build it"}, "(another graph: coder, report)"),
        ({"job": "Build it"}, "(another graph: coder, report)"),
    ],
)
def test_a_thread_of_another_graph_is_listed_with_what_stands_there(
    given: Any, goal: str, daruma: Daruma, postgres_url: str
) -> None:
    """FA-13: what a person said last, or else the nodes, also of one that has not run yet."""
    graph: Any = StateGraph(Ordered)
    graph.add_node("coder", lambda _: {}).add_node("report", lambda _: {})
    graph.add_edge(START, "coder").add_edge("coder", "report")
    with open_postgres(postgres_url) as pg:
        around = graph.compile(checkpointer=pg.checkpointer, interrupt_before=["report"])
        around.invoke(given, {"configurable": {"thread_id": "t"}})

    assert daruma("threads").out.strip().split("\t")[::3] == ["t", goal]


@pytest.mark.long
def test_a_question_of_an_earlier_checkpoint_can_be_answered(
    daruma: Daruma, postgres_url: str
) -> None:
    """The thread asks again what was open there."""
    model = daruma.script(plan=[PLAN], main=[DONE])
    daruma("run", "Do it", "--mode", "plan_exec", "--model", model, "--thread", "t")
    with psycopg.connect(postgres_url) as connection:
        connection.execute(DAMAGES["a row of nothing"].encode())
    (command,) = re.findall(r"`daruma (resume t --from \S+)`", daruma("show", "t").complaint)

    assert daruma(*command.split()).code == 3
    assert daruma("answer", "t", "--confirm").code == 0


# --- A database that is lost during a command: one line, exit code 2, and how to go on (DU-04).

LOOK = {"calls": [command("true")]}


def run(daruma: Daruma, proxy: FaultProxy, thread: str, last: int) -> list[str]:
    """Run a task whose database is lost from a message on; return what was complained about."""
    daruma.setenv("DARUMA_POSTGRES_URL", proxy.url)
    daruma.setenv("DARUMA_POSTGRES_OUTAGE_SECONDS", "0")
    model = daruma.script(main=[LOOK, LOOK, DONE])
    proxy.count_from_here(lambda number: "pass" if number < last else "cut before")
    task = ("run", "Do it", "--workspace", "ws", "--mode", "react", "--yes", "--json")
    said = daruma(*task, "--thread", thread, "--model", model)
    proxy.mend()
    assert said.code == (2 if last < 10**6 else 0)
    return [line for line in said.err.splitlines() if line.startswith("daruma: ")]


@pytest.mark.long
def test_a_lost_database_is_one_line_and_the_task_can_be_gone_on_with(daruma: Daruma) -> None:
    """Lost half-way through the task."""
    with fault_proxy(daruma.url) as proxy:
        run(daruma, proxy, "whole", 10**6)
        (line,) = run(daruma, proxy, "t", proxy.messages * 2 // 3)

        assert "was lost" in line
        assert "`daruma resume THREAD`" in line
        resumed = daruma("resume", "t", "--yes", "--json")
        assert (resumed.code, resumed.json["status"]) == (0, "completed")
        assert proxy.fate is passing


def test_a_wrong_password_and_a_database_that_is_not_there_are_one_line(daruma: Daruma) -> None:
    """The address is told, without the password."""
    gone = daruma.url.replace("dbname=", "dbname=no_such_")
    daruma.setenv("DARUMA_POSTGRES_OUTAGE_SECONDS", "0")
    daruma.setenv("DARUMA_POSTGRES_URL", gone)

    line = daruma("threads").complaint

    assert "no_such_" in line
    assert "does not exist" in line
    assert "DARUMA_POSTGRES_URL" in line


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("typed", "code"), [("y", 0), ("n", 2)])
def test_on_a_terminal_it_is_asked(daruma: Daruma, typed: str, code: int) -> None:
    """With what the file would switch on; a yes is kept, and the command goes on."""
    daruma.script(main=[DONE])
    (daruma.folder / "daruma.yaml").write_text("llm: {model: 'scripted:script.json'}\n")
    terminal = Terminal(daruma, "run", "Do it", columns=200)
    terminal.wait_for("Trust exactly this?")
    terminal.type(typed)

    assert terminal.end() == code
    assert 'llm.model: "scripted:script.json"' in terminal.seen
    assert ("It is done." in terminal.seen) is (code == 0)
    assert daruma("settings", "llm.model", "--effective").code == code


@pytest.mark.long
def test_the_settings_name_the_embedding_model(daruma: Daruma) -> None:
    """It is asked at the address of the environment; one that refuses leaves the words."""
    (daruma.folder / "a.txt").write_text("turin")
    daruma.configure("llm: {embedding_model: near, model_aliases: {near: 'openai:tiny'}}")
    with openai_server([], strict=False) as server:
        daruma.setenv("OPENAI_BASE_URL", server.url)

        added = daruma("knowledge", "add", "a.txt", "--json")
        found = daruma("knowledge", "search", "turin", "--json")
        reindexed: Any = daruma("knowledge", "reindex", "--json").json

    assert added.json["passages"] == 1
    assert "by words alone: the embedding model failed (" in added.json["note"]
    assert [each["text"] for each in found.json["passages"]] == ["turin"]
    assert (reindexed["made"], "failed" in reindexed["note"]) == (0, True)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90min", 5400), ("12h", 43_200), ("30d", 2_592_000), ("2w", 1_209_600)]
)
def test_lengths_of_time_are_read(text: str, seconds: float) -> None:
    """A number and its unit."""
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    ("size", "said"), [(0, "0 bytes"), (1500, "1.5 KB"), (2e6, "2.0 MB"), (3.5e9, "3.5 GB")]
)
def test_sizes_are_told_in_their_unit(size: float, said: str) -> None:
    """As people say them."""
    assert size_of(size) == said
