"""Whether a shell line can fail is told as a real shell has it, whatever its programs do."""

import os
import subprocess
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from daruma.tools.reports import find_hidden_exit

PROGRAMS = 3

Draw = st.DrawFn


@st.composite
def lines(draw: Draw) -> str:
    """Draw a line; each of its programs stands in it once, so that all their ends can be tried."""
    programs = iter([f"p{number}" for number in range(PROGRAMS)])
    return _own_list(draw, programs, depth=3)


def _own_list(draw: Draw, programs: Iterator[str], depth: int) -> str:
    first = draw(st.sampled_from(["", "", "", *MODES]))
    return f"{first}\n{_list(draw, programs, depth)}" if first else _list(draw, programs, depth)


def _list(draw: Draw, programs: Iterator[str], depth: int) -> str:
    count = draw(st.integers(1, 3))
    items = [_chain(draw, programs, depth) for _ in range(count)]
    joints = [draw(st.sampled_from([";", ";", "\n", "&"])) for _ in items[1:]]
    last = draw(st.sampled_from(["", "", "", ";", "&"])) if depth == 3 else ""
    return " ".join(part for pair in zip(items, [*joints, last], strict=True) for part in pair)


def _chain(draw: Draw, programs: Iterator[str], depth: int) -> str:
    text = _pipe(draw, programs, depth)
    for _ in range(draw(st.integers(0, 2))):
        text += f" {draw(st.sampled_from(['&&', '||']))} {_pipe(draw, programs, depth)}"
    return text


def _pipe(draw: Draw, programs: Iterator[str], depth: int) -> str:
    text = draw(st.sampled_from(["", "", "", "! "])) + _command(draw, programs, depth)
    return text + (f" | {_command(draw, programs, depth)}" if draw(st.integers(0, 5)) == 0 else "")


SIMPLE = ["true", "false", "echo it's".replace("'", "\\'"), ": # no", "exit", "exit 0", "exit 3"]
SIMPLE += ["wait", "X=1", "X=1 true", "echo $X 2>&1", "echo 'exit 1'", "date +%s"]
SIMPLE += ["printf '%s\\n' a", "export A=b", "true &> log"]
MODES = ["set -e", "set +e", "trap 'exit 0' EXIT", "trap 'echo x' 0", "trap 'true; exit' EXIT"]
MODES += ["trap - EXIT", "set -e; trap 'echo x; exit 0' EXIT", "trap 'exit 3' INT"]


def _command(draw: Draw, programs: Iterator[str], depth: int) -> str:
    kinds = ["program"] * 4 + ["simple"] * 3
    kinds += ["group", "subshell", "if", "sh", "taken"] if depth > 1 else []
    kind = draw(st.sampled_from(kinds))
    if kind == "program":
        return next(programs, "false")
    if kind == "simple":
        text = draw(st.sampled_from(SIMPLE))
        return f"{{ {text}\n}}" if "#" in text else text
    own = kind in {"subshell", "sh", "taken"}
    inner = (_own_list if own else _list)(draw, programs, depth - 1)
    if kind == "if":
        other = f"else {_list(draw, programs, 1)}\n" if draw(st.booleans()) else ""
        return f"if {inner}\nthen {_list(draw, programs, 1)}\n{other}fi"
    options = draw(st.sampled_from(["-c", "-ec", "-e -c"]))
    return {
        "group": f"{{ {inner}\n}}",
        "subshell": f"( :\n{inner}\n)",
        "sh": f"""sh {options} '{inner.replace("'", "'" + chr(92) + "''")}'""",
        "taken": f"X=$( {inner}\n)",
    }[kind]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs that end as the variable with their name says."""
    folder = tmp_path_factory.mktemp("programs")
    for number in range(PROGRAMS):
        program = folder / f"p{number}"
        program.write_text(f"#!/bin/sh\nexit $P{number}\n")
        program.chmod(0o755)
    return folder


def all_ends(line: str, programs: Path, shell: str = "/bin/sh") -> set[bool]:
    """Run a line with each of its programs failing and not; return whether the line failed."""
    used = [f"P{number}" for number in range(PROGRAMS) if f"p{number}" in line]
    each = (
        " ".join(map("=".join, zip(used, ends, strict=True)))
        for ends in product("01", repeat=len(used))
    )
    run = f'{shell} -c "$LINE" </dev/null >/dev/null 2>&1; echo $?'
    done = subprocess.run(
        ["/bin/sh", "-c", "\n".join(f"{ends} {run}" for ends in each)],
        env={"PATH": f"{programs}:{os.defpath}", "LINE": line},
        cwd=programs,
        capture_output=True,
        text=True,
        check=True,
    )
    return {code != "0" for code in done.stdout.split()}


@settings(
    max_examples=10,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@example(line="true || p0")
@example(line="set -e\np0\ntrue")
@example(line="set -e; { p0; true; } || p1; true")
@given(line=lines())
def test_a_line_can_fail_where_a_shell_says_so(line: str, programs: Path) -> None:
    """VE-08: for every way in which its programs may end."""
    ends = all_ends(line, programs)

    assert (find_hidden_exit(line) == "") == (True in ends)
