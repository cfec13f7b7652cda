"""Which tests reach the lines of a mistake, as a run under ``coverage`` has stored it."""

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.planted.mistakes import ROOT, Mistake

_ROWS: Final = """
    SELECT file.path, context.context, line_bits.numbits FROM line_bits
    JOIN file ON file.id = file_id JOIN context ON context.id = context_id
    WHERE context.context != ''
"""


class Reach:
    """The lines of each file, and the tests that run them; those first that run least beside."""

    def __init__(self, files: Iterable[Path]) -> None:
        self._lines: defaultdict[str, defaultdict[str, set[int]]]
        self._lines = defaultdict(lambda: defaultdict(set))
        self._all: Counter[str] = Counter()
        for file in files:
            with sqlite3.connect(file) as rows:
                for path, context, bits in rows.execute(_ROWS):
                    test = context.partition("|")[0].partition("[")[0]
                    lines = {
                        8 * n + bit
                        for n, byte in enumerate(bits)
                        for bit in range(8)
                        if byte >> bit & 1
                    }
                    self._lines[str(Path(path).relative_to(ROOT))][test] |= lines
                    self._all[test] += len(lines)

    def tests(self, mistake: Mistake) -> list[str]:
        """Return the tests; for lines that only an import runs, those of the whole file."""
        before, _, _ = (ROOT / mistake.file).read_text(encoding="utf-8").partition(mistake.before)
        first = before.count("\n") + 1
        lines = set(range(first, first + mistake.before.count("\n")))
        by_test = self._lines[mistake.file]
        found = [test for test, reached in by_test.items() if reached & lines] or list(by_test)
        return sorted(found, key=lambda test: (self._all[test], test))
