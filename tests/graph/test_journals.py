"""The journal of effects: an intent before, an outcome after, found again by what was done (DU-06).

The same rules hold in Postgres and in a process.
"""

from collections.abc import Callable, Iterator

import pytest
from langgraph.checkpoint.base import empty_checkpoint

from daruma.graph.storage.ledgers import Place, ProcessJournals, journal_of
from daruma.graph.storage.postgres import open_postgres
from daruma.graph.sync import run
from daruma.tools.calls.journal import Effect, Journal, NoJournal, Outcome

PAY = Effect("m1:c1", "digest", "ask")
EDIT = Effect("m1:c2", "digest", "restore", "/ws")
DONE = Outcome("done", "paid\x00\ud800")
HERE = Place("t", "", "2")

At = Callable[..., Journal]


@pytest.fixture(params=["process", "postgres"])
def at(request: pytest.FixtureRequest) -> Iterator[At]:
    """Makes the journal of a run at a place."""
    if request.param == "process":
        journals = ProcessJournals()
        yield lambda run="one", place=HERE: journals.journal_at(place, run)
        return
    with open_postgres(request.getfixturevalue("postgres_url")) as pg:
        for id_ in ("1", "2", "3"):
            pg.checkpointer.put(
                {"configurable": {"thread_id": "t", "checkpoint_ns": ""}},
                empty_checkpoint() | {"id": id_},
                {},
                {},
            )
        yield lambda run="one", place=HERE: pg.checkpointer.journal_at(place, run)


def test_an_outcome_on_record_is_found_by_the_next_run(at: At) -> None:
    """As it was told, and the call is not made again."""
    begun = run(at().begin(PAY))
    assert (begun.cut_short, begun.outcome, begun.attempt) == (False, None, 1)

    run(at().end(begun, Outcome("done", "paid")))

    found = run(at("two").begin(PAY))
    assert (found.cut_short, found.outcome, found.key) == (
        False,
        Outcome("done", "paid"),
        begun.key,
    )


def test_an_intent_without_an_outcome_was_cut_short(at: At) -> None:
    """For another run; within the same one it is what it was, as after a lost acknowledgement."""
    begun = run(at().begin(PAY))

    assert run(at().begin(PAY)) == begun
    found = run(at("two").begin(PAY))

    assert found.cut_short
    assert (found.effect, found.key, found.attempt) == (PAY, begun.key, 1)


def test_each_attempt_is_counted_and_has_the_same_key(at: At) -> None:
    """So that a service knows it again, and a person is asked once for each time."""
    first = run(at().begin(PAY))
    again = run(at("two").again(run(at("two").begin(PAY))))
    assert not run(at("two").begin(PAY)).cut_short

    third = run(at("three").begin(PAY))

    assert (again.attempt, third.attempt, third.cut_short) == (2, 2, True)
    assert first.key == again.key == third.key


def test_an_intent_that_was_taken_back_is_none(at: At) -> None:
    """And an outcome can not be taken back."""
    run(at().forget(run(at().begin(PAY))))

    begun = run(at("two").begin(PAY))
    run(at("two").end(begun, Outcome("failed", "no")))
    assert not begun.cut_short


@pytest.mark.parametrize(
    "other",
    [Effect("m1:c9", "digest", "ask"), Effect("m1:c1", "another", "ask")],
)
def test_another_call_and_other_arguments_are_another_effect(at: At, other: Effect) -> None:
    """What was approved and done is that, and nothing else."""
    run(at().begin(PAY))

    found = run(at("two").begin(other))

    assert not found.cut_short
    assert found.key != run(at("two").begin(PAY)).key


def test_a_fork_makes_its_calls_anew(at: At) -> None:
    """It goes on from a checkpoint of its own."""
    run(at().end(run(at().begin(PAY)), Outcome("done", "paid")))

    forked = run(at("two", Place("t", "", "3")).begin(PAY))

    assert (forked.cut_short, forked.outcome) == (False, None)


def test_a_key_is_that_of_one_place_alone(at: At) -> None:
    """A service that knows the key would otherwise not make the call of a fork, or of a member."""
    places = [HERE, Place("t", "", "3"), Place("t", "member:1", "2")]

    keys = {run(at("one", place).begin(PAY)).key for place in places}

    assert len(keys) == len(places)


def test_what_was_cut_short_in_a_workspace_is_found(at: At) -> None:
    """Not what ended, nor what this run does, nor what is elsewhere."""
    begun = run(at().begin(EDIT))
    run(at().begin(PAY))

    assert run(at().cut_short("/ws")) == []
    assert [each.key for each in run(at("two").cut_short("/ws"))] == [begun.key]
    assert run(at("two").cut_short("/other")) == []
    assert run(at("two", Place("t", "", "3")).cut_short("/ws")) == []

    run(at("two").end(begun, Outcome("done", "")))
    assert run(at("three").cut_short("/ws")) == []


def test_what_the_thread_has_left_behind_is_dropped(at: At) -> None:
    """DU-08: the journal does not grow with the thread; what is in doubt stays."""
    early = Place("t", "", "1")
    run(at("one", early).end(run(at("one", early).begin(PAY)), Outcome("done", "paid")))
    run(at("one", early).begin(EDIT))

    run(at("one", Place("t", "", "3")).begin(Effect("m2:c1", "d", "ask")))

    assert run(at("two", early).begin(PAY)).outcome is None
    assert run(at("two", early).begin(EDIT)).cut_short


def test_texts_that_no_column_takes_are_kept_in_postgres(postgres_url: str) -> None:
    """NUL; what can not be kept at all was cleaned before."""
    with open_postgres(postgres_url) as pg:
        journal = pg.checkpointer.journal_at(HERE, "one")
        run(journal.end(run(journal.begin(PAY)), Outcome("done", "paid\x00")))

        assert run(journal.begin(PAY)).outcome == Outcome("done", "paid\x00")


def test_a_call_whose_checkpoint_was_never_stored_is_found_all_the_same(postgres_url: str) -> None:
    """Under ``durability="async"`` a crash can lose it; the model is asked again, and answers so.

    One whose checkpoint is stored belongs to another branch.
    """
    with open_postgres(postgres_url) as pg:
        put = pg.checkpointer.put(
            {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}, empty_checkpoint(), {}, {}
        )
        lost, kept = HERE, Place("t", "", put["configurable"]["checkpoint_id"])
        begun = run(pg.checkpointer.journal_at(lost, "one").begin(PAY))
        run(pg.checkpointer.journal_at(kept, "one").begin(EDIT))

        found = run(pg.checkpointer.journal_at(Place("t", "", "9"), "two").begin(PAY))
        other = run(pg.checkpointer.journal_at(Place("t", "", "9"), "two").begin(EDIT))

        assert (found.cut_short, found.key) == (True, begun.key)
        assert not other.cut_short


def test_a_deleted_thread_takes_its_journal_along(postgres_url: str) -> None:
    """DU-08: all that belongs to it."""
    with open_postgres(postgres_url) as pg:
        run(pg.checkpointer.journal_at(HERE, "one").begin(PAY))

        pg.checkpointer.delete_thread("t")

        assert not run(pg.checkpointer.journal_at(HERE, "two").begin(PAY)).cut_short


def test_where_nothing_is_kept_there_is_no_journal() -> None:
    """A run without a checkpointer can not be taken up."""
    assert isinstance(journal_of({"configurable": {}}, None), NoJournal)
