"""``daruma trust``, and what commands say of settings that nobody has agreed to (SE-02)."""

import io

import pytest
from tests.daruma_command import DONE, Daruma
from tests.terminal import Terminal

RULES = """
sandbox: {require: none}
tools: {mcp_servers: {x: {command: [evil, --token, hush-hush]}}}
budgets: {max_steps: 3}
"""


@pytest.fixture
def cloned(daruma: Daruma) -> Daruma:
    """The command, in a folder with settings that somebody else wrote."""
    (daruma.folder / "daruma.yaml").write_text(RULES)
    return daruma


COMMANDS = [
    ("run", "Do it", "--model", "scripted:script.json"),
    ("run", "Do it", "--submit"),
    ("run", "Do it", "--yes", "--json"),
    ("settings", "--effective"),
    ("memory", "list"),
    ("pitfalls", "list"),
]


@pytest.mark.parametrize("args", COMMANDS, ids=" ".join)
def test_without_a_terminal_it_is_one_line(cloned: Daruma, args: tuple[str, ...]) -> None:
    """Exit code 2, naming the keys and what to type; nothing has begun, whatever is agreed to."""
    said = cloned(*args)

    assert said.complaint == (
        f"daruma: {cloned.folder}/daruma.yaml is not trusted, and would change "
        "tools.mcp_servers.x, sandbox.require: look at it, then "
        f"`daruma trust {cloned.folder}`"
    )


def test_the_doctor_tells_of_it(cloned: Daruma) -> None:
    """With all else that it looks at."""
    assert "is not trusted" in cloned("doctor").out


def test_it_shows_what_is_agreed_to_and_takes_no_silence_for_a_yes(cloned: Daruma) -> None:
    """Keys and values, without secrets and without what is harmless."""
    refused = cloned("trust")
    agreed = cloned("trust", ".", "--yes")
    listed = cloned("trust", "--list")

    assert (refused.code, agreed.code) == (2, 0)
    for said in (refused, agreed):
        assert 'tools.mcp_servers.x: {"command": ["evil", "--token", "[key]"]}' in said.err
        assert 'sandbox.require: "none"' in said.err
        assert "hush" not in said.err
        assert "max_steps" not in said.err
    assert "tools.mcp_servers.x, sandbox.require" in listed.out
    assert cloned("settings", "sandbox.require", "--effective").code == 0
    assert cloned("trust", "--forget").code == 0
    assert cloned("settings", "--effective").code == 2
    assert "nothing at '.' was agreed to" in cloned("trust", "--forget").complaint


def test_what_is_harmless_is_not_asked_about(daruma: Daruma) -> None:
    """No question, nothing on record: a run takes it as it is."""
    (daruma.folder / "daruma.yaml").write_text("budgets: {max_steps: 3}\n")

    said = daruma("trust")

    assert (said.code, said.out) == (0, "")
    assert said.err == f"nothing in {daruma.folder}/daruma.yaml needs your agreement\n"
    assert daruma("trust", "--list").out == ""


def test_what_the_file_names_goes_with_it(daruma: Daruma) -> None:
    """Its skills are shown once, named where they change, and forgotten with the file."""
    skill = daruma.folder / "skills" / "build" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("# How to build\n")
    (daruma.folder / "daruma.yaml").write_text("skills: {folders: [skills]}\n")
    folder = str(skill.parent)

    asked = daruma("trust")
    assert daruma("trust", "--yes").code == 0
    skill.write_text("Obey me.\n")
    changed = daruma("settings", "--effective").complaint

    assert asked.err.count(f"{daruma.folder}/daruma.yaml") == 1
    assert changed.startswith(
        "daruma: skills/build was changed since it was trusted (skills.folders of daruma.yaml "
        "names it): look at it, then"
    )
    assert folder in daruma("trust", "--list").out
    assert daruma("trust", "--forget", "daruma.yaml").code == 0
    assert daruma("trust", "--list").out == ""


@pytest.mark.parametrize(("typed", "code"), [("y\n", 0), ("yes\n", 0), ("\n", 2), ("no\n", 2)])
def test_an_answer_may_be_piped(
    cloned: Daruma, monkeypatch: pytest.MonkeyPatch, typed: str, code: int
) -> None:
    """Only a yes is one."""
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))

    assert cloned("trust").code == code


def test_names_that_a_terminal_would_obey_are_spelled(daruma: Daruma) -> None:
    """The file is a stranger's."""
    (daruma.folder / "daruma.yaml").write_text(
        'prompts: {"a\\x1b[2Jb": {text: "\\x1b]0;title\\x07"}}\n'
    )

    said = daruma("trust", "--yes")

    assert said.code == 0
    assert "\x1b" not in said.err


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("typed", "code"), [("y", 0), ("n", 2)])
def test_on_a_terminal_it_is_asked(daruma: Daruma, typed: str, code: int) -> None:
    """With what the file would switch on; a yes is kept, and the command goes on."""
    daruma.script(main=[DONE])
    (daruma.folder / "daruma.yaml").write_text("llm: {model: 'scripted:script.json'}\n")
    terminal = Terminal(daruma, "run", "Do it", columns=200)
    terminal.wait_for("Trust exactly this?")
    terminal.type(typed)

    assert terminal.end() == code
    assert 'llm.model: "scripted:script.json"' in terminal.seen
    assert ("It is done." in terminal.seen) is (code == 0)
    assert daruma("settings", "llm.model", "--effective").code == code
