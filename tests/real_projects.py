"""Works on real projects: ``python -m tests.real_projects [NAME ...]``; it needs a network.

Ten source distributions, pinned by hash, with the tests that they bring. In each a bug is planted
before the task begins. A task whose scripted model makes the right fix has to end `completed`, and
one with a wrong fix must not, in the best sandbox that this machine has. Nothing of a project is
changed to make it so: some configure no linter, in some the tests can not be collected by plain
pytest, before as after.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.parts import settings
from tests.scripted_runs import Run

from daruma.state.result import TaskResult

AS_MODULE: Final = ("python -m pytest -q",)
"""With the project's own folder on the path, where it has to be installed otherwise."""


@dataclass(frozen=True)
class Project:
    """A source distribution, and where its bug is planted: ``right`` becomes ``planted``."""

    name: str
    version: str
    sha256: str
    file: str
    right: str
    planted: str
    wrong: str
    goal: str
    commands: tuple[str, ...] = ()


PROJECTS: Final = (
    Project(
        "first",
        "2.0.2",
        "ff285b08c55f8c97ce4ea7012743af2495c9f1291785f163722bd36f6af6d3bf",
        "first.py",
        "            if key(el):",
        "            if not key(el):",
        "            if key(el) is None:",
        "Fix first() in first.py: it takes what key refuses",
    ),
    Project(
        "inflection",
        "0.5.1",
        "1a29730d366e996aaacffb2f1f1cb9593dc38e2ddd30c91250c6dde09ea9b417",
        "inflection/__init__.py",
        "for rule, replacement in PLURALS:",
        "for rule, replacement in SINGULARS:",
        "for rule, replacement in PLURALS[:3]:",
        "Fix pluralize(), which is wrong for most words",
    ),
    Project(
        "more-itertools",
        "10.5.0",
        "5482bfef7849c25dc3c6dd53a6173ae4795da2a41a80faea6700d9f5846c5da6",
        "more_itertools/more.py",
        "iterator = iter(partial(take, n, iter(iterable)), [])",
        "iterator = iter(partial(take, n + 1, iter(iterable)), [])",
        "iterator = iter(partial(take, n + 2, iter(iterable)), [])",
        "Repair the sizes that chunked() makes",
    ),
    Project(
        "ordered-set",
        "4.1.0",
        "694a8e44c87657c59292ede72891eb91d34131f6531463aab3009191c77364a8",
        "ordered_set/__init__.py",
        "            self.map[key] = len(self.items)",
        "            self.map[key] = len(self.items) + 1",
        "            self.map[key] = len(self.items) - 1",
        "add() gives the wrong index: fix it. All tests have to pass.",
    ),
    Project(
        "schema",
        "0.7.7",
        "7da553abd2958a19dc2547c388cde53398b39196175a9be59ea1caf5ab0a1807",
        "schema.py",
        "failed: bool = self.match_count > 1 and self.only_one",
        "failed: bool = self.match_count > 2 and self.only_one",
        "failed: bool = self.match_count > 3 and self.only_one",
        "Fix Or with only_one=True in schema.py",
    ),
    Project(
        "voluptuous",
        "0.15.2",
        "6ffcab32c4d3230b4d2af3a577c87e1908a714a11f6f95570456b1849b0279aa",
        "voluptuous/validators.py",
        "if self.min is not None and not v >= self.min:",
        "if self.min is not None and not v > self.min:",
        "if self.min is not None and not v <= self.min:",
        "Range refuses its own minimum: fix that",
    ),
    Project(
        "xmltodict",
        "0.14.2",
        "201e7c28bb210e374999d1dde6382923ab0ed1a8a5faeece48ab525b7810a553",
        "xmltodict.py",
        "key = self.attr_prefix+self._build_name(key)",
        "key = self._build_name(key)",
        "key = self._build_name(key)+self.attr_prefix",
        "Attributes have lost their prefix in xmltodict.py: fix it",
    ),
    Project(
        "parse",
        "1.20.2",
        "b41d604d16503c79d81af5165155c0b20f6c8d6c559efa66b4b695c3e5a0a0ce",
        "parse.py",
        "return float(string[:-1]) / 100.0",
        "return float(string[:-1]) / 10.0",
        "return float(string[:-1]) * 100.0",
        "Fix percentage() in parse.py",
        AS_MODULE,
    ),
    Project(
        "tabulate",
        "0.9.0",
        "0095b12bf5966de529c0feb1fa08671671b3368eec77d7ef7ab114be2c068b3c",
        "tabulate/__init__.py",
        'fmt = "{0:>%ds}" % width',
        'fmt = "{0:<%ds}" % width',
        'fmt = "{0:^%ds}" % width',
        "Numbers are flushed to the wrong side: mend _padleft()",
        AS_MODULE,
    ),
    Project(
        "toolz",
        "1.0.0",
        "2c86e3d9a04798ac556793bced838816296a2f085017664e4995cb40a1047a02",
        "toolz/itertoolz.py",
        "    next(seq)\n    return next(seq)",
        "    return next(seq)",
        "    next(seq)\n    next(seq)\n    return next(seq)",
        "Fix second()",
        AS_MODULE,
    ),
)


def unpacked(project: Project, top: Path) -> Path:
    """Fetch a source distribution with pip, which checks its hash, and unpack it."""
    pinned = top / f"{project.name}.txt"
    pinned.write_text(f"{project.name}=={project.version} --hash=sha256:{project.sha256}\n")
    fetched = top / f"{project.name}.fetched"
    options = ("-q", "--no-deps", "--no-binary", ":all:", "--require-hashes")
    pip = (sys.executable, "-m", "pip", "download", *options, "-d", str(fetched))
    subprocess.run([*pip, "-r", str(pinned)], check=True)
    (archive,) = fetched.iterdir()
    with tarfile.open(archive) as tar:
        tar.extractall(top / project.name, filter="data")
    (folder,) = (top / project.name).iterdir()
    return folder


def put(project: Project, folder: Path, old: str, new: str) -> None:
    """Replace a text of the project's code, that is there."""
    path = folder / project.file
    text = path.read_text(encoding="utf-8")
    if old not in text:
        raise LookupError(f"{project.name}: {project.file} does not hold {old!r}")
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def edit(project: Project, folder: Path, fix: str) -> dict[str, str]:
    """Return the call that puts ``fix`` in the bug's place, with the lines that tell which."""
    text = (folder / project.file).read_text(encoding="utf-8")
    at = text.index(project.planted)
    end = at + len(project.planted)
    while text.count(text[at:end]) > 1:
        at = text.rfind("\n", 0, at - 1) + 1
    old = text[at:end]
    new = text[at : end - len(project.planted)] + fix
    place = {"command": "str_replace", "path": project.file}
    return {**place, "old_str": old, "new_str": new}


def ended(project: Project, folder: Path, fix: str) -> TaskResult:
    """Run a task whose model puts ``fix`` in the bug's place; the bug is back afterwards."""
    call = {"name": "str_replace_editor", "args": edit(project, folder, fix)}
    main = [{"calls": [call]}, *[{"say": "It is fixed."}] * 4]
    script = {"main": main, "reflect": [{"say": "I see nothing wrong."}] * 2}
    given = settings(verification={"commands": project.commands, "timeout": 300})
    before = (folder / project.file).read_text(encoding="utf-8")
    run = Run(script, settings=given).ask(project.goal, workspace=str(folder))
    (folder / project.file).write_text(before, encoding="utf-8")
    return run.result


def main(names: list[str]) -> int:
    """Verify all of them, print what came of it, and return how many were judged wrongly."""
    misjudged = 0
    with tempfile.TemporaryDirectory() as top:
        os.environ["DARUMA_DATA_DIR"] = str(Path(top, "data"))
        for project in PROJECTS:
            if names and project.name not in names:
                continue
            folder = unpacked(project, Path(top).resolve())
            put(project, folder, project.right, project.planted)
            for kind, fix in (("right", project.right), ("wrong", project.wrong)):
                result = ended(project, folder, fix)
                as_meant = (result.headline == "completed") == (kind == "right")
                misjudged += not as_meant
                mark = "ok " if as_meant else "BAD"
                seconds = sum(each.seconds for each in result.verifications)
                line = f"{mark} {project.name:15} {kind}: {result.headline}, {seconds:.1f} s"
                print(f"{line}  {result.checked.why[:160]}", flush=True)  # noqa: T201
    return misjudged


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
