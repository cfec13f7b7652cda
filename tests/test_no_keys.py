"""SE-08: no key stands in anything that is stored or shown, wherever it came from."""

import json
import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import HumanMessage
from langgraph.types import Command, interrupt
from psycopg import sql
from pydantic import TypeAdapter, ValidationError
from tests.daruma_command import Daruma
from tests.mcp_servers import McpServerOfOurs
from tests.openai_server import Fault, openai_server
from tests.parts import a_registry, memory, settings
from tests.scripted_runs import RecordingModel, Run, call, calls, say
from tests.spans_seen import spans_seen

from daruma.graph.build import build_graph, builder
from daruma.graph.run import Machine
from daruma.graph.scope import (
    Contexts,
)
from daruma.graph.storage import open_postgres, strict_saver
from daruma.graph.storage._sealing import inflate
from daruma.state.errors import DamagedState

R = "a1B2c3D4e5F6" * 3

CANARIES = {
    "environment": "canary-environment-7",
    "password": "canary password 7",
    "url password": "canaryUrlPw7",
    "env file": "canary-of-env-file-7",
    "stripe": f"sk_live_{R}",
    "hugging face": f"hf_{R}",
    "npm": f"npm_{R}",
    "sendgrid": f"SG.{R}.{R}",
    "bearer": f"Bearer {R}x".removeprefix("Bearer "),
    "aws id": "AKIAIOSFODNN7CANARYX",
    "aws": f"{R}/{R}"[:40],
    "github": f"ghp_{R}",
    "openai": f"sk-proj-{R}",
    "jwt": f"eyJ{R}.eyJ{R}.{R}",
    "in url": "canaryInAddress7",
}

SAID = " ".join(
    f"Authorization: Bearer {text}"
    if name == "bearer"
    else f"aws_secret_access_key={text}"
    if name == "aws"
    else f"postgres://ann:{text}@host/db"
    if name == "in url"
    else text
    for name, text in CANARIES.items()
)
"""All of them, each as it is met."""

PEM = f"-----BEGIN PRIVATE KEY-----\n{R}\n-----END PRIVATE KEY-----"


@pytest.fixture(autouse=True)
def _secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", CANARIES["environment"])
    monkeypatch.setenv("PGPASSWORD", CANARIES["password"])
    monkeypatch.setenv("OTHER_DATABASE_URL", f"mysql://a:{CANARIES['url password']}@h/d")
    (tmp_path / "ws").mkdir(exist_ok=True)
    (tmp_path / "ws" / ".env").write_text(f"APP_SECRET={CANARIES['env file']}\n")


def found_in(text: str) -> list[str]:
    """Return which canaries a text holds."""
    return [name for name, each in CANARIES.items() if each in text] + ["pem"] * (
        PEM[28:60] in text
    )


def stored_in(url: str) -> Iterator[str]:
    """Yield every row of every table as text, and what values hold that are stored small."""
    with psycopg.connect(url) as connection:
        tables = connection.execute(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname NOT LIKE 'pg_%'"
        ).fetchall()
        for schema, table in tables:
            every = sql.SQL("SELECT t::text FROM {} AS t").format(sql.Identifier(schema, table))
            for (row,) in connection.execute(every).fetchall():
                yield row
                for packed in re.findall(r"\\x((?:[0-9a-f]{2})+)", row):
                    yield from _opened(bytes.fromhex(packed))
                for packed in re.findall(r"[A-Za-z0-9+/]{40,}={0,2}", row):
                    with suppress(ValueError):
                        yield from _opened(b64decode(packed))


def _opened(value: bytes) -> Iterator[str]:
    yield value.decode("utf-8", "replace")
    for start in range(min(len(value), 16)):
        for end in (len(value), len(value) - 8):
            with suppress(DamagedState):
                yield inflate(value[start:end]).decode("utf-8", "replace")


def kept_in(folder: Path) -> Iterator[str]:
    """Yield the files of a data folder, but for those of the workspace's own content."""
    for path in folder.rglob("*"):
        own = {"snapshots", "edits", "postgres"} & {*path.parts}
        if path.is_file() and not own:
            yield path.read_bytes().decode("utf-8", "replace")


def leak(text: str) -> str:
    """Return what a service said, and then fail with it."""
    return f"{text} {SAID}"


def fail(text: str) -> str:
    """Fail with what a service said."""
    raise RuntimeError(f"{text} refused: {SAID}\n{PEM}")


def nothing_of(run: Run) -> list[str]:
    """Return the canaries in all that can be seen of a run."""
    timeline = run.graph.timeline(run.config)
    history = [*run.graph.get_state_history(run.config)]
    return found_in(repr((run.events, history, timeline)) + timeline._repr_html_())


SCRIPT: dict[str, Any] = {
    "main": [
        calls(call("leak", text="see")),
        calls(call("fail", text=SAID)),
        calls(call("run_command", command=f"echo '{SAID}'; cat .env; exit 1")),
        {"say": f"I used {SAID}\n{PEM}", "calls": [call("leak", text=PEM)]},
        say(f"It is done with {SAID}"),
        say(f"Done again with {SAID}"),
        say(f"Done again with {SAID}"),
    ],
    "reflect": [{"json": {"reason": SAID, "lesson": SAID}}, {"json": {"reason": SAID}}],
}


def test_no_canary_is_stored_or_shown(
    postgres_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Fifteen of them, in environment, files, goal, arguments, outputs, errors, URLs, questions."""
    daruma = Daruma(postgres_url, tmp_path, monkeypatch, capsys)
    given = settings(
        sandbox={"require": "none"},
        tools={"policy": {"leak": "confirm", "run_command": "allow"}},
        verification={"commands": [f"sh -c \"echo '{SAID}'; cat .env; exit 1\""]},
    )
    with open_postgres() as postgres, spans_seen() as seen:
        model = RecordingModel(script=SCRIPT)
        run = Run({}, graph=build_graph(model, [leak, fail], given, postgres))
        run.ask(f"Use {SAID}", workspace=str(tmp_path / "ws"))
        while run.snapshot.interrupts:
            assert not found_in(json.dumps(run.question.value, default=str))
            run.approve()
        traced = seen.text
        assert run.happened("verification_completed")
        assert "[key]" in repr(run.messages)
        assert not nothing_of(run)
    assert not found_in(traced)
    stored = "\n".join(stored_in(postgres_url))
    assert not found_in(stored)
    assert stored.count("[key]") > 50
    assert not [hit for text in kept_in(tmp_path / "data") for hit in found_in(text)]
    for args in (("show", "t"), ("show", "t", "--json"), ("threads",), ("threads", "--json")):
        said = daruma(*args)
        assert not found_in(said.out + said.err), args


def test_a_call_runs_as_it_was_said_and_is_stored_masked(tmp_path: Path) -> None:
    """The file that it writes is the workspace's."""
    create = call("str_replace_editor", command="create", path="a.txt", file_text=SAID)
    run = Run({"main": [calls(create), say("Done.")]}, settings=settings())

    run.ask(workspace=str(tmp_path / "ws"))

    assert (tmp_path / "ws" / "a.txt").read_text() == SAID
    assert not nothing_of(run)


def asked(tmp_path: Path, saver: Any) -> tuple[Any, Any, Any]:
    """Return a graph and a thread on it that waits for a yes to a command with a key in it."""
    write = call("run_command", command=f"printf %s {CANARIES['github']} > a.txt")
    given = settings(sandbox={"require": "none"}, tools={"policy": {"run_command": "confirm"}})

    def graph(*turns: dict[str, Any]) -> Any:
        return build_graph(Run({"main": [*turns]}).model, (), given, checkpointer=saver)

    config = {"configurable": {"thread_id": "t"}}
    first = graph(calls(write), say("Done."))
    request = {"messages": [HumanMessage("Do it")], "workspace": str(tmp_path / "ws")}
    first.invoke(request, config)
    return first, graph, config


def yes(graph: Any, config: Any) -> Command[Any]:
    """Return the yes to what is open."""
    (question,) = graph.get_state(config).interrupts
    (approval,) = question.value["approvals"]
    assert approval["command"] == "printf %s [key] > a.txt"
    decision = {key: approval[key] for key in ("approval_id", "digest")} | {"decision": "approve"}
    return Command(resume={question.id: {"decisions": [decision]}})


def test_a_call_that_waited_runs_as_it_was_said_in_its_process(tmp_path: Path) -> None:
    """What was approved is what runs, though it is shown and stored masked."""
    graph, _, config = asked(tmp_path, memory())

    graph.invoke(yes(graph, config), config)

    assert (tmp_path / "ws" / "a.txt").read_text() == CANARIES["github"]


def test_a_call_whose_key_nobody_knows_any_more_is_refused_in_one_line(tmp_path: Path) -> None:
    """Another process has what was stored: it runs nothing in its place."""
    _, graph, config = asked(tmp_path, memory())
    other = graph(say("I see."))

    other.invoke(yes(other, config), config)

    assert not (tmp_path / "ws" / "a.txt").exists()
    (result,) = [m for m in other.get_state(config).values["messages"] if m.type == "tool"]
    assert result.text.startswith("Error: not run: its arguments held a key")


def test_an_edit_with_a_key_in_it_is_refused(tmp_path: Path) -> None:
    """It would be stored, and could not run as it was written."""
    graph, _, config = asked(tmp_path, memory())
    reply = yes(graph, config)
    (id_, given), *_ = reply.resume.items()  # type: ignore[union-attr]
    given["decisions"][0] |= {"decision": "edit", "args": {"command": f"echo {R} ghp_{R}"}}

    with pytest.raises(Exception, match="the edit holds a key"):
        graph.invoke(Command(resume={id_: given}), config)


def test_a_provider_that_quotes_keys_is_not_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the failure, its event, and what LangGraph keeps of it."""
    monkeypatch.setenv("OPENAI_API_KEY", "canary-openai")
    with openai_server([Fault(400, {"error": {"message": f"canary-openai {SAID}"}})] * 9) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        given = settings(fallback_chain={"recovery": {"wait_seconds": 0}})
        run = Run({}, graph=build_graph("openai:m", (), given, checkpointer=memory()))
        run.ask(workspace=str(tmp_path / "ws"))

    assert server.requests
    assert run.result.status == "failed"
    assert "[key]" in run.result.output
    assert not nothing_of(run)
    assert "canary-openai" not in repr((run.events, [*run.graph.get_state_history(run.config)]))


class Own(Exception):
    """Says what it says in ways of its own."""

    def __init__(self, said: str) -> None:
        super().__init__("own")
        self.said = said

    def __str__(self) -> str:
        return self.said

    def __repr__(self) -> str:
        return f"Own({self.said!r})"


def words() -> BaseException:
    return RuntimeError(f"refused: {SAID}")


def a_files_name() -> BaseException:
    return OSError(2, "it is gone", f"/srv/{SAID}")


def words_of_its_own() -> BaseException:
    return Own(SAID)


def a_cause() -> BaseException:
    error = RuntimeError("the service said no")
    error.__cause__ = ValueError(SAID)
    return error


def a_note() -> BaseException:
    error = RuntimeError("the service said no")
    error.add_note(SAID)
    return error


def validation() -> BaseException:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(list[int]).validate_python([CANARIES["github"], SAID])
    return caught.value


def a_key_at_a_cut() -> BaseException:
    """Where a long text is cut, half of a key is one that nobody knows any more."""
    error = RuntimeError("the service said no")
    error.__cause__ = ValueError(f"ghp_{R * 20} " * 20)
    return error


class Faulty(Contexts):
    """Contexts in which one node raises what nobody expected."""

    def __init__(self, name: str, error: BaseException, *given: Any) -> None:
        super().__init__(*given)
        self.name, self.error = name, error

    def bound(self, node: Any) -> Any:
        async def planted(*_: Any) -> Any:
            raise self.error

        planted.__name__ = node.__name__
        return super().bound(planted if node.__name__ == self.name else node)


RAISED = {
    words: "main",
    a_files_name: "tool",
    words_of_its_own: "tool",
    a_cause: "finish",
    a_note: "verify",
    validation: "main",
    a_key_at_a_cut: "main",
}
"""What is raised, and the node in which it is."""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("raised", RAISED)
def test_what_a_node_raises_leaves_no_key(
    raised: Callable[[], BaseException], postgres_url: str, tmp_path: Path
) -> None:
    """The error handler keeps a failure of it, and LangGraph what was raised."""
    given = settings(fallback_chain={"recovery": {"wait_seconds": 0}})
    model = RecordingModel(script=[calls(call("leak", text=SAID)), say("Done.")])
    contexts = Faulty(RAISED[raised], raised(), model, a_registry([leak]), given)
    with open_postgres(postgres_url) as postgres:
        compiled = builder(contexts).compile(checkpointer=strict_saver(postgres.checkpointer))
        run = Run([], graph=Machine.of(compiled, given, contexts.check))
        run.ask(workspace=str(tmp_path / "ws"))
        assert run.result
        assert not nothing_of(run)
    stored = "\n".join(stored_in(postgres_url))
    assert "[key]" in stored
    assert not found_in(stored)
    assert not [half for half in (R[:12], "canary-env", "ironment-7") if half in stored]


def ask(text: str) -> str:
    """Ask a person in its own words, and return what they said."""
    return f"{text}: {interrupt({'asked': SAID})}"


class Heard(BaseCallbackHandler):
    """Keeps what LangChain's tracers are told of tools."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def on_tool_start(self, *given: Any, **more: Any) -> None:
        self.told.append((given, more["inputs"]))

    def on_tool_end(self, *given: Any, **_: Any) -> None:
        self.told.append(given)


def test_questions_of_tools_replies_and_callbacks_hold_none(tmp_path: Path) -> None:
    """A tool may ask in its own words; what a person says goes into the same records."""
    heard = Heard()
    create = call("str_replace_editor", command="create", path="a.txt", file_text=SAID)
    run = Run({"main": [calls(create), calls(call("ask", text="so")), say("Done.")]}, tools=[ask])
    run.config["callbacks"] = [heard]

    run.ask(workspace=str(tmp_path / "ws"))
    asked_for = json.dumps(run.question.value)
    run.reply({"said": SAID})

    assert "[key]" in asked_for
    assert not found_in(asked_for + repr(heard.told[:2]))
    assert not nothing_of(run)


def test_a_servers_keys_are_nowhere(
    postgres_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """FA-11: those of an MCP server's env, headers and arguments, when it fails and quotes them."""
    daruma = Daruma(postgres_url, tmp_path, monkeypatch, capsys)
    kept = {"env": "canary-of-env-7", "args": "canary-of-args-7", "header": "canary-of-header-7"}
    monkeypatch.setenv("OF_ENV", kept["env"])
    server = McpServerOfOurs(tmp_path / "server")
    script = {
        "main": [
            calls(call("mcp__s__fail", words="no")),
            calls(call("mcp__h__fail", words=kept["header"])),
            calls(call("mcp__s__die", words=f"{kept}")),
            say(f"It is done with {kept}"),
        ]
    }
    with server.listening("http", f"Bearer {kept['header']}") as url:
        stdio = server.setting(env={"NOTES": "${OF_ENV}"})
        stdio["args"] += ["--api-key", kept["args"]]
        http = {"url": url, "headers": {"Authorization": f"Bearer {kept['header']}"}}
        policy = {"mcp__*": "allow"}
        tools = {"mcp_servers": {"mcpServers": {"s": stdio, "h": http}}, "policy": policy}
        daruma.configure(json.dumps({"tools": tools}))
        said = daruma("run", "Do it", "--model", daruma.script(**script), "--json")
        thread = said.json["thread"]
        shown = [
            daruma(*args)
            for args in (
                ("show", thread),
                ("show", thread, "--json"),
                ("settings", "tools.mcp_servers", "--effective"),
            )
        ]

    def leaked(text: str) -> list[str]:
        return [name for name, each in kept.items() if each in text]

    told = "\n".join(each.out + each.err for each in (said, *shown))
    assert (said.code, told.count("[key]") > 5) == (0, True)
    assert len(server.started) == 2
    assert not [(n, x) for x in told.splitlines() for n in leaked(x)]
    assert not leaked("\n".join(stored_in(postgres_url)))
    assert not [hit for text in kept_in(tmp_path / "data") for hit in leaked(text)]
