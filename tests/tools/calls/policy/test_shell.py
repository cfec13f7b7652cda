"""Which lines are plainly a command that a rule names, and which may run it."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from daruma.state.settings import policy_key
from daruma.tools.calls.policy import is_one_command
from daruma.tools.calls.policy._shell import may_run

PUSH = policy_key("run_command(git push *)")
REMOVE = policy_key("run_command(rm -rf *)")


def test_one_simple_command_is_plainly_what_its_words_say() -> None:
    """A prefix without a star names the whole command; the shell must have nothing to do."""
    for key, line, plainly in [
        ("git push *", "git push", True),
        ("git push *", "git push origin 'my branch' \"x\"", True),
        ("git push", "git push", True),
        ("git push", "git push origin", False),
        ("npm run test:*", "npm run test:unit", True),
        ("git diff *", "git diff HEAD~1 HEAD^ -- src/a.py", True),
        ("git commit *", "git commit -m 'a; b $(c) | d'", True),
        ("git *", "/usr/bin/git push", False),
        ("git *", "git  'push", False),
        ("cat docs/*", "cat docs/a/b", True),
        ("cat docs/*", "cat docs/../../x", False),
        ("cat docs/*", "cat docs/..", False),
        ("cat *", "cat ../x", True),
        ("tool --in=docs/*", "tool --in=docs/a/../../x", False),
        ("cat ../docs/*", "cat ../docs/a", True),
        ("cat ../docs/*", "cat ../docs/../a", False),
        ("git diff *..*", "git diff a..b", True),
        ("*", "X=1 git push", False),
        ("*", "", False),
        *(("*", f"git {bad} x", False) for bad in ";&|<>()$`\\*?[]{}#!~\n\r\0\x1b"),
        ("*", 'git "$x"', False),
        ("*", "cat <<X", False),
    ]:
        assert is_one_command(line, policy_key(f"run_command({key})")) is plainly


RUN_IT = [
    "git push", "git\tpush origin", "g''it pu\\sh", '"git" push', "/usr/bin/git push", "GIT push",
    "git -C x push", "git --no-pager -c a=b push", "cd x && git push", "cd x;git push",
    "ls | git push", "ls & git push", "ls\ngit push", "git \\\npush", "(git push)", "{ git push; }",
    "if true; then git push; fi", "for f in a b; do git push; done", "! git push",
    "echo $(git push)", 'echo "$(git push)"', 'echo "a `git push` b"', "cat <(git push)",
    "X=1 Y=2 git push", "env X=1 git push", "sudo -u bob git push", "nohup git push &",
    "ls | xargs git push", "time -p git push", "timeout 5 git push", "exec git push",
    "sh -c 'git push'", 'bash -lc "cd x; git push"', "sh -c \"sh -c 'git push'\"",
    "find . -exec sh -c 'git push' \\;", "eval git '\"push\"'", "env -S 'git push'", ". git push",
    "/usr/lib/git-core/git-push x", "/opt/a-b/git push", "prlimit git push", "uv run git push",
    "env '-Sgit push'", "env --split-string='git push'", "su -c'git push'",
    "sg g 'git push'", "script -qc'git push' x", "xargs -I% sudo git push %",
    "nice env '-Sgit push'",
    "rbash -c 'git push'", "tcsh -c 'git push'", "fish -c 'git push'", "csh -c git\\ push",
    "x86_64 git push", "setarch -R git push", "i386 git push", "linux64 git push",
    "/lib64/ld-linux-x86-64.so.2 /usr/bin/git push", "choom -n 0 -- git push", "ld.so git push",
    "valgrind -q git push", "gdb --args git push", "perf stat git push", "xvfb-run git push",
    "tmux new -d 'git push'", "screen -dm git push", "hyperfine 'git push'", "entr -s 'git push'",
    "git submodule foreach git push", "git submodule foreach --recursive 'git push || :'",
    "git bisect run git push", "git rebase -x 'git push' main", "git rebase --exec='git push' a",
    "nice git submodule foreach 'git push'", "git filter-branch --tree-filter 'git push'",
    "npm exec -- git push", "npm exec -c 'git push'", "pnpm dlx git push", "yarn exec git push",
    "bun x git push", "conda run -n a git push", "bundle exec git push", "ip netns exec a git push",
    ">f git push", "git >f push", "git 2>f push", "2>&1 git push", "f() { git push; }; f",
]  # fmt: skip

UNCLEAR = [
    "$X push", "git $X", "git${IFS}push", "g?t push", "{git,push}", "git 'push", "cat <<X",
    "x &> f", "echo git push | sh", "sh -s x", "alias g=git", "case x in a) git push;; esac",
    "echo a)",
    "{v}>f git push", "echo $'a'", "sh -c 'sh -c \"sh -c \\\"sh -c x\\\"\"'", "ls \x1b", "ls \0",
    "a " * 20_000, "nohup " * 400,
    "echo git push | env bash", "echo git push | sudo -u x sh", "echo git push | exec nice bash",
    "echo git push | bash -o pipefail", "echo git push | bash +x", "echo git push | sh /dev/stdin",
    "sh /dev/fd/3 3<x", "echo git push | . /dev/stdin", "echo git push | source /proc/self/fd/0",
    "bash --rcfile /dev/stdin -i", "echo push | xargs git", "echo git push | xargs env",
    "echo git push | xargs -0 sh -c", "echo git push | xargs sh", "parallel git ::: push",
    "parallel ::: 'git push'", "xargs -I% git %", "echo git push | xargs nice",
    "ls | xargs -a f git",
    "hash -p /usr/bin/git g; g push", "git push -f | at now", "echo git push | at now",
    "git -c alias.p=push p", "git -calias.p='!git push' p", "nice git -c Alias.p=push p",
    "echo git push | tcsh", "echo git push | rbash", 'echo "`a \\"b\\"`"', 'echo "a"#b; git push',
]  # fmt: skip


def test_a_command_is_seen_wherever_it_hides() -> None:
    """Behind others, in quotes, after assignments and options, through programs that start it.

    A line that can not be read may run anything: a denial fails closed.
    """
    for line in (*RUN_IT, *UNCLEAR):
        assert may_run(line, PUSH)


def test_other_lines_are_left_alone() -> None:
    """A denial of one command does not forbid the shell."""
    for line in [
        "git status",
        "git add *.py",
        "git commit -m 'git push'",
        "echo git push",
        "ls # git push",
        'echo "git push"',
        "[ -f x ] && ls",
        "for f in *.py; do python $f; done",
        "echo don\\'t",
        "pytest 2>&1 | tail -5",
        "find . -name '*.py' -exec wc -l {} \\;",
        'a=$(ls) && echo "$a"',
        "pip install -e .[dev]",
        "echo ${x:-y} ${#x}",
        "sh run.sh",
        "timeout 5 pytest -x",
        "command -v bash",
        "ls | xargs git add",
        "ls | xargs grep -l x",
        "xargs -n1 wc -l",
        "ls | parallel wc -l",
        "env X=1 pytest -x",
        "sudo -u bob ls -l",
        "bash -x run.sh",
        "bash -o pipefail run.sh",
        "env pytest --co",
        "bash -c 'ls -l'",
        "git rebase main",
        "git rebase -x 'pytest && git status' main",
        "git submodule foreach git status",
        "git -c user.name='A B' commit -m 'git push'",
        "git add alias.py",
        "git config --get alias.push",
        "npm exec -- eslint .",
        "npm install x",
        "valgrind ./a.out",
        "tmux new -d 'make test'",
        "mkdir -p a && cd a",
        "if [[ -f $X ]]; then echo $Y; fi",
        "",
    ]:
        assert not may_run(line, PUSH)


def test_options_are_the_same_in_any_order() -> None:
    """Short ones may stand together, apart or spelled out."""
    for line, held in [
        ("rm -rf x", True),
        ("rm -r -f x", True),
        ("rm -vfr x", True),
        ("rm x -rf", True),
        ("rm --recursive --force x", True),
        ("rm -$X x", True),
        ("rm -r x", False),
        ("rm x", False),
        ("ls -rf", False),
    ]:
        assert may_run(line, REMOVE) is held


def test_options_hide_no_word() -> None:
    """Glued, shortened, or with a value that looks like the word; a denial needs no star."""
    for key, line in [
        ("python3 -m pip *", "python3 -mpip install x"),
        ("git push --force *", "git push origin --forc"),
        ("git push --force *", "git push --force=yes"),
        ("git push *", "git -c push push x"),
        ("git commit *", "git -C push commit"),
        ("git push", "git push origin"),
        ("kill 9 *", 'kill "9">f'),
        ("*", "anything"),
    ]:
        assert may_run(line, policy_key(f"run_command({key})"))


FAKE_GIT = """#!/bin/sh
while :; do case "$1" in -c|-C) shift 2 || exit;; -*) shift;; *) break;; esac; done
[ "$1" = push ] && : > "$MARK"
exit 0
"""
PIECES = st.sampled_from([
    "git", "push", "git push", "gi", "t", "'", '"', "\\", "\n", " ", " ", " ", ";", "&&", "|", "&",
    "(", ")", "{", "}", "$(", "`", "$", "${", "<", ">", "2>", "#", "echo ", "X=1 ", "eval ", "-C ",
    "sh -c ", "if ", "then ", "fi", "do ", "in ", "case ", "!", "=", "x=git", "$x", "'git push'",
    "$'", "&>", "f() {", "exec ", ".", "\\\n", "\t",
])  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(PIECES, min_size=1, max_size=9).map("".join))
@example('echo `echo \\"; git push \\"`')
@example("echo a#'\ngit push #'")
@example('git "2">f push')
def test_what_a_real_shell_runs_was_seen(
    tmp_path_factory: pytest.TempPathFactory, line: str
) -> None:
    """Lines of all sorts are given to ``/bin/sh`` with a ``git`` that tells of a push."""
    if may_run(line, PUSH) or "\0" in line:
        return
    folder = tmp_path_factory.mktemp("shell")
    git = folder / "git"
    git.write_text(FAKE_GIT)
    git.chmod(0o755)
    (folder / "sh").symlink_to(Path("/bin/sh").resolve())

    subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=folder,
        env={"PATH": str(folder), "MARK": str(folder / "pushed")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=10,
    )

    assert not (folder / "pushed").exists()
