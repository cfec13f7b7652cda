"""Tasks are run, answered and resumed without the extra ``worker``, which a quick start lacks."""

import sys
from subprocess import run

import pytest
from tests.daruma_command import DONE, PLAN, Daruma

WITHOUT = """
import sys
sys.modules["procrastinate"] = None  # as if it were not installed
from daruma.__main__ import main
main()
"""


def without_workers(*args: str) -> tuple[int, str]:
    """Call the command where procrastinate is not there; return its exit code and complaint."""
    done = run([sys.executable, "-c", WITHOUT, *args], check=False, capture_output=True, text=True)
    return done.returncode, done.stderr


@pytest.mark.long
def test_work_that_is_done_here_needs_no_workers(daruma: Daruma) -> None:
    """Each of these commands asked for procrastinate before it did anything."""
    model = daruma.script(plan=[PLAN], main=[DONE])
    planned = ("run", "Do it", "--mode", "plan_exec", "--model", model, "--thread", "t")

    assert without_workers(*planned)[0] == 3
    assert without_workers("resume", "t")[0] == 3
    assert without_workers("answer", "t", "--confirm")[0] == 0


@pytest.mark.long
def test_work_that_is_left_to_workers_says_what_is_lacking(daruma: Daruma) -> None:
    """In one line."""
    model = daruma.script(main=[DONE])

    code, said = without_workers("run", "Do it", "--model", model, "--submit")

    assert code == 2
    assert said == "daruma: workers need procrastinate: pip install 'daruma-agent[worker]'\n"
