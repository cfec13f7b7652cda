"""What was cut short in a workspace is put back to before it, and nothing else is."""

import asyncio
from pathlib import Path

import pytest

from daruma.tools.calls import NoJournal, WorkspaceTurns
from daruma.tools.calls._journal import put_back
from daruma.tools.snapshots import Snapshots, SnapshotUnavailable, Store, store_of

KEY = "k1"


class Ground:
    """A workspace with one file, in which calls are begun and cut short."""

    def __init__(self, place: Path) -> None:
        self.log = place / "log"
        self.log.write_text("start,")
        self.place = place
        self.own = self.of("t")
        self.own.take("the start", by="others", fresh=True)

    def of(self, thread: str) -> Snapshots:
        return Snapshots(self.place, thread, Store(store_of(self.place)))

    def begin(self, key: str, adds: str) -> None:
        """Begin a call, which is then cut short."""
        self.own.take(f"before run_command {key}", by="work", opens=True)
        self.add(adds)

    def make(self, key: str, adds: str) -> None:
        self.begin(key, adds)
        self.own.take(f"after run_command {key}", by="work")

    def add(self, text: str) -> None:
        with self.log.open("a") as file:
            file.write(text)

    @property
    def text(self) -> str:
        return self.log.read_text()


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    place = tmp_path / "ws"
    place.mkdir()
    return Ground(place)


def test_a_call_that_had_not_begun_needs_nothing_put_back(ground: Ground) -> None:
    """It was killed before the workspace was looked at."""
    ground.make("k0", "zero,")

    assert put_back(ground.own, KEY) is None
    assert ground.text == "start,zero,"


def test_a_call_that_was_cut_short_is_put_back_as_often_as_it_takes(ground: Ground) -> None:
    """Who puts it back may be killed too, before or after the call is made once more."""
    ground.begin(KEY, "half,")
    put_back(ground.own, KEY)
    put_back(ground.own, KEY)
    assert ground.text == "start,"

    ground.begin(KEY, "half again,")
    put_back(ground.own, KEY)
    assert ground.text == "start,"


def test_one_whose_putting_back_was_killed_first_is_put_back(ground: Ground) -> None:
    """What was looked at just before is not what was there before the call."""
    ground.begin(KEY, "half,")
    ground.own.take(f"before putting back before run_command {KEY}", by="work")

    put_back(ground.own, KEY)

    assert ground.text == "start,"


def test_what_was_done_after_it_was_put_back_stays(ground: Ground) -> None:
    """A sibling had its turn, and the run was killed before this call was made once more."""
    ground.begin(KEY, "half,")
    put_back(ground.own, KEY)
    ground.make("k2", "two,")

    assert put_back(ground.own, KEY) is None
    assert ground.text == "start,two,"


def test_what_was_done_on_top_of_it_is_not_undone_with_it(ground: Ground) -> None:
    """Where it could not be put back at first, and the thread went on; a person is asked."""
    ground.begin(KEY, "half,")
    ground.make("k2", "two,")

    with pytest.raises(SnapshotUnavailable, match="since"):
        put_back(ground.own, KEY)
    assert ground.text == "start,half,two,"


def test_what_another_thread_did_since_is_not_undone_with_it(ground: Ground) -> None:
    """Nobody can tell its changes from those of the call that was cut short."""
    ground.begin(KEY, "half,")
    other = ground.of("other")
    other.take("the start", by="others", fresh=True)
    ground.add("theirs,")

    with pytest.raises(SnapshotUnavailable, match="another thread"):
        put_back(ground.own, KEY)
    assert ground.text == "start,half,theirs,"


def test_what_a_person_undid_since_is_not_brought_back(ground: Ground) -> None:
    """An undo of the task took what was cut short along."""
    start = ground.own.kept()[0].id
    ground.make("k0", "zero,")
    ground.begin(KEY, "half,")
    ground.own.restore(start, last="work")
    assert ground.text == "start,"

    with pytest.raises(SnapshotUnavailable, match="since"):
        put_back(ground.own, KEY)
    assert ground.text == "start,"


async def test_a_workspace_is_had_by_one_call_at_a_time() -> None:
    """One in another workspace, or in none, does not wait."""
    turns = WorkspaceTurns()

    async def take(workspace: str) -> None:
        async with turns.turn(workspace, None, NoJournal()):
            pass

    for other, waits in [("/ws", True), ("/other", False), ("", False)]:
        async with turns.turn("/ws", None, NoJournal()):
            second = asyncio.create_task(take(other))
            await asyncio.wait([second], timeout=0.1 if waits else 10)
            waited = not second.done()
        await second

        assert waited == waits
