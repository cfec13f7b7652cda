"""Embedding models by name, over a real server that speaks OpenAI's protocol."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from tests.toy_embeddings import ToyEmbeddings

from daruma.graph.models import ModelUnavailable, embeddings_name, resolve_embeddings
from daruma.graph.storage import open_postgres


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        pass

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server: Any = self.server
        server.asked.append((self.path, asked["model"], asked["input"]))
        texts = [asked["input"]] if isinstance(asked["input"], str) else asked["input"]
        vectors = ToyEmbeddings().embed_documents(texts)
        data = [{"object": "embedding", "index": n, "embedding": v} for n, v in enumerate(vectors)]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        body = json.dumps({"object": "list", "data": data, "model": "tiny", "usage": usage})
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())


@contextmanager
def embedding_server() -> Iterator[tuple[str, list[Any]]]:
    """Serve embeddings; yield the address, and what was asked."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        asked: list[Any] = []
        server.asked = asked  # type: ignore[attr-defined]
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1", asked
        finally:
            server.shutdown()
            thread.join()


def test_a_store_finds_by_meaning_with_a_model_of_a_server(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts are sent as texts, so that any server understands them; several in one request."""
    with embedding_server() as (url, asked):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        with open_postgres(postgres_url, embeddings="openai:tiny") as pg:
            pg.store.put(("n",), "car", {"text": "the automobile stands outside"})
            pg.store.put(("n",), "dog", {"text": "a hound barks"})

            (best,) = pg.store.search(("n",), query="vehicle", limit=1)

    assert best.key == "car"
    assert {(path, model) for path, model, _ in asked} == {("/v1/embeddings", "tiny")}
    assert ["the automobile stands outside"] in [given for _, _, given in asked]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tiny", 'unknown embedding model "tiny": write openai:NAME'),
        ("scripted:file", "write openai:NAME"),
        ("openai:", "write openai:NAME"),
        ("a", "in a circle"),
        ("openai:tiny", "OPENAI_API_KEY is not set"),
    ],
)
def test_a_name_that_means_nothing_is_refused(
    name: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one line; as for chat models."""
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)

    with pytest.raises(ModelUnavailable, match=said):
        resolve_embeddings(name, {"a": "b", "b": "a"})


def test_a_model_is_taken_as_it_is_and_has_a_name() -> None:
    """Which tells its vectors from another's."""
    toy: Embeddings = ToyEmbeddings("mine")

    assert resolve_embeddings(toy, {}) is toy
    assert embeddings_name(toy) == "ToyEmbeddings:mine"
    assert embeddings_name(ToyEmbeddings("other")) != embeddings_name(toy)
