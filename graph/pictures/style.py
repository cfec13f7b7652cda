"""The style sheets, as they lie beside this file: each scoped to classes of its own."""

from functools import cache
from pathlib import Path


@cache
def style(*names: str) -> str:
    """Return style sheets as one text."""
    return "".join(asset(f"{name}.css") for name in names)


@cache
def asset(name: str) -> str:
    """Return a file of this folder."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
