"""One reply to a question counts: the first one."""

from concurrent.futures import ThreadPoolExecutor

from langgraph.checkpoint.memory import InMemorySaver

from daruma.graph.build import strict
from daruma.graph.storage.ledgers import ProcessReplies, replies_of


def test_of_many_replies_at_once_one_is_accepted() -> None:
    """Forty people answer at the same moment."""
    replies = ProcessReplies()

    with ThreadPoolExecutor(40) as pool:
        accepted = list(pool.map(lambda n: replies.accept("t", {"q": n}), range(40)))

    assert accepted.count(True) == 1
    assert replies.accepted("t", ["q"]) == {"q": accepted.index(True)}


def test_replies_belong_to_their_thread_and_question() -> None:
    """Another thread may well have a question of the same id."""
    replies = ProcessReplies()
    replies.accept("t", {"q": 1})

    assert replies.accept("other", {"q": 2})
    assert replies.accept("t", {"other": 3})
    assert replies.accepted("t", ["q", "unknown"]) == {"q": 1}


def test_replies_to_several_questions_are_accepted_together_or_not_at_all() -> None:
    """Half an answer would start a run that nobody asked for."""
    replies = ProcessReplies()
    replies.accept("t", {"a": 1})

    assert not replies.accept("t", {"a": 2, "b": 2})
    assert replies.accepted("t", ["a", "b"]) == {"a": 1}


def test_all_graphs_over_one_checkpointer_share_its_replies() -> None:
    """Each graph has a strict copy of the checkpointer it was given."""
    given = InMemorySaver()

    assert replies_of(strict(given)) is replies_of(strict(given))
    assert replies_of(InMemorySaver()) is not replies_of(given)
