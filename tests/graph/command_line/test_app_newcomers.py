"""What newcomers get wrong on the command line: one line with the name, the reason, the remedy."""

from pathlib import Path
from typing import NamedTuple

import pytest
from tests.daruma_command import DONE, PLAN, Daruma


class Mistake(NamedTuple):
    """What is typed where, and what is said of it. ``{here}`` is the folder of the call."""

    said: str
    args: tuple[str, ...] = ("run", "Do it", "--model", "scripted:script.json")
    variables: tuple[tuple[str, str], ...] = ()
    file: str = ""
    text: str | bytes = ""


def variable(name: str, said: str, text: str = "5") -> Mistake:
    """A variable of the environment."""
    return Mistake(said, variables=((name, text),))


def settings(text: str | bytes, said: str) -> Mistake:
    """What ``daruma.yaml`` holds."""
    return Mistake(said, file="daruma.yaml", text=text)


def file(name: str) -> Mistake:
    """A file that is meant to hold settings."""
    return Mistake(f"/{name} is not read: settings are YAML in daruma.yaml", file=name)


def typed(said: str, *args: str) -> Mistake:
    """A command line."""
    return Mistake(said, args=args)


def url(text: str, said: str) -> Mistake:
    """A database."""
    return Mistake(said, ("threads",), (("DARUMA_POSTGRES_URL", text),))


RUN = ("run", "x", "--model", "scripted:script.json")
IN = (*RUN, "--workspace")

MISTAKES = {
    "DATABSE_URL": variable("DARUMA_DATABSE_URL", "did you mean DARUMA_POSTGRES_URL?"),
    "POSTGRES": variable("DARUMA_POSTGRES", "did you mean DARUMA_POSTGRES_"),
    "MODEL_NAME": variable("DARUMA_MODEL_NAME", "did you mean DARUMA_LLM__MODEL?"),
    "MODEL": variable("DARUMA_MODEL", "did you mean DARUMA_LLM__MODEL?"),
    "one underscore": variable("DARUMA_LLM_MODEL", "did you mean DARUMA_LLM__MODEL?"),
    "DATADIR": variable("DARUMA_DATADIR", "did you mean DARUMA_DATA_DIR?"),
    "a key of ours": variable("DARUMA_API_KEY", "such as OPENAI_API_KEY"),
    "like none": variable("DARUMA_WORKSPACE", "`daruma settings` lists those that there are"),
    "below a section": variable("DARUMA_LLM__MODLE", "'llm.modle'; did you mean 'model'?"),
    "a section": variable("DARUMA_SANDBOX", "'sandbox' holds keys such as require"),
    "no JSON": variable(
        "DARUMA_LLM__FALLBACK_MODELS",
        '_MODELS is not JSON: it holds a list of text, written as ["',
        "openai:x",
    ),
    "a mode": variable("DARUMA_MODE", "did you mean 'plan_exec'?", "plan-exec"),
    "seconds": variable("DARUMA_POSTGRES_OUTAGE_SECONDS", "such as 60 (given: '5s')", "5s"),
    "yml": file("daruma.yml"),
    "toml": file("daruma.toml"),
    "json": file("daruma.json"),
    "hidden": file(".daruma.yaml"),
    "capital": file("Daruma.yaml"),
    "txt": file("daruma.yaml.txt"),
    "misspelt": file("dauma.yaml"),
    "top key": settings("lmm: {}", "unknown setting 'lmm'; did you mean 'llm'?"),
    "elsewhere": settings("model: openai:x", "unknown setting 'model'; did you mean 'llm.model'?"),
    "capitals": settings("LLM: {}", "unknown setting 'LLM'; did you mean 'llm'?"),
    "hyphen": settings("spec-review: {}", "did you mean 'spec_review'?"),
    "dots": settings("llm.model: openai:x", "write it as llm: {model: ...}"),
    "deep": settings("llm: {requests: {secnds: 3}}", "'llm.requests.secnds'; did you mean"),
    "a tab": settings("llm:\n\tmodel: x\n", "daruma.yaml can not be read: line 2: a tab; indent"),
    "twice": settings("mode: react\nmode: react\n", "line 2: the key 'mode' is there twice"),
    "empty section": settings("llm:\n", "'llm' holds keys such as model"),
    "text for a section": settings("llm: openai:x\n", "'llm' holds keys such as model"),
    "a type": settings("budgets: {think: many}", "'budgets.think': Input should be a valid int"),
    "a sign": settings("budgets: {think: -1}", "greater than or equal to 1 (given: -1)"),
    "a list": settings("- llm\n", "has to hold keys and values, not list"),
    "equals": settings("mode = react\n", "has to hold keys and values, not str"),
    "unclosed": settings("llm: [", "daruma.yaml can not be read: line 1: expected"),
    "an encoding": settings(b"mode: react\n# \xe9\n", "line 2 is no UTF-8: save it as that"),
    "a mode that is none": typed("unknown mode 'fast'; there are:", *RUN, "--mode", "fast"),
    "an option that is none": typed("--wurkspace", *RUN, "--wurkspace", "."),
    "a model that is none": typed('unknown model "llama"', "run", "x", "--model", "llama"),
    "a script that is not there": typed("no.yaml", "run", "x", "--model", "scripted:no.yaml"),
    "no key": typed("OPENAI_API_KEY is not set", "run", "x", "--model", "openai:test"),
    "a name nobody can type": typed("thread name '-x'", *RUN, "--thread", "-x"),
    "nobody to answer": typed("no thread 'nobody'", "answer", "nobody", "--confirm"),
    "no answer": typed("give an answer: one of --confirm", "answer", "t"),
    "two answers": typed(
        "give one of --confirm, --text", "answer", "t", "--confirm", "--text", "x"
    ),
    "nothing to answer": typed("'THREAD'; `daruma answer --help` explains it", "answer"),
    "no such scenario": typed("there are: fix, gives-up", "demo", "cook"),
    "a group alone": typed("of `daruma memory`: list, search, add, forget", "memory"),
    "no such command": typed("No such command 'dance'; `daruma --help` explains it", "dance"),
    "another task": typed("answer it first", *RUN, "--thread", "brave-otter"),
    "no goal": typed("'GOAL'; `daruma run --help` explains it", "run"),
    "goal empty": typed("say what is to be done", "run", ""),
    "goal as an option": typed("GOAL stands without an option", "run", "--goal", "Do it"),
    "no quotes": typed(
        "(the tests): put words with spaces in quotes", "run", "fix", "the", "tests"
    ),
    "a file to work in": typed("(it is a file): name a folder", *IN, "script.json"),
    "gone to work in": typed("(No such file or directory): name a folder", *IN, "gone"),
    "everything": typed("holds Daruma's own data", *IN, "/"),
    "a thread's name": typed(
        "there is no thread 'brave-oter': did you mean 'brave-otter'?", "resume", "brave-oter"
    ),
    "shown by its name": typed("did you mean 'brave-otter'?", "show", "brave-oter"),
    "as a page": typed("did you mean 'brave-otter'?", "show", "brave-oter", "--html"),
    "undone by its name": typed("did you mean 'brave-otter'?", "undo", "brave-oter"),
    "another answer": typed(
        "waits for another kind of answer", "answer", "brave-otter", "--text", "yes"
    ),
    "an approval": typed(
        "waits for another kind of answer", "answer", "brave-otter", "--approve", "x"
    ),
    "nothing is asked": typed("nothing is open on thread 'done'", "answer", "done", "--confirm"),
    "nothing to undo": typed("has no workspace: name a savepoint", "undo", "done"),
    "a command": typed("Did you mean 'threads'?", "thread"),
    "SQLAlchemy": url(
        "postgresql+psycopg2://u:pw@h/db", "(it begins with postgresql+psycopg2://): it must be"
    ),
    "another database": url(
        "sqlite:///x.db", "(it begins with sqlite://): it must be postgresql://"
    ),
    "a port": url(
        "postgresql://u:pw@127.0.0.1:1/db",
        "//u@127.0.0.1:1/db can not be used (Connection refused): start",
    ),
    "a host": url("localhost:5432", "it must be postgresql://USER:PASSWORD@HOST:PORT/DATABASE"),
}


@pytest.fixture
def begun(daruma: Daruma) -> Daruma:
    """A newcomer's folder: a thread that has ended, and one that waits for a yes to a plan."""
    model = daruma.script(main=[DONE])
    assert daruma("run", "Do it", "--model", model, "--thread", "done").code == 0
    model = daruma.script(plan=[PLAN], main=[DONE])
    waiting = ("run", "Do it", "--mode", "plan_exec", "--model", model, "--thread", "brave-otter")
    assert daruma(*waiting).code == 3
    daruma.setenv("DARUMA_POSTGRES_OUTAGE_SECONDS", "0")
    return daruma


@pytest.mark.sampled(2)
@pytest.mark.parametrize("part", range(4))
def test_a_newcomers_mistake_is_one_line_that_says_what_to_do(
    part: int, begun: Daruma, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FA-04: exit code 2; the same thread still waits for the same answer afterwards."""
    wrong = dict[str, str]()
    for name, mistake in [*MISTAKES.items()][part::4]:
        with monkeypatch.context() as patch:
            for variable, text in mistake.variables:
                patch.setenv(variable, text)
            if mistake.file:
                content = mistake.text
                Path(mistake.file).write_bytes(
                    content if isinstance(content, bytes) else content.encode()
                )
            said = begun(*mistake.args)
        if mistake.file:
            Path(mistake.file).unlink()
        if said.code != 2 or mistake.said not in said.err or len(said.err.splitlines()) != 1:
            wrong[name] = f"[{said.code}] {said.out}{said.err}"
        assert "pw" not in said.err

    assert wrong == {}
    assert begun("show", "brave-otter", "--json").json["interrupts"]


def test_a_wrong_password_and_a_database_that_is_not_there_are_one_line(daruma: Daruma) -> None:
    """The address is told, without the password."""
    gone = daruma.url.replace("dbname=", "dbname=no_such_")
    daruma.setenv("DARUMA_POSTGRES_OUTAGE_SECONDS", "0")
    daruma.setenv("DARUMA_POSTGRES_URL", gone)

    line = daruma("threads").complaint

    assert "no_such_" in line
    assert "does not exist" in line
    assert "DARUMA_POSTGRES_URL" in line
