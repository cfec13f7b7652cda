"""What a yes for calls to come covers, and how those of workspaces are kept."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from daruma.state.calls import (
    Allowance,
    AllowancesDamaged,
    Grounds,
    ToolTask,
    build_allowance,
    keep_allowance,
    plain_words,
    revoke_allowance,
    workspace_allowances,
)

HERE = Grounds(sandbox="namespace", definition="d")


def a_call(tool: str, **args: Any) -> ToolTask:
    return ToolTask(id="c", message_id="m", name=tool, requested_name=tool, args=args)


def command(line: str, **more: Any) -> ToolTask:
    return a_call("run_command", command=line, **more)


def given(call: ToolTask, pattern: str = "", at: float = 1.0) -> Allowance:
    return build_allowance(call, "/w", HERE, pattern, "digest", at)


COVERED = [
    (command("make a"), "", [command("make a"), command("make a", timeout=9, write=True)]),
    (command("a; b | c > d"), "", [command("a; b | c > d")]),
    (command("pytest -x"), "pytest *", [command("pytest"), command("pytest 'a b' --lf")]),
    (command("npm run 'a b'"), "npm run *", [command("npm  run x"), command('npm "run" x')]),
    (command("ls", cwd="a"), "ls *", [command("ls b", cwd="a")]),
    (a_call("pay", to="x", amount=1), "", [a_call("pay", amount=1, to="x")]),
    (a_call("pay", to="x", amount=1), "amount=*", [a_call("pay", to="x", amount=[2])]),
    (a_call("pay", to="x", amount=1), "amount=*, to=*", [a_call("pay"), a_call("pay", to="y")]),
]
NOT_COVERED = [
    (command("make a"), "", [command("make b"), command("make a "), command("make a", cwd="b")]),
    (
        command("pytest -x"),
        "pytest *",
        [
            *map(command, ("pytest x; rm -rf /", "pytest && rm x", "pytest > x", "pytest $(rm x)")),
            *map(
                command, ("pytest `rm x`", "pytest | sh", "pytest\nrm x", "pytest &", "A=1 pytest")
            ),
            *map(
                command, ("pytests", "pytest-x", "./pytest", "/bin/pytest", "pytest $X", "pytest *")
            ),
            *map(command, ("py pytest", "sh -c pytest", "pytest <x", "(pytest)", "", "pytest 'a")),
            command("pytest", cwd="sub"),
            a_call("run_command", command=["pytest"]),
            a_call("run_tests", command="pytest"),
        ],
    ),
    (command("npm run a"), "npm run *", [command("npm"), command("npm install run")]),
    (
        a_call("pay", to="x", amount=1),
        "amount=*",
        [a_call("pay", to="y", amount=1), a_call("pay", to="x", more=1), a_call("pays", to="x")],
    ),
    (a_call("pay", amount=1), "", [a_call("pay", amount=True), a_call("pay", amount="1")]),
]


@pytest.mark.parametrize(("covers", "rows"), [(True, COVERED), (False, NOT_COVERED)])
def test_what_a_yes_covers(covers: bool, rows: list[Any]) -> None:
    """TL-25: exactly what was asked, or what fits its pattern; of commands only plain ones."""
    for call, pattern, others in rows:
        yes = given(call, pattern)
        assert yes.covers(call, "/w", HERE), yes.text
        assert [each.args for each in others if yes.covers(each, "/w", HERE) != covers] == []


def test_all_else_has_to_be_as_it_was() -> None:
    """TL-25: the workspace, the sandbox, the tool; and never what requires a person."""
    call = command("make")
    yes = given(call)
    for workspace, grounds in [
        ("/other", HERE),
        (None, HERE),
        ("/w", replace(HERE, sandbox="landlock")),
        ("/w", replace(HERE, not_covered=("TCP",))),
        ("/w", replace(HERE, definition="other")),
    ]:
        assert not yes.covers(call, workspace, grounds)
    assert not yes.covers(replace(call, required=True), "/w", HERE)
    assert not yes.covers(replace(call, masked=True), "/w", HERE)


@pytest.mark.parametrize(
    ("call", "pattern"),
    [
        (command("pytest x; rm -rf /"), "pytest *"),
        (command("pytest > x"), "pytest *"),
        (command("A=1 pytest"), "pytest *"),
        (command("pytest x"), "pytest"),
        (command("pytest x"), "*"),
        (command("pytest x"), "py *"),
        (command("pytest x"), "pytest y *"),
        (command("pytest x"), "pytest ; *"),
        (a_call("pay", to="x"), "*"),
        (a_call("pay", to="x"), "amount=*"),
        (a_call("pay", to="x"), "to=x"),
        (a_call("pay", to="x"), "to=*, to"),
    ],
)
def test_a_pattern_has_to_fit_the_call_itself(call: ToolTask, pattern: str) -> None:
    """TL-25: what a shell expands, joins or redirects is only ever allowed exactly."""
    with pytest.raises(ValueError, match="pattern"):
        given(call, pattern)
    assert given(call).covers(call, "/w", HERE)


def test_those_of_workspaces_are_the_users_own_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TL-25: private, and listed; what is damaged, or not as it was written, allows nothing."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path))
    one, two = given(command("a")), given(command("b b"), "b *", at=2.0)
    for each in (two, one, one):
        keep_allowance(each)
    files = sorted((tmp_path / "trust/approvals").iterdir())

    assert workspace_allowances("/w") == (one, two)
    assert workspace_allowances("/other") == ()
    assert [each.stat().st_mode & 0o777 for each in files] == [0o600, 0o600]
    sound = (file := tmp_path / f"trust/approvals/{two.id}.json").read_text()
    widened = json.dumps({**json.loads(sound), "words": ["sh"]})
    (tmp_path / "trust/approvals/folder.json").mkdir()
    deep = "[" * 100_000
    for broken in ("", "[]", "{}", "null", deep, widened, sound.replace("/w", "/other")):
        file.write_text(broken)
        with pytest.raises(AllowancesDamaged, match=two.id):
            workspace_allowances("/w")
    file.write_text(sound)
    file.chmod(0o666)
    with pytest.raises(AllowancesDamaged, match="damaged"):
        workspace_allowances()
    assert revoke_allowance(two.id)
    assert not revoke_allowance("../" + one.id)
    assert not revoke_allowance("folder")
    assert workspace_allowances() == (one,)


def test_a_plain_line_is_one_command() -> None:
    """Quotes are read, everything else of a shell is none."""
    assert plain_words("a 'b c' \"d\"") == ("a", "b c", "d")
    assert {plain_words(each) for each in ("a;b", "$a", "a\nb", "A=1 b", "a*", "~", "")} == {()}
