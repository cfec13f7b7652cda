"""``daruma knowledge``: documents in, found, and out again."""

import json
from typing import Any

import pytest
from tests.daruma_command import Daruma
from tests.openai_server import openai_server


def test_documents_are_taken_in_found_and_forgotten(daruma: Daruma) -> None:
    """By path; a second time nothing changes."""
    docs = daruma.folder / "docs"
    docs.mkdir()
    (docs / "cars.md").write_text("# Cars\n\nThe automobile stands in Turin.\n")
    (docs / "bad.md").write_bytes(b"\0")

    added = daruma("knowledge", "add", "docs")
    again = daruma("knowledge", "add", "docs", "--json")
    listed = daruma("knowledge", "list", "--json")
    found = daruma("knowledge", "search", "turin", "--json")

    assert (added.code, "1 document taken in" in added.out) == (0, True)
    assert "bad.md  a binary file" in added.out
    assert (again.json["changed"], again.json["unchanged"]) == (0, 1)
    assert [each["source"] for each in listed.json] == [str(docs / "cars.md")]
    assert found.json["passages"][0]["text"] == "The automobile stands in Turin."
    assert "cars.md" in daruma("knowledge", "list").out
    assert "The automobile stands" in daruma("knowledge", "search", "turin").out
    assert daruma("knowledge", "forget", "docs/cars.md").code == 0
    assert "nothing was taken in yet" in daruma("knowledge", "list").out
    assert "nothing found" in daruma("knowledge", "search", "turin").out


@pytest.mark.long
def test_collections_are_kept_apart(daruma: Daruma) -> None:
    """Each is searched, listed and forgotten alone where it is named."""
    (daruma.folder / "a.txt").write_text("turin")
    daruma("knowledge", "add", "a.txt", "--collection", "one")
    daruma("knowledge", "add", "a.txt", "--collection", "two")

    assert daruma("knowledge", "forget", "a.txt", "--collection", "one", "--json").json == {
        "forgotten": 1
    }
    assert (
        daruma("knowledge", "search", "turin", "--collection", "one", "--json").json["passages"]
        == []
    )
    (left,) = daruma("knowledge", "list", "--json").json
    assert left["collection"] == "two"


def test_mistakes_are_one_line(daruma: Daruma) -> None:
    """A path where nothing is, a document that nobody knows, a name that is none."""
    (daruma.folder / "a.txt").write_text("turin")

    assert "there is no file or folder gone" in daruma("knowledge", "add", "gone").complaint
    assert "no document 'gone' is known" in daruma("knowledge", "forget", "gone").complaint
    wrong = daruma("knowledge", "add", "a.txt", "--collection", "v1.2").complaint
    assert "named without dots" in wrong
    daruma.configure("llm: {embedding_model: 'nonsense'}")
    assert "write openai:NAME" in daruma("knowledge", "search", "x").complaint


@pytest.mark.long
def test_the_settings_name_the_embedding_model(daruma: Daruma) -> None:
    """It is asked at the address of the environment; one that refuses leaves the words."""
    (daruma.folder / "a.txt").write_text("turin")
    daruma.configure("llm: {embedding_model: near, model_aliases: {near: 'openai:tiny'}}")
    with openai_server([], strict=False) as server:
        daruma.setenv("OPENAI_BASE_URL", server.url)

        added = daruma("knowledge", "add", "a.txt", "--json")
        found = daruma("knowledge", "search", "turin", "--json")
        reindexed: Any = daruma("knowledge", "reindex", "--json").json

    assert added.json["passages"] == 1
    assert "by words alone: the embedding model failed (" in added.json["note"]
    assert [each["text"] for each in found.json["passages"]] == ["turin"]
    assert (reindexed["made"], "failed" in reindexed["note"]) == (0, True)


def test_doctor_tells_how_many_items_are_kept(daruma: Daruma) -> None:
    """Beside what the database is."""
    (daruma.folder / "a.txt").write_text("turin")
    daruma("knowledge", "add", "a.txt")

    rows = json.loads(daruma("doctor", "--json").out)

    (told,) = [each["text"] for each in rows if each["name"] == "Postgres"]
    assert told.endswith(", 2 items kept")
