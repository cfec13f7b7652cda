"""Chapter 12: what Postgres, a kill and a second process do to a run."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypedDict

import psycopg
import pytest
from langchain_core.tools import StructuredTool
from langgraph.graph import START, StateGraph
from psycopg import sql
from tests import warm
from tests.spec.face import (
    ALLOWED,
    Daruma,
    DarumaError,
    Run,
    call,
    calls,
    command,
    create,
    plan,
    say,
)
from tests.spec.rules import ROOT

from daruma import open_postgres, status_of, submit, work

OFF: Final[dict[str, Any]] = {"verification": {"enabled": False}}


class Lived(Run):
    """A run, and the state that it left: its database is closed by then."""

    kept: Any = None


def tool(made: Callable[..., Any], **metadata: Any) -> StructuredTool:
    """A tool with what it declares of itself."""
    return StructuredTool.from_function(made, metadata={"daruma": metadata} if metadata else None)


@contextmanager
def database(url: str) -> Iterator[psycopg.Connection[Any]]:
    """SQL on the database, each statement at once."""
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


def rows(url: str, statement: str, *values: Any) -> list[Any]:
    """What a query finds."""
    with database(url) as connection:
        return connection.execute(statement, values).fetchall()


# --- Runs that are killed. A child lives up to its death; who comes next goes on.

SCENES: Final[dict[str, Any]] = {
    "seen": [
        calls(create("a.txt", "a\n", "c1")),
        calls(command("echo b >> a.txt", "c2")),
        calls(call("look", "c3")),
        calls(command("echo c >> a.txt", "c4")),
        say("All done."),
    ],
    "paid": [calls(call("pay", "c1", amount=5)), say("Paid.")],
    "keyed": [calls(call("order", "c1", amount=5)), say("Ordered.")],
}


def life(url: str, folder: str, scene: str, deaths: int = 0, *, queue: bool = False) -> Lived:
    """Have the scene's thread run; the first call of its own tool ends this process, if it may."""
    ledger = Path(folder) / "ledger"

    def note(line: str) -> str:
        with ledger.open("a") as file:
            file.write(f"{line}\n")
        if len(ledger.read_text().splitlines()) <= deaths:
            os.kill(os.getpid(), signal.SIGKILL)
        return line

    def look() -> str:
        """Look at something."""
        return note("looked")

    def pay(amount: int) -> str:
        """Pay."""
        return note(f"paid {amount}")

    def order(amount: int, request_id: str = "") -> str:
        """Order."""
        return note(f"ordered {amount} as {request_id}")

    own = [
        tool(look, effect="none"),
        tool(pay, effect="external"),
        tool(order, effect="external", idempotency_key="request_id"),
    ]
    workspace = Path(folder) / "ws"
    workspace.mkdir(exist_ok=True)
    with open_postgres(url) as pg:
        run = Lived(
            SCENES[scene], workspace=workspace, with_tools=own, persistence=pg, tools=ALLOWED, **OFF
        )
        if queue:
            work(run.graph, wait=False)
        elif run.snapshot.created_at is None:
            run.ask()
        else:
            run.send(None)
        run.kept = run.snapshot
    return run


def killed(url: str, folder: Path, scene: str, **options: Any) -> None:
    """Live in a process of its own, to its death."""
    code = (
        "from tests.spec.test_durability import life; "
        f"life({url!r}, {str(folder)!r}, {scene!r}, 1, **{options!r})"
    )
    child = warm.run(["-c", code], imports=__name__, cwd=ROOT)
    assert child.returncode == -signal.SIGKILL


def ended(run: Lived) -> dict[str, Any]:
    """What has to be the same whether a run was killed or not."""
    values = run.kept.values
    result = values["result"]
    spoken = [(each.type, each.text) for each in values["messages"]]
    return {
        "status": result.status,
        "output": result.output,
        "budgets": result.budgets,
        "usage": result.usage,
        "messages": spoken,
    }


def test_a_killed_run_ends_as_one_that_was_not(postgres_url: str, tmp_path: Path) -> None:
    """DU-01: state, budgets, history and files; what was done before the kill is not done again."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    killed(postgres_url, tmp_path / "one", "seen")
    found = rows(postgres_url, "SELECT count(*) FROM daruma_checkpoints")
    resumed = life(postgres_url, str(tmp_path / "one"), "seen")
    with database(postgres_url) as connection:
        connection.execute(
            "TRUNCATE daruma_checkpoints, daruma_leases, daruma_effects, daruma_replies"
        )
    whole = life(postgres_url, str(tmp_path / "two"), "seen")

    assert found[0][0] > 0
    assert ended(resumed) == ended(whole)
    assert (tmp_path / "one" / "ws" / "a.txt").read_text() == "a\nb\nc\n"
    assert (tmp_path / "one" / "ledger").read_text() == "looked\n" * 2


def test_an_effect_in_doubt_is_asked_about_and_never_made_twice(
    postgres_url: str, tmp_path: Path
) -> None:
    """DU-06: intent without outcome; a person's word is what the model is told."""
    killed(postgres_url, tmp_path, "paid")
    run = life(postgres_url, str(tmp_path), "paid")
    (asked,) = run.kept.interrupts

    assert asked.value["type"] == "question"
    assert "outcome_unknown" in asked.value["question"]
    assert set(asked.value["options"]) == {"happened", "again", "unknown"}
    with open_postgres(postgres_url) as pg:

        def pay(amount: int) -> str:
            """Pay."""
            raise AssertionError(amount)

        own = [tool(pay, effect="external")]
        answering = Run(SCENES["paid"], with_tools=own, persistence=pg, tools=ALLOWED, **OFF)
        answering.reply({"answer": "happened"})
        assert answering.result.status == "completed"
        assert "AssertionError" not in answering.outputs["c1"]
    assert (tmp_path / "ledger").read_text() == "paid 5\n"


def test_a_tool_with_a_key_is_made_again_with_the_same_key(
    postgres_url: str, tmp_path: Path
) -> None:
    """DU-06: nobody is asked; the service knows it again. And DU-07: by another worker."""
    (tmp_path / "ws").mkdir()
    with open_postgres(postgres_url) as pg:
        request = {"messages": [("user", "Do it")], "workspace": str(tmp_path / "ws")}
        submit(pg, request, "t")
    killed(postgres_url, tmp_path, "keyed", queue=True)
    run = life(postgres_url, str(tmp_path), "keyed", queue=True)
    if run.kept.next:
        run = life(postgres_url, str(tmp_path), "keyed")
    first, second = (tmp_path / "ledger").read_text().splitlines()

    assert run.kept.values["result"].status == "completed"
    assert first == second
    assert not first.endswith("as ")


def test_work_is_carried_out_by_whoever_reaches_the_database(postgres_url: str) -> None:
    """DU-07: what was submitted here runs there; nothing runs twice."""
    with open_postgres(postgres_url) as pg:
        names = [submit(pg, {"messages": [("user", f"Do {n}")]}) for n in range(3)]
    with open_postgres(postgres_url) as pg:
        run = Run([say("Done elsewhere.")], persistence=pg)
        assert run.graph.get_state({"configurable": {"thread_id": names[0]}}).created_at is None
        work(run.graph, concurrency=2, wait=False)
        work(run.graph, wait=False)
        for name in names:
            values = run.graph.get_state({"configurable": {"thread_id": name}}).values
            assert values["result"].output == "Done elsewhere."
        assert len(run.model.requests) == 3


# --- DU-02 to DU-04: waiting, holding, losing.


def test_a_wait_holds_nothing(postgres_url: str) -> None:
    """DU-02: no lease, no transaction, no connection; any process takes the answer, once."""
    script = {"plan": [plan({"id": "a"})], "main": [say()]}
    with open_postgres(postgres_url) as pg:
        Run(script, mode="plan_exec", persistence=pg).ask()
        assert rows(postgres_url, "SELECT * FROM daruma_leases WHERE expires_at > now()") == []
        busy = (
            "SELECT state FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND state <> 'idle'"
        )
        assert rows(postgres_url, busy) == []
    with open_postgres(postgres_url) as pg:
        run = Run(script, mode="plan_exec", persistence=pg).reply({"decision": "confirm"})
        assert run.result.status == "completed"


class Held:
    """A run that is in the middle of a call, until it is let go."""

    def __init__(self, pg: Any, **sections: Any) -> None:
        self.inside, self.let_go = threading.Event(), threading.Event()

        def hang() -> str:
            """Wait."""
            self.inside.set()
            self.let_go.wait(60)
            return "waited"

        own = [tool(hang, effect="none")]
        self.script = [calls(call("hang", "c1")), say("First.")]
        self.run = Run(self.script, with_tools=own, persistence=pg, **OFF, **sections)
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._ask)
        self.thread.start()
        assert self.inside.wait(30)

    def _ask(self) -> None:
        try:
            self.run.ask()
        except DarumaError as error:
            self.error = error

    def end(self) -> None:
        """Let it go on, to its end."""
        self.let_go.set()
        self.thread.join(60)
        assert not self.thread.is_alive()


def test_a_thread_is_run_by_one_at_a_time(postgres_url: str) -> None:
    """DU-03: a second one is told so, at once, as a conflict; the first goes on undisturbed."""
    with open_postgres(postgres_url) as pg, open_postgres(postgres_url) as other:
        held = Held(pg)
        try:
            with pytest.raises(DarumaError) as busy:
                Run(held.script, persistence=other).send(None)
        finally:
            held.end()

        assert status_of(busy.value) == 409  # type: ignore[arg-type]
        assert "'t'" in str(busy.value)
        assert (held.error, held.run.result.output) == (None, "First.")


def test_who_has_lost_a_thread_can_not_write(postgres_url: str) -> None:
    """DU-03: another one took it over; what the first still does changes nothing."""
    with open_postgres(postgres_url) as pg, open_postgres(postgres_url) as other:
        held = Held(pg)
        try:
            with database(postgres_url) as connection:
                connection.execute("UPDATE daruma_leases SET token = token + 1")
            before = rows(postgres_url, "SELECT count(*) FROM daruma_checkpoints")
        finally:
            held.end()

        assert held.error is not None
        assert rows(postgres_url, "SELECT count(*) FROM daruma_checkpoints") == before
        with database(postgres_url) as connection:
            connection.execute("UPDATE daruma_leases SET expires_at = '-infinity'")
        own = [tool(_wait, effect="none")]
        run = Run(held.script, with_tools=own, persistence=other, **OFF).send(None)
        assert run.result.output == "First."


def _wait() -> str:
    """Wait."""
    return "waited"


_wait.__name__ = "hang"


def test_lost_connections_are_ridden_out(postgres_url: str) -> None:
    """DU-04: every backend is terminated in the middle of a run, and it ends as ever."""
    with open_postgres(postgres_url) as pg:
        held = Held(pg)
        with database(postgres_url) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        held.end()

        assert (held.error, held.run.result.output) == (None, "First.")


def test_a_database_that_stays_away_stops_the_run_resumable(
    postgres_server: str, postgres_url: str
) -> None:
    """DU-04: `storage_unavailable` after the time that was allowed; nothing is lost."""
    name = psycopg.conninfo.conninfo_to_dict(postgres_url)["dbname"]
    allow = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")
    with database(postgres_server) as server:
        with open_postgres(postgres_url, outage_seconds=0.5) as pg:
            held = Held(pg)
            server.execute(allow.format(sql.Identifier(str(name)), sql.SQL("false")))
            server.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name]
            )
            held.end()
            server.execute(allow.format(sql.Identifier(str(name)), sql.SQL("true")))
        assert held.error is not None
        assert getattr(held.error, "code", "") == "storage_unavailable"
    with database(postgres_url) as connection:
        connection.execute("UPDATE daruma_leases SET expires_at = '-infinity'")
    with open_postgres(postgres_url) as pg:
        run = Run(held.script, with_tools=[tool(_wait, effect="none")], persistence=pg, **OFF)
        assert run.send(None).result.output == "First."


# --- DU-05, DU-08: what is stored.


@dataclass
class Invoice:
    """What is none of Daruma's own types."""

    cents: int


class Shop(TypedDict, total=False):
    """The state of somebody else's graph."""

    invoice: Invoice


def test_only_known_types_are_built(postgres_url: str) -> None:
    """DU-05: another class is refused by name until it is allowed."""
    builder: Any = StateGraph(Shop)
    builder.add_node("bill", lambda _: {"invoice": Invoice(5)})
    builder.add_edge(START, "bill")
    config: Any = {"configurable": {"thread_id": "shop"}}
    with open_postgres(postgres_url) as pg:
        allowed = pg.checkpointer.with_allowlist([Invoice])
        builder.compile(checkpointer=allowed).invoke({"invoice": Invoice(1)}, config)
        assert builder.compile(checkpointer=allowed).get_state(config).values["invoice"].cents == 5
        with pytest.raises(DarumaError, match="Invoice"):
            builder.compile(checkpointer=pg.checkpointer).get_state(config)


def test_a_damaged_checkpoint_is_refused_and_the_one_before_resumed(postgres_url: str) -> None:
    """DU-05: by its id; and nothing is made up in its place."""
    script = [calls(call("shout", "c1", text="x")), say("Done.")]
    with open_postgres(postgres_url) as pg:
        run = Run(script, with_tools=[shout], persistence=pg, **OFF).ask()
        ids = [each.config["configurable"] for each in run.graph.get_state_history(run.config)]
        newest, *_ = [each["checkpoint_id"] for each in ids]
        with database(postgres_url) as connection:
            connection.execute(
                "UPDATE daruma_checkpoints SET checkpoint ="
                " jsonb_set(checkpoint, '{channel_versions}', '{}') WHERE checkpoint_id = %s",
                [newest],
            )
        with pytest.raises(DarumaError, match=newest):
            run.graph.get_state(run.config)
        before = {"configurable": {"thread_id": "t", "checkpoint_id": ids[2]["checkpoint_id"]}}
        assert run.graph.invoke(None, before)["result"].output == "Done."


def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


def tables(url: str) -> dict[str, int]:
    """How many rows each table has of thread `t`."""
    found = rows(
        url,
        "SELECT DISTINCT table_name FROM information_schema.columns"
        " WHERE column_name = 'thread_id' AND table_schema = current_schema()",
    )
    counts = {}
    for (name,) in found:
        query = sql.SQL("SELECT count(*) FROM {} WHERE thread_id = 't'").format(
            sql.Identifier(name)
        )
        with database(url) as connection:
            row = connection.execute(query).fetchone()
            counts[name] = row[0] if row else 0
    return {name: count for name, count in counts.items() if count}


def test_a_thread_is_deleted_with_all_that_belongs_to_it(daruma: Daruma) -> None:
    """DU-08: one that waits stays unless it is said."""
    workspace = daruma.folder / "ws"
    script = [calls(create("a", "a")), say()]
    with open_postgres(daruma.url) as pg:
        Run(script, persistence=pg, workspace=workspace, **OFF).ask()
        waits = {"plan": [plan({"id": "a"})]}
        Run(waits, mode="plan_exec", persistence=pg, thread="w").ask()
    assert tables(daruma.url)["daruma_checkpoints"] > 0
    assert daruma("threads", "prune", "--older-than", "0min", "--yes").code == 0

    assert set(tables(daruma.url)) <= {"daruma_leases"}  # the token, by which a stale one is told
    listed = daruma("threads").out
    assert "w" in listed.split()


def test_what_is_stored_grows_with_what_is_new(postgres_url: str) -> None:
    """DU-08: three times the steps keep three times as much, and not nine times."""
    stored = []
    with open_postgres(postgres_url) as pg:
        for number, steps in enumerate((10, 30)):
            script = [calls(call("shout", text=f"word {n}")) for n in range(steps)]
            sections: dict[str, Any] = {"budgets": {"max_steps": 99}}
            run = Run(
                [*script, say()],
                with_tools=[tool(shout, effect="none")],
                persistence=pg,
                thread=f"t{number}",
                **OFF,
                **sections,
            ).ask()
            assert run.result.status == "completed"
            sizes = [
                rows(postgres_url, f"{STORED} {name} x WHERE thread_id = %s", f"t{number}")[0][0]
                for name in ("daruma_checkpoints", "daruma_blobs", "daruma_writes")
            ]
            stored.append(sum(sizes))

    assert 2 < stored[1] / stored[0] < 4


STORED: Final = "SELECT coalesce(sum(pg_column_size(x)), 0) FROM"
