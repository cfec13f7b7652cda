"""Asking a model for vectors, so that it can neither hold up nor lose what is put or looked for."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from langchain_core.embeddings import Embeddings

from daruma.graph.models.embeddings import name_of

AT_ONCE: Final = 64
"""Texts of one request."""
LONGEST: Final = 6000
"""Characters of a text that are embedded: models take some 8,000 tokens, or cut earlier."""
SECONDS: Final = 20.0
"""For one request; what waits for it is found by its words meanwhile."""
REST_SECONDS: Final = 30.0
"""After a failure nothing is asked for that long, so that not everything waits for it in turn."""

Vector = list[float]


class NotEmbedded(Exception):
    """Raised with one line on why there are no vectors."""


@dataclass
class Embedding:
    """A model of one store; ``size`` of its vectors is known once it has made one."""

    model: Embeddings
    seconds: float = SECONDS
    size: int = 0
    failure: str = ""
    _rests_until: float = field(default=-math.inf, repr=False)

    @property
    def name(self) -> str:
        """What tells its vectors from those of another model, once it has made one."""
        return f"{name_of(self.model)} ({self.size})"

    async def of_query(self, text: str) -> Vector:
        """Return the vector of a query. Raises :class:`NotEmbedded`."""
        (vector,) = await self._asked(lambda: self._query(text[:LONGEST]), 1)
        return vector

    async def of_texts(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of at most 64 texts. Raises :class:`NotEmbedded`."""
        cut = [text[:LONGEST] for text in texts]
        return await self._asked(lambda: self.model.aembed_documents(cut), len(cut))

    async def _query(self, text: str) -> list[Vector]:
        return [await self.model.aembed_query(text)]

    async def _asked(self, ask: Callable[[], Awaitable[list[Vector]]], count: int) -> list[Vector]:
        if monotonic() < self._rests_until:
            raise NotEmbedded(self.failure)
        try:
            async with asyncio.timeout(self.seconds):
                vectors = self._sound(await ask(), count)
        except TimeoutError:
            raise self._failed(f"no answer within {self.seconds:g} s") from None
        except NotEmbedded as error:
            raise self._failed(str(error)) from None
        except Exception as error:  # any model, any fault: words are left
            told = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            raise self._failed(told) from error
        self.failure = ""
        return vectors

    def _failed(self, told: str) -> NotEmbedded:
        self.failure = f"by words alone: the embedding model failed ({told})"
        self._rests_until = monotonic() + REST_SECONDS
        return NotEmbedded(self.failure)

    def _sound(self, vectors: Sequence[Sequence[float]], count: int) -> list[Vector]:
        made = [[float(number) for number in vector] for vector in vectors]
        sizes = {len(vector) for vector in made}
        if len(made) != count or len(sizes) != 1 or (self.size and sizes != {self.size}):
            raise NotEmbedded(f"{len(made)} vectors of {sorted(sizes)} numbers for {count} texts")
        if not all(map(_is_sound, made)):
            raise NotEmbedded("a vector without direction")
        self.size = sizes.pop()
        return [_of_length_one(vector) for vector in made]


def _of_length_one(vector: Vector) -> Vector:
    """Return the same direction in numbers that half precision has room for."""
    largest = max(map(abs, vector))
    near = [number / largest for number in vector]
    length = math.hypot(*near)
    return [number / length for number in near]


def _is_sound(vector: Vector) -> bool:
    return all(map(math.isfinite, vector)) and any(vector)
