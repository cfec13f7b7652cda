"""A message may ask for its mode with a prefix, which is not part of the goal."""

import pytest

from daruma.state.mode import KEEP_WORKING, MODES, Mode, split_prefix


def test_there_are_four_modes() -> None:
    """MO-01, and the two of them that plan (MO-05)."""
    assert MODES == ("direct_chat", "react", "plan_exec", "team_collab")
    assert frozenset({"plan_exec", "team_collab"}) == KEEP_WORKING


@pytest.mark.parametrize(
    ("text", "mode", "template", "goal"),
    [
        ("@team build it", "team_collab", None, "build it"),
        ("@team:web-1.x build it", "team_collab", "web-1.x", "build it"),
        ("@plan\nbuild it", "plan_exec", None, "build it"),
        ("@team:../../etc/passwd build it", "team_collab", "../../etc/passwd", "build it"),
        ("@team:écrivains, build it", "team_collab", "écrivains,", "build it"),
        ("@team: build it", "team_collab", None, "build it"),
        ("  @chat hello", "direct_chat", None, "hello"),
        ("@chat", "direct_chat", None, ""),
        ("build it", None, None, "build it"),
        ("  build it ", None, None, "  build it "),
        ("write to @team about it", None, None, "write to @team about it"),
        ("@teamwork matters", None, None, "@teamwork matters"),
        ("@plan:web build it", None, None, "@plan:web build it"),
        ("@plan: build it", None, None, "@plan: build it"),
        ("@nobody build it", None, None, "@nobody build it"),
        ("", None, None, ""),
    ],
)
def test_a_prefix_names_the_mode(
    text: str, mode: Mode | None, template: str | None, goal: str
) -> None:
    """MO-02: the four prefixes are split off; all that only looks like one stays in the goal."""
    assert split_prefix(text) == (mode, template, goal)
