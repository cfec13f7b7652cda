"""A ``SKILL.md`` says what it is, in the format's words or in its own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daruma.tools.skills import Described, SkillRefused, described


@pytest.mark.parametrize(
    ("text", "name", "description"),
    [
        ("---\nname: pdf\ndescription: Fills forms.\n---\n# PDF\n", "pdf", "Fills forms."),
        ("---\r\nname: pdf\r\ndescription: Fills\r\n---\r\nText", "pdf", "Fills"),
        ("\ufeff---\nname: pdf\ndescription: Fills\n---\nText", "pdf", "Fills"),
        ("---\nname: pdf\nlicense: MIT\n---\n# H\n\nFirst\nlines.\n\nOn.", "pdf", "First lines."),
        ("# Head\n\nFirst lines.\n\nMore.", "folder", "First lines."),
        ("# Only a head", "folder", "Only a head"),
        ("---\n---\nText", "folder", "Text"),
        ("---\nname: 7\ndescription: >\n  Two\n  lines\n---", "7", "Two lines"),
        ('---\ndescription: "a\\e[31mb"\n---', "folder", "a [31mb"),
        ("", "folder", ""),
        (f"---\ndescription: {'x' * 2000}\n---", "folder", "x" * 1024),
    ],
)  # fmt: skip
def test_it_is_read(text: str, name: str, description: str) -> None:
    """What it does not say is the folder's name, and the first paragraph."""
    assert described(text, "folder") == Described(name, description)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("---\nname: pdf\n", "has no end"),
        ("---\nname: [\n---\n", "is no YAML"),
        ("---\n- a\n---\n", "has to hold keys and values"),
        ("---\nname: [a]\n---\n", "key 'name' of its front matter has to be a text"),
        ("---\ndescription: {a: b}\n---\n", "key 'description'"),
        (f"---\nname: {'x' * 65}\n---\n", "has 65 characters"),
        (f"---\nname: a\n{'#' * 16_000}\n---\n", "is longer than"),
        ("---\nname: !!python/object/apply:os.system [ls]\n---\n", "is no YAML"),
        (f"---\nname: {'[' * 5000}\n---\n", "is no YAML"),
    ],
)
def test_what_is_broken_is_said_in_a_line(text: str, why: str) -> None:
    """Nothing of it runs."""
    with pytest.raises(SkillRefused, match=why) as refused:
        described(text, "folder")

    assert "\n" not in str(refused.value)


@given(st.text(), st.booleans())
def test_any_text_is_described_or_refused(text: str, front: bool) -> None:
    """In one line each; never with a traceback."""
    try:
        told = described(f"---\n{text}\n---\n" if front else text, "folder")
    except SkillRefused:
        return

    assert all(each.isprintable() for each in (told.name, told.description))
