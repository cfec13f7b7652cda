"""What is wrong with the file of a team is said in one line that names the file and the key."""

import os
from pathlib import Path

import pytest

from daruma.tools.team.templates import LARGEST, TemplateRefused, read_template

WHOLE = """\
about: Builds pages.
experts:
  - name: designer
    about: Draws.
    prompt: You are the designer.
    model: fast
    profile: read_only
"""


def test_a_whole_file_is_read(tmp_path: Path) -> None:
    """The template has the name of the file."""
    (tmp_path / "web.yaml").write_text(WHOLE)
    template = read_template(tmp_path / "web.yaml")

    assert (template.name, template.about) == ("web", "Builds pages.")
    expert = template.expert("designer")
    assert expert is not None
    assert (expert.prompt, expert.model, expert.profile) == (
        "You are the designer.", "fast", "read_only"
    )  # fmt: skip
    assert template.expert("nobody") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("about: [", "can not be read: while parsing"),
        ("- x", "has to hold keys and values"),
        ("", "has to hold keys and values"),
        ("about: x", "key 'experts' is missing"),
        ("experts: []", "key 'experts': Tuple should have at least 1 item"),
        ("experts: 5", "key 'experts': "),
        ("expert: []", "unknown key 'expert'; did you mean 'experts'?"),
        ("experts: [{name: a, about: b}]\nfoo: 1", "unknown key 'foo'; known here: about, experts"),
        (
            "experts: [{name: a, about: b, propmt: c}]",
            "unknown key 'experts.0.propmt'; did you mean 'prompt'?",
        ),
        ("experts: [{name: a}]", "key 'experts.0.about' is missing"),
        ("experts: [{name: 'a b', about: c}]", "key 'experts.0.name': "),
        ("experts: [{name: a, about: b, model: 7}]", "key 'experts.0.model': "),
        (
            "experts: [{name: a, about: b}, {name: a, about: c}]",
            "key 'experts': experts there are twice: a",
        ),
        ("name: x\nexperts: [{name: a, about: b}]", "key 'name': leave it out"),
        ("\udcff", "can not be read: "),
    ],
)
def test_a_broken_file_is_refused(text: str, said: str, tmp_path: Path) -> None:
    """PL-07: in one line."""
    file = tmp_path / "web.yaml"
    file.write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(TemplateRefused) as refused:
        read_template(file)

    assert str(refused.value).startswith(str(file))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_what_is_no_plain_small_file_is_not_read(tmp_path: Path) -> None:
    """A pipe or device would be read for ever, and a huge file for minutes."""
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "zero.yaml").symlink_to("/dev/zero")
    (tmp_path / "huge.yaml").write_text("about: " + "x" * LARGEST)

    for name in ("pipe", "zero"):
        with pytest.raises(TemplateRefused, match="no plain file"):
            read_template(tmp_path / f"{name}.yaml")
    with pytest.raises(TemplateRefused, match="larger than"):
        read_template(tmp_path / "huge.yaml")
