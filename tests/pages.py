"""The pages that people read: README, CONTRIBUTING and docs, and what stands in their blocks."""

import re
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
README: Final = ROOT / "README.md"
PAGES: Final = (README, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))


@cache
def text_of(page: Path) -> str:
    """Return what stands on a page."""
    return page.read_text(encoding="utf-8")


def published() -> str:
    """Return what stands on all pages."""
    return "\n".join(map(text_of, PAGES))


def blocks(language: str, *pages: Path) -> list[str]:
    """Return the code blocks of a language, in their order; of all pages, if none is named."""
    return [
        block
        for page in pages or PAGES
        for block in re.findall(rf"```{language}\n(.*?)```", text_of(page), re.DOTALL)
    ]


def block_with(part: str, language: str = "python") -> str:
    """Return the one block, on whatever page, that holds this."""
    found = [block for block in blocks(language) if part in block]
    assert len(found) == 1, f"{len(found)} blocks of {language} hold {part!r}"
    return found[0]
