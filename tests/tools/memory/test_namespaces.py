"""Whose memories they are, and which role sees them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore

from daruma.tools.memory.memories import label, namespace_of, owner_of, seen_by


@pytest.mark.parametrize(
    ("namespace", "workspace", "owner"),
    [(None, None, "default"), ("team x", None, "team x"), ("team x", "/w", "team x")],
)
def test_the_setting_goes_before_the_workspace(
    namespace: str | None, workspace: str | None, owner: str
) -> None:
    """CX-05: and a task without either has the memories of all such tasks."""
    assert owner_of(namespace, workspace) == owner


def test_a_workspace_is_known_by_where_it_really_is(tmp_path: Path) -> None:
    """Two names of one folder are one owner, two folders of one name are two."""
    (tmp_path / "a" / "repo").mkdir(parents=True)
    (tmp_path / "b" / "repo").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a")

    first = owner_of(None, str(tmp_path / "a" / "repo"))

    assert owner_of(None, f"{tmp_path}/link/../a/repo/") == first
    assert owner_of(None, str(tmp_path / "b" / "repo")) != first


def test_a_role_sees_its_own_and_the_common_ones() -> None:
    """CO-04: never another's; who has no role sees the common ones only."""
    common, tester = namespace_of("o"), namespace_of("o", "tester")

    assert seen_by("o", "tester") == [tester, common]
    assert seen_by("o", "") == seen_by("o", "common") == [common]
    assert common != tester


@given(st.text(), st.text())
def test_every_text_is_a_label_of_its_own(one: str, other: str) -> None:
    """Stores take no dots, NUL or empty labels; and no two owners share memories."""
    store = InMemoryStore()

    store.put((label(one), "x"), "key", {})

    assert (label(one) == label(other)) == (one == other)


def test_a_long_path_has_a_short_label() -> None:
    """And differs from one that differs at its end only."""
    one, other = (label(f"{'/long' * 1000}{end}") for end in "ab")

    assert len(one) < 250
    assert one != other


def test_an_undecodable_path_has_a_label() -> None:
    """Linux has names that are no text."""
    assert label("/\udcff.d") == "/%ED%B3%BF%2Ed"
    assert label("%2E") != label(".")
