"""Old threads go with all that belongs to them, and nothing else goes (DU-08)."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langgraph.checkpoint.base.id import uuid6
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.errors import ConnectionTimeout
from tests.aged import age
from tests.parts import settings
from tests.scripted_runs import Run, call, calls, phases, say, shout

from daruma.graph.build import build_graph
from daruma.graph.models import ScriptedChatModel
from daruma.graph.storage import Postgres, aopen_postgres, open_postgres
from daruma.graph.storage._database import answers_within
from daruma.graph.storage._pruning import vacuum, written_at
from daruma.state.data_dir import data_dir
from daruma.tools.snapshots import Snapshots, Store, store_of

YEAR = 365 * 86_400
ASK = [calls("shout"), say()]


def run_on(postgres: Postgres, script: Any, thread: str, **sections: Any) -> Run:
    model = ScriptedChatModel(script=script if isinstance(script, dict) else {"main": script})
    given = settings(sandbox={"require": "none"}, spec_review={"enabled": False}, **sections)
    run = Run({"main": []}, graph=build_graph(model, [shout], given, persistence=postgres))
    run.config = {"configurable": {"thread_id": thread}}
    return run


def make_old(url: str, *threads: str) -> None:
    """Let the newest word on these threads be years old."""
    with psycopg.connect(url) as connection:
        for thread in threads:
            age(connection, thread)


@pytest.mark.parametrize("full", [False, True])
async def test_giving_space_back_takes_as_long_as_it_takes(postgres_url: str, full: bool) -> None:
    """It is no lost database that answers late: a large table takes minutes."""
    async with aopen_postgres(postgres_url) as postgres:
        with answers_within(1e-4):
            await vacuum(postgres.checkpointer, full=full)
            with pytest.raises(ConnectionTimeout):
                async with postgres.pool.connection() as connection:
                    await connection.execute("VACUUM")


def test_only_what_is_old_and_ended_goes(postgres_url: str) -> None:
    """Unless it is said; what is being run stays even then."""
    asking = {"tools": {"policy": {"shout": "confirm"}}}
    with open_postgres(postgres_url) as postgres:
        for thread in ("old", "young", "running"):
            run_on(postgres, ASK, thread).ask()
        run_on(postgres, ASK, "waiting", **asking).ask()
        run_on(postgres, [{"raise": "x"}], "failed", **NO_RECOVERY).ask()
        make_old(postgres_url, "old", "waiting", "running", "failed")
        hold = postgres.checkpointer.leases.take("running")

        would = {each.thread_id: each.standing for each in postgres.old_threads(YEAR)}
        assert would == {"old": "completed", "failed": "failed"}
        assert postgres.prune(YEAR, status=["failed"]).threads == ("failed",)
        assert postgres.prune(YEAR, only=["other"]).threads == ()
        assert postgres.prune(YEAR).threads == ("old",)
        assert postgres.prune(YEAR).threads == ()
        assert {row.thread_id for row in postgres.threads()} == {"young", "running", "waiting"}
        assert postgres.prune(YEAR, unfinished=True).threads == ("waiting",)
        assert {row.thread_id for row in postgres.threads()} == {"young", "running"}
        postgres.checkpointer.leases.give_back(hold)


NO_RECOVERY: dict[str, Any] = {"fallback_chain": {"recovery": {"enabled": False}}}


def worked(postgres: Postgres, workspace: Path, thread: str) -> Run:
    args = {"command": "create", "path": f"{thread}.txt", "file_text": thread}
    again = {**args, "path": "more.txt"}
    script = {
        "plan": [phases({"id": "a", "expert": "developer"})],
        "main@a": [calls(call("str_replace_editor", **again)), {"raise": "boom"}],
        "main": [calls(call("str_replace_editor", **args)), say()],
    }
    run = run_on(postgres, script, thread, **NO_RECOVERY)
    work = {"workspace": str(workspace)}
    return run.ask(mode="react", **work).ask("More", mode="team_collab", **work)


def kept_of(workspace: Path, thread: str) -> int:
    return len(Snapshots(workspace, thread, Store(store_of(workspace))).kept())


def test_what_lies_outside_of_the_database_goes_too(postgres_url: str, tmp_path: Path) -> None:
    """Snapshots, edit histories and the worktree of a failed phase; another thread keeps its own.

    Nothing of the workspace itself is touched.
    """
    before = {*(data_dir() / "edits").glob("*")}
    with open_postgres(postgres_url) as postgres:
        for thread in ("t", "u"):
            worked(postgres, tmp_path, thread)
        make_old(postgres_url, "t")
        edits, trees = {*(data_dir() / "edits").glob("*")} - before, worktrees(tmp_path)
        assert (len(edits), len(trees)) == (4, 2)
        assert kept_of(tmp_path, "t") > 1
        others = kept_of(tmp_path, "u")

        assert postgres.prune(YEAR).threads == ("t",)

    assert (kept_of(tmp_path, "t"), kept_of(tmp_path, "u")) == (0, others)
    left = {*(data_dir() / "edits").glob("*")} - before
    assert (len(left), len(worktrees(tmp_path))) == (2, 1)
    assert worktrees(tmp_path) < trees
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.txt", "u.txt"]


@pytest.mark.parametrize("copy_works", [False, True])
def test_a_copy_takes_nothing_of_its_original(
    postgres_url: str, tmp_path: Path, copy_works: bool
) -> None:
    """DU-08: it has threads of the same names; what lies here goes with the last of both."""
    with open_postgres(postgres_url) as postgres:
        worked(postgres, tmp_path, "t")
    before, trees = kept_of(tmp_path, "t"), worktrees(tmp_path)
    own = conninfo_to_dict(postgres_url)["dbname"]
    url = make_conninfo(postgres_url, dbname=f"{own}_copy")
    with psycopg.connect(postgres_url, dbname="postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {own}_copy TEMPLATE {own}".encode())
    with open_postgres(url) as copy:
        if copy_works:
            run_on(copy, [say()], "t").ask("More", mode="react", workspace=str(tmp_path))
            before = kept_of(tmp_path, "t")
        make_old(url, "t")
        assert copy.prune(YEAR).threads == ("t",)

    assert (kept_of(tmp_path, "t"), worktrees(tmp_path)) == (before, trees)
    with open_postgres(postgres_url) as postgres:
        original = run_on(postgres, [], "t")
        first, *_ = original.graph.savepoints(original.config)
        original.graph.undo(original.config, to=first.id)
        assert [*tmp_path.iterdir()] == []
        make_old(postgres_url, "t")
        assert postgres.prune(YEAR).threads == ("t",)
    assert (kept_of(tmp_path, "t"), worktrees(tmp_path)) == (0, set())
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {own}_copy WITH (FORCE)".encode())


def worktrees(workspace: Path) -> set[Path]:
    top = data_dir() / "worktrees" / store_of(workspace).parent.name
    return {path for path in top.glob("*/*") if path.is_dir()}


def test_a_thread_can_keep_how_it_stands(postgres_url: str) -> None:
    """Its words, its result and its savepoints; what it could be set back to goes."""
    with open_postgres(postgres_url) as postgres:
        run = run_on(postgres, ASK, "t").ask()
        make_old(postgres_url, "t")
        before = run.snapshot.values

        assert postgres.prune(YEAR, keep_history=True).threads == ("t",)

        assert run.snapshot.values == before
        assert [row.checkpoints for row in postgres.threads()] == [1]


@pytest.mark.long
@pytest.mark.parametrize("full", [False, True])
def test_space_can_be_used_again_or_is_given_back(postgres_url: str, full: bool) -> None:
    """A full vacuum makes the tables small; a plain one lets the next thread into the same room."""
    with open_postgres(postgres_url) as postgres:
        run_on(postgres, [*[calls("shout")] * 1, say("x" * 400_000)], "t").ask()
        for _ in range(3):
            postgres.checkpointer.copy_thread("t", f"copy{_}")
        make_old(postgres_url, "t", "copy0", "copy1", "copy2")

        pruned = postgres.prune(YEAR, full=full)

        assert len(pruned.threads) == 4
        assert pruned.bytes_after < pruned.bytes_before
        for name in ("u", "v", "w"):
            run_on(postgres, [*[calls("shout")] * 1, say("x" * 400_000)], name).ask()
        assert postgres.prune(YEAR).bytes_before <= pruned.bytes_before


def test_a_thread_that_somebody_went_on_with_stays(postgres_url: str) -> None:
    """Between the look and the deletion it was held, or written on."""
    from daruma.graph.storage._pruning import Wanted, old_threads, prune
    from daruma.graph.sync import run as run_on_loop

    with open_postgres(postgres_url) as postgres:
        saver, wanted = postgres.checkpointer, Wanted(YEAR)
        runs = {each: run_on(postgres, [say(), say()], each) for each in ("held", "written")}
        for each in runs.values():
            each.ask()
        make_old(postgres_url, *runs)
        found = run_on_loop(old_threads(saver, wanted))
        runs["written"].ask("More")
        hold = saver.leases.take("held")

        pruned = run_on_loop(prune(saver, found, wanted=wanted))

        assert (pruned.threads, sorted(pruned.busy)) == ((), ["held", "written"])
        saver.leases.give_back(hold)
        assert {row.thread_id for row in postgres.threads()} == {"held", "written"}


def test_a_damaged_thread_keeps_no_other_from_being_pruned(postgres_url: str) -> None:
    """Its time can not be read: that of its newest checkpoint's id counts."""
    with open_postgres(postgres_url) as postgres:
        for thread in ("old", "damaged"):
            run_on(postgres, ASK, thread).ask()
        make_old(postgres_url, "old")
        with psycopg.connect(postgres_url) as connection:
            connection.execute(
                "UPDATE daruma_checkpoints SET checkpoint ="
                " jsonb_set(checkpoint, '{ts}', '\"then\"') WHERE thread_id = 'damaged'"
            )

        assert [each.thread_id for each in postgres.old_threads(YEAR)] == ["old"]


# --- When a checkpoint was written is known, whatever became of its row.


def test_a_checkpoint_notes_its_time() -> None:
    """With the time zone of its writer."""
    noted = datetime(2026, 11, 22, 6, 30, tzinfo=UTC)

    assert written_at("x", noted.isoformat()) == noted


@pytest.mark.parametrize("noted", [None, "", "x", "2026-99-01T00:00:00+00:00"])
def test_else_its_id_tells_it(noted: str | None) -> None:
    """Ids are made from the time; that is how the newest one is found."""
    before = datetime.now(UTC) - timedelta(milliseconds=2)
    told = written_at(str(uuid6()), noted)

    assert before <= told <= datetime.now(UTC) + timedelta(milliseconds=2)


def test_one_that_tells_neither_is_the_oldest() -> None:
    """A list of threads is sorted by other things: nothing depends on it."""
    assert written_at("no id", None) == datetime(1970, 1, 1, tzinfo=UTC)
