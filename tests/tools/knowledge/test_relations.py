"""What is read from a text by rule: names, and how they are related."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daruma.tools.knowledge._documents import Passage
from daruma.tools.knowledge._ingesting import names_in, relations_in, same


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Every day the Lease Keeper wakes.", ["Lease Keeper"]),
        ("Nothing is here. Only words.", []),
        ("We met in Berlin.", ["Berlin"]),
        (
            "`take_lease()`, getUserName, os.path",
            ["take_lease", "getUserName", "os.path"],
        ),
        ("See [[Other Page|this]].", ["Other Page"]),
        ("The University of Vienna", ["University of Vienna"]),
        ("", []),
    ],
)
def test_a_text_has_these_names(text: str, names: list[str]) -> None:
    """Capitals within a sentence, code, links; a capital that begins a sentence is none."""
    assert names_in(text) == names


def test_spellings_of_one_name_are_the_same() -> None:
    """Case, hyphens, underscores and articles do not count."""
    assert same("The Postgres-Saver") == same("postgres_saver") == "postgres saver"
    assert same("The") == "the"


@pytest.mark.parametrize(
    ("text", "related"),
    [
        ("See [the store](store.md).", [("Sec", "links to", "the store")]),
        ("See [[Store]] and [site](https://x.org).", [("Sec", "links to", "Store")]),
        ("The Store uses Postgres.", []),
        ("See [[Sec]].", []),
    ],
)
def test_a_text_states_these_relations(text: str, related: list[tuple[str, str, str]]) -> None:
    """Headings and links within the documents; no verb is read."""
    found = relations_in(Passage(text, ("Sec",), 1), "doc.md")

    assert [(r.subject, r.relation, r.object) for r in found[1:]] == related
    assert (found[0].subject, found[0].relation, found[0].object) == ("Sec", "is part of", "doc.md")


@given(st.text(max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    """And what is read has two different ends."""
    for relation in relations_in(Passage(text, (), 1), "title"):
        assert same(relation.subject) != same(relation.object)
