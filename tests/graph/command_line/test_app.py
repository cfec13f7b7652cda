"""The command line as a whole: quick to start, one line for a mistake, nothing lost by one."""

import json
import subprocess
import sys
from typing import Any

import pytest
from tests.daruma_command import DONE, PLAN, Daruma

NOBODY = "postgresql://nobody@127.0.0.1:1/nothing"


def test_help_does_not_wait_for_the_machine() -> None:
    """``daruma --help`` imports none of the slow libraries."""
    slow = ["langgraph", "langchain_core", "langchain_openai", "psycopg", "pydantic", "openai"]
    script = (
        "import sys\nfrom daruma.graph.command_line.app import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit as end:\n    assert end.code == 0\n"
        f"print([name for name in {slow} if name in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )

    assert "Commands" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


def test_every_command_of_the_design_is_there(daruma: Daruma) -> None:
    """What is promised can be called."""
    said = daruma()

    assert said.code == 0
    for name in ("demo", "run", "resume", "answer", "threads", "show", "graph", "doctor", "worker"):
        assert f" {name} " in said.out


def test_the_version_is_told(daruma: Daruma) -> None:
    """``--version`` names the program and its version."""
    assert daruma("--version").out.startswith("daruma 0.")


BAD_INPUT: dict[str, tuple[list[str], str]] = {
    "no goal": (["run"], "Missing argument"),
    "a mode that is none": (["run", "x", "--mode", "fast"], "unknown mode 'fast'; there are:"),
    "an option that is none": (["run", "x", "--wurkspace", "."], "--wurkspace"),
    "a workspace that is not there": (
        ["run", "x", "--workspace", "gone"],
        "'gone' is not a folder",
    ),
    "an empty goal": (["run", " "], "say what is to be done"),
    "a model that is none": (["run", "x", "--model", "llama"], 'unknown model "llama"'),
    "a script that is not there": (["run", "x", "--model", "scripted:no.yaml"], "no.yaml"),
    "no key": (["run", "x", "--model", "openai:test"], "OPENAI_API_KEY is not set"),
    "a thread name nobody can type": (["run", "x", "--thread", "-x"], "thread name '-x'"),
    "no such thread to resume": (["resume", "nobody"], "there is no thread 'nobody'"),
    "no such thread to answer": (["answer", "nobody", "--confirm"], "no thread 'nobody'"),
    "no such thread to show": (["show", "nobody"], "there is no thread 'nobody'"),
    "no answer": (["answer", "t"], "give an answer: one of --confirm"),
    "two answers": (["answer", "t", "--confirm", "--text", "x"], "give one of --confirm, --text"),
    "no such scenario": (["demo", "cook"], "there are: fix, gives-up"),
    "no such command": (["dance"], "dance"),
}


@pytest.mark.parametrize("name", BAD_INPUT)
def test_a_mistake_is_answered_with_one_line(daruma: Daruma, name: str) -> None:
    """Exit code 2, one line on standard error that says what is wrong, nothing else (FA-04)."""
    arguments, said = BAD_INPUT[name]
    if "--model" not in arguments and arguments[0] == "run" and len(arguments) > 1:
        arguments = [*arguments, "--model", daruma.script(main=[DONE])]

    assert said in daruma(*arguments).complaint


def test_a_run_without_any_model_says_where_to_name_one(daruma: Daruma) -> None:
    """Nothing runs, and nothing is written, before there is a model."""
    assert "no model is configured" in daruma("run", "x", "--thread", "t").complaint
    assert "there is no thread 't'" in daruma("show", "t").complaint


def test_an_unknown_setting_names_the_nearest(daruma: Daruma) -> None:
    """A slip in ``daruma.yaml`` is told with what was probably meant."""
    (daruma.folder / "daruma.yaml").write_text("budgets: {thimk: 3}\n")

    assert "'budgets.thimk'; did you mean 'think'?" in daruma("run", "x").complaint


def test_an_unreachable_database_is_told_in_one_line(daruma: Daruma) -> None:
    """Which one, and what can be done; the command does not wait for ever."""
    daruma.setenv("DARUMA_POSTGRES_URL", NOBODY)

    line = daruma("run", "x", "--model", daruma.script(main=[DONE])).complaint

    assert "postgresql://nobody@127.0.0.1:1/nothing" in line
    assert "DARUMA_POSTGRES_URL" in line


MISTAKES = [
    ["run", "another task"],
    ["answer", "t", "--text", "blue"],
    ["answer", "t", "--approve"],
    ["answer", "t", "--edit", "no.json"],
]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_leaves_an_open_review_as_it_was(daruma: Daruma, mistake: list[str]) -> None:
    """After any mistake the same question is open and can still be answered."""
    model = daruma.script(plan=[PLAN], main=[DONE])
    waiting = daruma("run", "x", "--mode", "plan_exec", "--model", model, "--thread", "t", "--json")
    options = ["--thread", "t", "--model", model] if mistake[0] == "run" else []

    refused = daruma(*mistake, *options)

    assert refused.complaint
    assert daruma("show", "t", "--json").json["interrupts"] == waiting.json["interrupts"]
    assert daruma("answer", "t", "--confirm").code == 0


def test_what_is_not_open_is_not_answered(daruma: Daruma) -> None:
    """A finished thread asks nothing, and stays finished."""
    daruma("run", "x", "--model", daruma.script(main=[DONE]), "--thread", "t")

    assert "nothing is open on thread 't'" in daruma("answer", "t", "--confirm").complaint
    assert daruma("resume", "t").code == 0


EXPECTED_FINDINGS = {"Python", "langgraph", "Postgres", "sandbox", "model", "git", "pytest", "ruff"}


def findings(daruma: Daruma) -> tuple[int, dict[str, dict[str, Any]]]:
    said = daruma("doctor", "--json")
    return said.code, {each["name"]: each for each in json.loads(said.out)}


def test_the_doctor_looks_at_everything_and_shows_no_key(daruma: Daruma) -> None:
    """What is there is named with its version; of a key only that it is there."""
    daruma.setenv("OPENAI_API_KEY", "sk-very-secret")
    daruma.setenv("DARUMA_LLM__MODEL", "openai:test")

    said = daruma("doctor")
    code, found = findings(daruma)

    assert (said.code, code) == (0, 0)
    assert found.keys() >= EXPECTED_FINDINGS
    assert found["model"]["state"] == "ok"
    assert "OPENAI_API_KEY is set" in said.out
    assert "very-secret" not in said.out + said.err


def test_the_doctor_names_the_fallbacks(daruma: Daruma) -> None:
    """TL-17: one that can not be made is worth a note; runs do without it."""
    daruma.setenv("OPENAI_API_KEY", "sk-very-secret")
    daruma.setenv("DARUMA_LLM__FALLBACK_MODELS", '["openai:spare", "scripted:/no/such"]')

    said = json.loads(daruma("doctor", "--json").out)

    assert [(each["state"], each["text"]) for each in said if each["name"] == "fallback"] == [
        ("ok", "openai:spare"),
        ("note", "cannot read the script /no/such: No such file or directory"),
    ]


def test_the_doctor_fails_when_something_essential_is_missing(daruma: Daruma) -> None:
    """Without a database nothing can run: exit code 1, and the remedy in its line."""
    daruma.setenv("DARUMA_POSTGRES_URL", NOBODY)

    code, found = findings(daruma)

    assert code == 1
    assert found["Postgres"]["state"] == "missing"
    assert "start or repair it" in found["Postgres"]["text"]
