"""Documents are cut along what their authors made of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daruma.tools.knowledge import Document
from daruma.tools.knowledge._documents import GOAL, MOST, Passage, html_text, passages


def cut(text: str, kind: str = ".md") -> list[Passage]:
    return passages(Document("s", "t", text, kind))


def test_markdown_is_cut_at_its_headings() -> None:
    """Each passage knows those above it, and its line; one without text makes none."""
    found = cut("before\n\n# A\n\none\n\n## B\n\ntwo\n\n## C\n# D\nthree\n")

    assert found == [
        Passage("before", (), 1),
        Passage("one", ("A",), 5),
        Passage("two", ("A", "B"), 9),
        Passage("three", ("D",), 13),
    ]


def test_a_hash_within_code_is_no_heading() -> None:
    """And code stays in one piece, blank lines and all."""
    (found,) = cut("# A\n```\n# comment\n\nx = 1\n```\nafter")

    assert found == Passage("```\n# comment\n\nx = 1\n```\nafter", ("A",), 2)


@pytest.mark.parametrize(
    ("kind", "text", "headings"),
    [
        (".rst", "Title\n=====\n\none\n\nSub\n---\n\ntwo", [("Title",), ("Title", "Sub")]),
        (".txt", "one\n\ntwo", [()]),
        (".txt", "# not a heading\ntwo", [()]),
        (".py", "import os\n\ndef first():\n    pass\n\nclass Second:\n    x = 1", None),
    ],
)
def test_each_kind_has_its_headings(
    kind: str, text: str, headings: list[tuple[str, ...]] | None
) -> None:
    """reStructuredText its underlines, Python its functions and classes, plain text none."""
    found = [passage.headings for passage in cut(text, kind)]

    assert found == (headings or [(), ("first",), ("Second",)])


def test_short_paragraphs_are_put_together_and_long_ones_cut() -> None:
    """Up to some 1,000 characters; at the end of a sentence."""
    together = cut("\n\n".join(f"paragraph {n}" for n in range(200)))
    apart = cut("A sentence of some length. " * 200)

    assert all(len(each.text) <= GOAL + 2 for each in together)
    assert len(together) == 3
    assert all(each.text.endswith("length.") and len(each.text) <= GOAL for each in apart)


@given(
    st.lists(
        st.sampled_from(
            ["# A", "## B", "", "", "```", "word", "x. y! z?", "长句。" * 300, "w" * 4000]
        ),
        max_size=30,
    )
)
def test_nothing_is_lost_and_nothing_too_long(lines: list[str]) -> None:
    """Whatever is in a document stands in some passage, in its order, with its line."""
    text = "\n".join(lines)
    found = cut(text, ".txt")

    kept = "".join("".join(each.text.split()) for each in found)
    assert kept == "".join(text.split())
    assert all(len(each.text) <= MOST for each in found)
    assert [each.line for each in found] == sorted(each.line for each in found)
    for each in found:
        assert each.text.split("\n")[0][:20] in lines[each.line - 1]


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<h1>A</h1><p>one<br>two", "# A\n\none\ntwo"),
        ("<style>x</style><script>alert('<p>')</script>a &amp; b<nav>menu</nav>", "a & b"),
        ("<ul><li>one<li>two</ul>", "one\n\ntwo"),
        ("<p>broken <b>markup</p></div></script>end", "broken markup\n\nend"),
        ("", ""),
    ],
)
def test_of_a_page_what_is_read_is_kept(page: str, text: str) -> None:
    """Headings as Markdown has them; nothing that only a browser is for."""
    assert html_text(page) == text
