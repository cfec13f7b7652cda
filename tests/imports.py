"""What a file imports: read once in a process, and its statements alone, as no expression does."""

import ast
from functools import cache
from pathlib import Path

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


@cache
def imports_of(path: Path) -> tuple[tuple[str, str], ...]:
    """Return the module and the name of each import, wherever it stands and whatever for.

    ``import a.b`` is ``("a", "b")``, as ``from a import b`` is.
    """
    found: list[tuple[str, str]] = []
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            for alias in node.names:
                module, _, name = alias.name.rpartition(".")
                found.append((module, name))
        elif isinstance(node, ast.ImportFrom):
            found += [(f"{node.module}", alias.name) for alias in node.names]
        elif not isinstance(node, ast.expr):
            for block in _BLOCKS:
                waiting += getattr(node, block, ())
    return tuple(found)
