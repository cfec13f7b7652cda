"""Documents are taken in once, brought up to date, and taken out again."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document as LangChainDocument
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from daruma.graph.storage import open_postgres
from daruma.tools.knowledge import (
    Ingested,
    KnowledgeRefused,
    Relation,
    Skipped,
    aingest,
    collection_namespace,
    forget,
    ingest,
    sources,
)

PASSAGES = collection_namespace("default", "passages")


@pytest.fixture(params=["memory", "postgres"])
def store(request: pytest.FixtureRequest) -> Iterator[BaseStore]:
    if request.param == "memory":
        yield InMemoryStore()
        return
    with open_postgres(request.getfixturevalue("postgres_url")) as pg:
        yield pg.store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    docs = tmp_path / "docs"
    (docs / "deep").mkdir(parents=True)
    (docs / "a.md").write_bytes("# Löwe\r\n\r\nThe lion roars.\r\n\r\n# Two\r\n\r\nA cat.".encode())
    (docs / "deep" / "b.html").write_text("<h1>B</h1><p>A bird sings.")
    (docs / "c.py").write_text('def fly():\n    """Fly away."""\n')
    return docs


def texts(store: BaseStore, kind: str = "passages") -> list[str]:
    found = store.search(collection_namespace("default", kind), limit=1000)
    return sorted(str(item.value.get("text") or item.value["source"]) for item in found)


def stamps(store: BaseStore) -> list[Any]:
    return [item.updated_at for item in store.search(PASSAGES, limit=1000)]


def test_a_folder_is_taken_in_with_its_places(store: BaseStore, folder: Path) -> None:
    """Each passage with its source, title, headings and line."""
    done = ingest(store, folder)

    assert (done.changed, done.unchanged, done.passages, done.skipped) == (3, 0, 4, ())
    (lion,) = [i.value for i in store.search(PASSAGES, limit=9) if "lion" in i.value["text"]]
    assert (lion["source"], lion["title"]) == (str(folder / "a.md"), "a.md")
    assert (lion["headings"], lion["line"]) == (["Löwe"], 3)
    assert [(s.source, s.passages) for s in sources(store)] == [
        (str(folder / "a.md"), 2),
        (str(folder / "c.py"), 1),
        (str(folder / "deep/b.html"), 1),
    ]


def test_taking_in_twice_changes_nothing(store: BaseStore, folder: Path) -> None:
    """Nothing is even written again."""
    ingest(store, [folder, "a text", LangChainDocument("page")])
    before, written = texts(store), stamps(store)

    assert ingest(store, [folder, "a text", LangChainDocument("page")]) == Ingested(unchanged=5)
    assert (texts(store), stamps(store)) == (before, written)


def test_what_is_forgotten_is_gone_entirely(store: BaseStore, folder: Path) -> None:
    """A file, then the folder; another collection, and what begins alike, stay."""
    (folder.parent / "docs2").mkdir()
    (folder.parent / "docs2" / "x.md").write_text("other")
    ingest(store, [folder, folder.parent / "docs2"])
    ingest(store, folder, "second")

    assert forget(store, folder / "a.md", "default") == 1
    assert forget(store, folder, "default") == 2
    assert texts(store) == ["other"]
    assert forget(store, folder) == 3
    assert forget(store, folder) == 0
    assert len(store.search(("daruma",), limit=99)) == 2 + len(texts(store, "relations"))


def test_what_can_not_be_read_is_left_out_with_its_reason(store: BaseStore, tmp_path: Path) -> None:
    """And the rest is taken in."""
    files = {
        "binary.md": b"\x00\x01",
        "damaged.txt": "Löwe".encode() + b"\xe9",
        "empty.md": b" \n",
        "huge.txt": b"x" * (4 * 1024 * 1024 + 1),
        "utf16.txt": "sixteen".encode("utf-16"),
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "other.bin").write_bytes(b"x")
    (tmp_path / ".hidden.md").write_text("hidden")
    (tmp_path / "paper.pdf").write_bytes(b"%PDF")
    (tmp_path / "link.md").symlink_to("/etc/hostname")

    done = ingest(store, [tmp_path, tmp_path / "paper.pdf"])

    assert done.changed == 1
    assert {Path(each.source).name: each.reason for each in done.skipped} == {
        "binary.md": "a binary file (it holds NUL bytes)",
        "damaged.txt": "neither UTF-8 nor UTF-16 text, nor an older encoding's "
        "(byte 0xe9 on line 1)",
        "empty.md": "it is empty",
        "huge.txt": "larger than 4 MiB",
        "paper.pdf": "PDF is not read: give its text, or LangChain Documents",
    }
    assert texts(store) == ["sixteen"]
    assert isinstance(done.skipped[0], Skipped)


def test_a_folder_that_can_not_be_read_is_named(store: BaseStore, tmp_path: Path) -> None:
    """And so is a file in it that can not even be looked at: neither ends the work."""
    (tmp_path / "a.md").write_text("near")
    place = os.open(tmp_path, os.O_RDONLY)
    for name in ["d" * 240] * 20:  # longer than a path may be
        with suppress(OSError):
            os.close(os.open("far.md", os.O_CREAT, dir_fd=place))
        os.mkdir(name, dir_fd=place)
        deeper = os.open(name, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = deeper
    os.close(place)

    done = ingest(store, tmp_path)

    assert texts(store) == ["near"]
    assert {each.reason for each in done.skipped} == {"it is empty", "File name too long"}


def test_documents_of_langchain_keep_where_they_are_from(store: BaseStore) -> None:
    """Their source, page and title; a text is named by what it says."""
    page = LangChainDocument("on page two", metadata={"source": "x.pdf", "page": 2, "title": "X"})

    ingest(store, [page, LangChainDocument("# alone"), "a text\x00 \ud800 of one's own"])

    assert ("x.pdf#page=2", "X") in [(each.source, each.title) for each in sources(store)]
    assert forget(store, "x.pdf") == 1
    assert len(sources(store)) == 1 + bool(texts(store))


def test_relations_can_be_stated(store: BaseStore) -> None:
    """Beside those that are read; others than before replace nothing, and stand beside them."""
    ingest(store, [], relations=[Relation("Ann", "leads", "Store")])
    ingest(store, [], relations=[Relation("Ann", "leads", "Store")])

    related = store.search(
        collection_namespace("default", "relations"), filter={"subject_is": "ann"}
    )
    assert [(i.value["relation"], i.value["object"]) for i in related] == [("leads", "Store")]


@pytest.mark.parametrize("collection", ["", "v1.2", "a\0b"])
def test_a_collection_has_a_name_that_can_be_one(collection: str) -> None:
    """LangGraph's namespaces take no dots."""
    with pytest.raises(KnowledgeRefused, match="named without dots"):
        ingest(InMemoryStore(), "x", collection)


async def test_under_a_loop_the_async_form_is_asked_for(tmp_path: Path) -> None:
    """The other one would wait for what can not go on."""
    with pytest.raises(RuntimeError, match="with an a before"):
        ingest(InMemoryStore(), "x")
    assert (await aingest(InMemoryStore(), "x")).changed == 1
    assert await asyncio.to_thread(lambda: ingest(InMemoryStore(), tmp_path)) == Ingested()


@pytest.mark.parametrize("name", ["", " "])
def test_a_source_without_a_name_is_not_all_of_them(
    store: BaseStore, folder: Path, name: str
) -> None:
    """It is refused: an empty variable in a script forgets nothing."""
    ingest(store, folder)
    known = sources(store)

    with pytest.raises(KnowledgeRefused, match="name the document"):
        forget(store, name)

    assert sources(store) == known != []
