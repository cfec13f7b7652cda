"""Doors: a package is entered through its ``__init__`` alone; and how large the house may be."""

import ast
import re
from collections import defaultdict
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from tests.imports import imports_of

ROOT = Path(__file__).parents[1]
FOLDERS = ("graph", "nodes", "state", "tools")
ENTRIES = {
    "daruma.graph.studio.entry",
    "daruma.tools.sandbox.probe",
    "daruma.tools.sandbox.supervisor",
}
"""What is run by its name or its path: named by ``langgraph.json``, ``python -m``, a command."""

MOST = {"modules": 210, "lines": 72_849, "modules with one importer": 21, "names at a door": 62}
"""The house is to shrink: who makes it smaller lowers these."""

PRIVATE_OF_OTHERS = 0
"""Private names of dependencies outside of ``graph/fast_path.py``, which alone is to have some."""

FROM_WITHIN = re.compile(r"(?m)^ *from (daruma\.[\w.]*\._\w+) import (\([^)]*\)|.*)")
"""What a test imports of a module behind a door: looked for as text, as there are many tests."""


@cache
def files() -> dict[str, Path]:
    """Return the product's modules by name."""
    found = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    names = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in found}
    return {
        f"daruma.{name}".removesuffix(".__init__"): path
        for path, name in names.items()
        if not path.is_relative_to(ROOT / "graph" / "scenarios")
    }


@cache
def tree_of(path: Path) -> ast.Module:
    """Return what a file says."""
    return ast.parse(path.read_text(encoding="utf-8"))


DOORS = sorted(
    name for name, path in files().items() if path.name == "__init__.py" and name.count(".") > 1
)


@cache
def handed_out(door: str) -> dict[str, str]:
    """Return the names that a door has, each with the module that defines it."""
    return {name: module for module, name in imports_of(files()[door]) if module.startswith(door)}


def package_of(module: str) -> str:
    """Return the package that a module lies in; of those within each other the outermost."""
    return ".".join(module.split(".")[:3])


def module_of(module: str, name: str) -> str:
    """Return the module that an import leads to, through doors."""
    whole = f"{module}.{name}"
    if whole in files():
        return whole
    return handed_out(module).get(name, module) if module in DOORS else module


@pytest.mark.parametrize("door", DOORS)
def test_a_door_says_what_it_is_for_and_what_it_hands_out(door: str) -> None:
    """All of ``__all__`` is there, and nothing else is imported; a table of late names agrees."""
    module = import_module(door)
    late = [
        name
        for node in ast.walk(tree_of(files()[door]))
        if isinstance(node, ast.Dict)
        for module_, names in zip(node.keys, node.values, strict=True)
        for name in ast.literal_eval(names).split()
        if isinstance(module_, ast.Constant) and isinstance(module_.value, str)
        if handed_out(door)[name] == f"{door}.{module_.value}"
    ]
    for_types = [
        alias.name
        for block in tree_of(files()[door]).body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]

    assert len((module.__doc__ or "").split()) > 8
    assert set(module.__all__) == handed_out(door).keys()
    assert sorted(late) == sorted(for_types)
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


def test_nobody_goes_past_a_door() -> None:
    """The product takes from a package what its door hands out; tests take the rest from within."""
    wrong = [
        f"{user} imports {name} of {module}"
        for user, path in files().items()
        for module, name in imports_of(path)
        for target in [f"{module}.{name}" if f"{module}.{name}" in files() else module]
        if package_of(target) in DOORS and target not in DOORS
        if package_of(target) != package_of(user)
    ]
    doubled = [
        f"{path.relative_to(ROOT)} imports {name} of {module}"
        for path in (ROOT / "tests").rglob("*.py")
        for module, names in FROM_WITHIN.findall(path.read_text(encoding="utf-8"))
        for name in re.findall(r"\w+", names)
        for door in [module.rpartition(".")[0]]
        if door in DOORS and handed_out(door).get(name) == module
    ]

    assert wrong == []
    assert doubled == []


def test_what_lies_behind_a_door_has_an_underscore() -> None:
    """But for what is run by its name."""
    behind = {name for name in files() if name.rpartition(".")[0] in DOORS and name not in DOORS}

    assert {name for name in behind if not name.split(".")[-1].startswith("_")} == ENTRIES


def test_a_package_does_not_go_through_its_own_door() -> None:
    """Its modules import each other: the door imports them."""
    wrong = [
        f"{user} imports {name} of {module}"
        for user, path in files().items()
        for module, name in imports_of(path)
        if module in DOORS and user != module and package_of(user) == package_of(module)
        if f"{module}.{name}" not in files()
    ]

    assert wrong == []


def test_the_house_does_not_grow() -> None:
    """Modules, lines, what is in a module of its own for a single other, names at one door."""
    modules = [name for name, path in files().items() if path.name != "__init__.py"]
    users = defaultdict(set)
    for user, path in files().items():
        for module, name in imports_of(path):
            if user not in DOORS:
                users[module_of(module, name)].add(user)
    single = [m for m in modules if len(users[m]) == 1 and not m.startswith("daruma.nodes.")]

    found = {
        "modules": len(modules),
        "lines": sum(path.read_text(encoding="utf-8").count("\n") for path in files().values()),
        "modules with one importer": len(single),
        "names at a door": max(len(handed_out(door)) for door in DOORS),
    }

    assert {what: (n, MOST[what]) for what, n in found.items() if n > MOST[what]} == {}


def test_no_more_of_others_is_private_to_them() -> None:
    """Private modules and names of dependencies change without notice."""
    private = re.compile(
        r"^\s*(?:from|import)\s+(?:lang\w+|psycopg\w*|procrastinate|typer|openai)(?:\.\w+)*\._\w+"
        r"|^\s*from\s+(?:lang\w+|psycopg\w*|procrastinate|typer|openai)[\w.]*\s+import\s+_\w+",
        re.MULTILINE,
    )
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in files().values()
        if path.name != "fast_path.py"
        for line in private.findall(path.read_text(encoding="utf-8"))
    ]

    assert len(found) <= PRIVATE_OF_OTHERS, found
