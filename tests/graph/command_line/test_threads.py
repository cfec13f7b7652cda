"""``daruma threads prune`` says what would go, asks, and deletes no more than that."""

import psycopg
import pytest
import typer
from tests.aged import age
from tests.daruma_command import DONE, PLAN, Daruma

from daruma.graph.command_line._threads import seconds_of, size_of


@pytest.fixture
def threads(daruma: Daruma, postgres_url: str) -> Daruma:
    """An old thread, a young one, and an old one that waits for a person."""
    model = daruma.script(plan=[PLAN], main=[DONE])
    for name in ("old", "young"):
        daruma("run", "Do it", "--thread", name, "--model", model, "--mode", "react")
    daruma("run", "Do it", "--thread", "waits", "--model", model, "--mode", "plan_exec")
    with psycopg.connect(postgres_url) as connection:
        for thread in ("old", "waits"):
            age(connection, thread)
    return daruma


def names(daruma: Daruma) -> set[str]:
    return {line.split("\t")[0] for line in daruma("threads").out.splitlines()}


def test_what_would_go_is_said_and_stays(threads: Daruma) -> None:
    """With its status, its age and its size; the list of threads is what it was."""
    said = threads("threads", "prune", "--older-than", "30d", "--dry-run")

    assert said.code == 0
    assert "old  completed, last written 2020-01-01, " in said.out
    assert "1 threads, " in said.out
    assert "waits" not in said.out
    assert names(threads) == {"old", "young", "waits"}


def test_nothing_goes_unasked(threads: Daruma) -> None:
    """Where nobody can be asked, that is a mistake to mend."""
    said = threads("threads", "prune", "--older-than", "30d")

    assert said.code == 2
    assert "there is nobody to ask, so say it with --yes" in said.err
    assert names(threads) == {"old", "young", "waits"}


def test_what_was_said_goes(threads: Daruma) -> None:
    """What waits for a person goes only where that is asked for."""
    said = threads("threads", "prune", "--older-than", "30d", "--yes")

    assert said.code == 0
    assert "1 threads deleted" in said.out
    assert names(threads) == {"young", "waits"}
    threads("threads", "prune", "--older-than", "30d", "--yes", "--unfinished", "--full")
    assert names(threads) == {"young"}
    again = threads("threads", "prune", "--older-than", "4w")
    assert (again.code, "no thread is that old" in again.out) == (0, True)


@pytest.mark.long
def test_a_thinned_thread_can_be_shown(threads: Daruma) -> None:
    """It stands where it stood."""
    said = threads("threads", "prune", "--older-than", "1min", "--yes", "--keep-history")

    assert "1 threads thinned" in said.out
    assert threads("show", "old").code == 0
    assert names(threads) == {"old", "young", "waits"}


@pytest.mark.parametrize(
    ("text", "seconds"), [("90min", 5400), ("12h", 43_200), ("30d", 2_592_000), ("2w", 1_209_600)]
)
def test_lengths_of_time_are_read(text: str, seconds: float) -> None:
    """A number and its unit."""
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "30", "d", "-1d", "30 years", "1.5d"])
def test_other_words_are_refused(text: str) -> None:
    """A number alone could be seconds or days: better asked than guessed."""
    with pytest.raises(typer.BadParameter, match="no length of time: say 30d"):
        seconds_of(text)


@pytest.mark.parametrize(
    ("size", "said"), [(0, "0 bytes"), (1500, "1.5 KB"), (2e6, "2.0 MB"), (3.5e9, "3.5 GB")]
)
def test_sizes_are_told_in_their_unit(size: float, said: str) -> None:
    """As people say them."""
    assert size_of(size) == said


def test_a_status_that_there_is_not_is_a_mistake(daruma: Daruma) -> None:
    """It would select nothing, which looks like a database that has been tidied up."""
    said = daruma("threads", "prune", "--older-than", "1d", "--status", "complete")

    assert (
        "'complete' is no status: there are blocked, budget_exceeded, cancelled, " in said.complaint
    )
