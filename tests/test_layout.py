"""The house: what lies where, and who may know whom."""

import ast
import sys
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from subprocess import run

import pytest
from tests.imports import imports_of

from daruma.graph.machine import TABLE

ROOT = Path(__file__).parents[1]
ORDER = ["state", "tools", "nodes", "graph"]
"""Imports go from right to left only."""

TOP_LEVEL = {"docs", "graph", "nodes", "tools", "state", "tests", "notebooks"}
FILES = {
    "pyproject.toml",
    "README.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "CHANGELOG.md",
    "langgraph.json",
    "mkdocs.yml",
}


def imports(path: Path) -> Iterator[str]:
    """Yield the full names of what a file imports."""
    yield from (f"{module}.{name}".removeprefix(".") for module, name in imports_of(path))


def room_of(module: str) -> str | None:
    """Return the folder that a module lies in, None for one that is not ours."""
    parts = module.split(".")
    return parts[1] if parts[0] == "daruma" and len(parts) > 1 else None


@pytest.mark.parametrize("room", ORDER)
def test_imports_go_one_way(room: str) -> None:
    """A folder imports from itself and from those before it, never from those after it."""
    allowed = set(ORDER[: ORDER.index(room) + 1])

    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in (ROOT / room).rglob("*.py")
        for module in imports(path)
        if room_of(module) in set(ORDER) - allowed
    ]

    assert wrong == []


FLOORS = {
    "tools": (
        ("dates", "errors", "files", "text", "threads"),
        ("commands", "sandbox", "snapshots"),
        ("calls",),
        ("assistant", "knowledge", "memory", "planning", "skills", "workspace_tools"),
        (
            *("call_execution", "context", "hooks", "model_requests"),
            "window",
            *("checks", "judge", "reports", "rollback", "verification"),
            *("continuity", "evolution", "recovery", "team"),
        ),
    ),
    "graph": (("run",), ("build",), ("studio", "workers"), ("protocols",), ("command_line",)),
}
"""Lowest first: what lies on a floor builds on its own and on those below. All else is below."""


def modules() -> dict[str, Path]:
    """Return our modules and packages by their full names."""
    return {
        ".".join(("daruma", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(
            ".__init__"
        ): path
        for room in ORDER
        for path in (ROOT / room).rglob("*.py")
        if "scenarios" not in path.parts
    }


@cache
def imported_modules() -> dict[str, set[str]]:
    """Return what each module imports of ours, wherever in it that stands and whatever for."""
    known = modules()
    found = dict[str, set[str]]()
    for module, path in known.items():
        names = {n if n in known else n.rpartition(".")[0] for n in imports(path)}
        found[module] = (names & known.keys()) - {module}
    return found


def circle_in(graph: Mapping[str, set[str]]) -> Sequence[str]:
    """Return one circle of a graph; empty where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_each_other_in_a_circle() -> None:
    """An import in a function, or one for types alone, is one too."""
    assert circle_in({"a": {"b"}, "b": {"c"}, "c": {"a"}})
    assert circle_in(imported_modules()) == []


def wholes(folder: str) -> dict[str, set[str]]:
    """Return what lies in a folder and what that builds on there; a package counts as a whole."""
    within, found = f"daruma.{folder}.", defaultdict[str, set[str]](set)
    for module, needs in imported_modules().items():
        if module.startswith(within):
            own = module.removeprefix(within).split(".")[0]
            beside = {n.removeprefix(within).split(".")[0] for n in needs if n.startswith(within)}
            found[own] |= beside - {own}
    return found


PACKAGES = sorted(
    ".".join(path.relative_to(ROOT).parent.parts)
    for room in ORDER
    for path in (ROOT / room).rglob("__init__.py")
    if "scenarios" not in path.parts
)


@pytest.mark.parametrize("folder", PACKAGES)
def test_no_packages_import_each_other_in_a_circle(folder: str) -> None:
    """Who imports one module of a package loads them all: as wholes they make no circle either."""
    assert circle_in(wholes(folder)) == []


@pytest.mark.parametrize("folder", FLOORS)
def test_a_floor_builds_on_those_below(folder: str) -> None:
    """So the registry is given its tools, and nothing below its floor knows the context."""
    floor = {name: n for n, names in enumerate(FLOORS[folder], 1) for name in names}
    built = wholes(folder)

    wrong = [
        f"{one} imports {other}"
        for one, others in built.items()
        for other in others
        if floor.get(other, 0) > floor.get(one, 0)
    ]

    assert wrong == []
    assert floor.keys() <= built.keys()


def test_what_lies_in_tools_has_its_floor() -> None:
    """A new package belongs somewhere, here and in the README."""
    placed = {name for floor in FLOORS["tools"] for name in floor}

    assert wholes("tools").keys() == placed


def test_nodes_do_not_import_each_other() -> None:
    """A node knows no other node: only the table does."""
    wrong = [
        f"{path.name} imports {module}"
        for path in (ROOT / "nodes").glob("*.py")
        for module in imports(path)
        if room_of(module) == "nodes"
    ]

    assert wrong == []


def test_every_node_has_one_file_with_its_name() -> None:
    """File, function and node have one name, and nothing else lies beside the nodes."""
    files = {path.stem for path in (ROOT / "nodes").glob("*.py")} - {"__init__"}

    functions = {name: public_coroutines(ROOT / "nodes" / f"{name}.py") for name in TABLE}

    assert files == set(TABLE)
    assert functions == {name: [name] for name in TABLE}


def public_coroutines(path: Path) -> list[str]:
    """Return the names of the public async functions of a file."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    names = [node.name for node in body if isinstance(node, ast.AsyncFunctionDef)]
    return [name for name in names if not name.startswith("_")]


def test_the_top_level_holds_nothing_else() -> None:
    """Beside the seven folders and the usual files only dotfiles lie at the top."""
    tracked = run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)
    names = {line.split("/")[0] for line in tracked.stdout.splitlines()}

    assert {name for name in names if not name.startswith(".")} <= TOP_LEVEL | FILES


def test_no_file_has_a_name_that_says_nothing() -> None:
    """Files are named for one idea; these names stand for none."""
    vague = {"utils", "util", "helpers", "helper", "common", "base", "misc", "manager", "managers"}

    found = [p for room in ORDER for p in (ROOT / room).rglob("*.py") if p.stem in vague]

    assert found == []


LONGEST_MODULE = 700
"""Lines: a module is a topic that is read in one go, mostly of 120 to 400."""


def test_no_module_is_too_long_to_be_read_in_one_go() -> None:
    """A topic that needs more than this is two, or is told at too great a length."""
    lengths = {
        path.relative_to(ROOT): len(path.read_text(encoding="utf-8").splitlines())
        for room in ORDER
        for path in (ROOT / room).rglob("*.py")
    }

    assert {path: lines for path, lines in lengths.items() if lines > LONGEST_MODULE} == {}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel once."""
    target = tmp_path_factory.mktemp("wheel")
    script = f"from hatchling.build import build_wheel; build_wheel({str(target)!r})"
    run([sys.executable, "-c", script], cwd=ROOT, check=True, capture_output=True)
    return next(target.glob("*.whl"))


def test_a_wheel_installs_nothing_but_daruma(wheel: Path) -> None:
    """A top-level ``graph`` or ``state`` in site-packages would be someone else's name."""
    names = zipfile.ZipFile(wheel).namelist()

    assert {name.split("/")[0].split("-")[0] for name in names} == {"daruma", "daruma_agent"}
    assert {"daruma/py.typed", "daruma/nodes/main.py", "daruma/state/channels.py"} <= set(names)
    assert "daruma/graph/scenarios/fix/script.yaml" in names
    teams = {name.rpartition("/")[2] for name in names if "/tools/team/templates/" in name}
    assert teams == {"coding.yaml", "research.yaml"}
    files = {"events.schema.json", "settings.schema.json"}
    assert {f"daruma/state/{each}" for each in files} <= set(names)
    assert len(names) == len(set(names))


@pytest.mark.long
def test_the_wheel_works_away_from_the_checkout(wheel: Path, tmp_path: Path) -> None:
    """What is installed is complete: the public names are there, and they are the wheel's own."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    script = "import daruma; print(*(getattr(daruma, n).__module__ for n in daruma.__all__))"
    script += "; import daruma.graph.command_line._app; print(daruma.graph.__file__)"

    done = run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"},
        check=True,
        capture_output=True,
        text=True,
    )

    assert str(tmp_path) in done.stdout.splitlines()[-1]


def test_a_package_refuses_another_name() -> None:
    """A checkpoint written through a top-level ``state`` could not be read elsewhere."""
    done = run(
        [sys.executable, "-c", "import state"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )

    assert "import daruma.state, not state" in done.stderr
