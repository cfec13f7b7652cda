"""Counting a walk: each member of a team goes its own way."""

from daruma.graph.timeline.walk import Visit, edges_walked, nodes_walked

PATH = (
    Visit("begin", 1.0),
    Visit("member", 2.0, times=2),
    Visit("main", 3.0, member="a"),
    Visit("main", 3.5, member="b"),
    Visit("tool", 4.0, member="a"),
    Visit("merge", 5.0),
)


def test_edges_are_those_of_each_walk() -> None:
    """Nobody went from one member's node to another's."""
    assert edges_walked(PATH) == {
        ("begin", "member"): 1,
        ("member", "merge"): 1,
        ("main", "tool"): 1,
    }


def test_what_was_entered_for_several_counts_for_each() -> None:
    """As the picture says it."""
    assert nodes_walked(PATH) == {"begin": 1, "member": 2, "main": 2, "tool": 1, "merge": 1}
