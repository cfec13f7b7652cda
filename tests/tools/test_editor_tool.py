"""The editor shows and edits files as the model is told that it does (ED-01 to ED-03)."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from daruma.tools.errors import EditRefused, FileChanged, FileUnavailable, PathRefused, ToolError
from daruma.tools.files import EditHistory, FilesBeneath, Workspace, list_entries
from daruma.tools.workspace_tools import EditorArgs, str_replace_editor

Run = Callable[..., Awaitable[str]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The workspace's directory, empty."""
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.fixture
def run(root: Path, tmp_path: Path) -> Run:
    """Run one command; each has a workspace and a history of its own, as a new process would."""

    def run(command: str, path: str, **args: object) -> Awaitable[str]:
        parsed = EditorArgs.model_validate({"command": command, "path": path, **args})
        return str_replace_editor(parsed, Workspace(root), EditHistory(tmp_path / "edits"))

    return run


WRITTEN = {
    "cp1251": ["# Настройки сервера\nпорт = 8080\n", "имя\tАнна\r\nгород\tТверь\r\n", "Ёлка и ель"],
    "koi8_r": ["Привет, мир!\nвторая строка\n", "файл не найден: проверьте путь\n"],
    "gb18030": [
        "你好,世界。\n这是一个测试文件\n",
        "# 配置文件\nname = 张三,请勿修改\n",
        "端口号:8080,请勿修改",
    ],
    "shift_jis": ["こんにちは、世界\nテスト用のファイルです\n"],
    "euc_kr": ["안녕하세요 세계\n이것은 시험 파일입니다\n"],
    "big5": ["這是一個繁體中文的測試檔案,請不要修改內容。\n"],
    "latin_1": ["Café crème, déjà vu\nnaïve\n", "für Löwen\n", "el niño comió\n"],
    "cp1252": ["“quoted” — déjà vu\n", "10 €\n"],
}
"""Texts of before Unicode, by what they are written in."""


@pytest.mark.parametrize("encoding", WRITTEN)
async def test_an_old_encoding_is_read_and_kept(encoding: str, run: Run, root: Path) -> None:
    """ED-03: byte for byte outside of the edit; what it can not hold is refused by its name."""
    for text in WRITTEN[encoding]:
        data = f"{text}= old\n".encode(encoding)
        (root / "f").write_bytes(data)

        viewed = await run("view", "f")
        assert text.splitlines()[0] in viewed.replace("\r", "")
        assert f"[written in {encoding}, which edits keep]" in viewed
        await run("str_replace", "f", old_str="= old", new_str="= new")
        assert (root / "f").read_bytes() == data.replace(b"= old", b"= new")
        await run("insert_at_line", "f", insert_line=0, insert_text=text.splitlines()[0])
        assert (root / "f").read_bytes().startswith(text.splitlines()[0].encode(encoding))
        await run("undo", "f")
        if encoding != "gb18030":  # it holds all of Unicode
            with pytest.raises(
                EditRefused, match=f"written in {encoding}, which has no '\U0001f600'"
            ):
                await run("str_replace", "f", old_str="= new", new_str="\U0001f600")
        assert (root / "f").read_bytes() == data.replace(b"= old", b"= new")
        (root / "f").unlink()


@pytest.mark.parametrize(
    "path", ["a/b/" + "n" * 300, "a/b/" + "n" * 300 + "/c", "a/.git/c", "a/b/HEAD"]
)
async def test_a_file_that_is_not_made_leaves_no_folders(path: str, run: Run, root: Path) -> None:
    """ED-01: those that lead to it go again; one that was there before stays."""
    (root / "before").mkdir()

    with pytest.raises(ToolError):
        await run("create", path, file_text="x" if "HEAD" not in path else "\0")
    with pytest.raises(ToolError):
        await run("create", f"before/{path}", file_text="x" if "HEAD" not in path else "\0")

    assert [each.path for each in list_entries(FilesBeneath(root), ".")] == ["before"]
    assert list_entries(FilesBeneath(root), "before") == []


async def test_more_undos_than_are_kept_are_refused_with_their_number(run: Run, root: Path) -> None:
    """ED-01: ten are; that there were more is said, and not that there was none."""
    (root / "f").write_text("0\n")
    for number in range(12):
        await run("str_replace", "f", old_str=f"{number}\n", new_str=f"{number + 1}\n")
    for _ in range(10):
        await run("undo", "f")

    with pytest.raises(EditRefused, match="no earlier edit can be undone: of a file the last 10"):
        await run("undo", "f")
    assert (root / "f").read_text() == "2\n"
    (root / "g").write_text("never edited")
    await run("view", "g")
    with pytest.raises(EditRefused, match="there is no edit to undo"):
        await run("undo", "g")


async def test_a_file_is_viewed_with_line_numbers(run: Run, root: Path) -> None:
    """As `cat -n` shows it, whole or in a range; -1 and numbers beyond the end mean the end."""
    (root / "f").write_bytes(b"one\r\ntwo\nthree")

    assert await run("view", "f") == "     1\tone\n     2\ttwo\n     3\tthree"
    assert await run("view", "f", view_range=[2, 2]) == "     2\ttwo"
    assert await run("view", "f", view_range=[3, -1]) == "     3\tthree"
    assert await run("view", "f", view_range=[2, 99]) == "     2\ttwo\n     3\tthree"


@pytest.mark.parametrize("view_range", [[0, 1], [3, 2], [4, 5], [4, -1]])
async def test_a_range_without_lines_is_refused(run: Run, root: Path, view_range: object) -> None:
    """The error says which lines there are."""
    (root / "f").write_text("1\n2\n3\n")

    with pytest.raises(EditRefused, match="lines 1 to 3"):
        await run("view", "f", view_range=view_range)


async def test_long_views_are_cut_and_say_so(run: Run, root: Path) -> None:
    """Neither a long line nor a long file floods the answer; the way on is named."""
    (root / "wide").write_text("x" * 3000 + "\n")
    (root / "long").write_text("some text\n" * 100_000)

    assert (await run("view", "wide")).endswith("[cut: 1000 more characters]")
    shown = await run("view", "long")
    assert len(shown) < 51_000
    number = int(shown.splitlines()[-2].split("\t")[0])
    assert shown.endswith(f"100000 lines in all; go on with view_range [{number + 1}, -1]]")


async def test_a_directory_is_viewed_two_levels_deep(run: Run, root: Path) -> None:
    """Whole relative paths; `.git` is left out, caches are not looked into."""
    for directory in ("a/b/c", ".git", "node_modules/x"):
        (root / directory).mkdir(parents=True)
    (root / "a" / "f.py").touch()
    (root / "link").symlink_to("a")

    assert (await run("view", ".")).splitlines() == [
        "a/",
        "a/b/",
        "a/f.py",
        "link@",
        "node_modules/",
    ]
    assert await run("view", "a/b/c") == "(an empty directory)"


async def test_many_entries_are_cut(run: Run, root: Path) -> None:
    """A directory with more than 500 entries is shown in part, and that is said."""
    for number in range(501):
        (root / str(number)).touch()

    lines = (await run("view", ".")).splitlines()
    assert len(lines) == 501
    assert lines[-1].startswith("[cut:")


async def test_create_writes_the_text_as_it_is(run: Run, root: Path) -> None:
    """No line end is added or changed; directories on the way are made."""
    said = await run("create", "a/b.txt", file_text="x\r\ny\nz é")

    assert (root / "a" / "b.txt").read_bytes() == "x\r\ny\nz é".encode()
    assert said == "Created a/b.txt, 9 bytes."


async def test_create_never_overwrites(run: Run, root: Path) -> None:
    """An existing file stays as it is (ED-01)."""
    (root / "f").write_text("kept")

    with pytest.raises(FileUnavailable, match="already exists"):
        await run("create", "f", file_text="x")
    assert (root / "f").read_text() == "kept"


async def test_str_replace_shows_what_it_did(run: Run, root: Path) -> None:
    """The answer holds the changed lines, numbered, with three around them."""
    (root / "f").write_text("".join(f"line {n}\n" for n in range(1, 21)))
    said = await run("str_replace", "f", old_str="line 10\n", new_str="ten\n10b\n")

    assert (root / "f").read_text().splitlines()[8:12] == ["line 9", "ten", "10b", "line 11"]
    assert said.splitlines()[1:4] == ["     7\tline 7", "     8\tline 8", "     9\tline 9"]
    assert said.splitlines()[4:6] == ["    10\tten", "    11\t10b"]
    assert len(said.splitlines()) <= 10


async def test_insert_at_line_takes_zero_to_the_last_line(run: Run, root: Path) -> None:
    """Before the first line and after the last (ED-01)."""
    (root / "f").write_text("b\n")
    await run("insert_at_line", "f", insert_line=0, insert_text="a")
    await run("insert_at_line", "f", insert_line=2, insert_text="c\n")

    assert (root / "f").read_text() == "a\nb\nc\n"
    with pytest.raises(EditRefused, match="from 0 to 3"):
        await run("insert_at_line", "f", insert_line=4, insert_text="x")


async def test_undo_takes_back_edits_one_by_one(run: Run, root: Path) -> None:
    """Byte for byte, mode included, down to the creation of the file."""
    await run("create", "f", file_text="a\r\nb")
    (root / "f").chmod(0o750)
    await run("str_replace", "f", old_str="a", new_str="x")
    await run("insert_at_line", "f", insert_line=2, insert_text="c")

    assert (root / "f").read_bytes() == b"x\r\nb\r\nc"
    assert "2 earlier edits" in await run("undo", "f")
    assert (root / "f").read_bytes() == b"x\r\nb"
    await run("undo", "f")
    assert (root / "f").read_bytes() == b"a\r\nb"
    assert (root / "f").stat().st_mode & 0o777 == 0o750
    assert "deleted again" in await run("undo", "f")
    assert not (root / "f").exists()


async def test_undo_never_takes_back_someone_elses_work(run: Run, root: Path) -> None:
    """When the file is no longer what the edit left, it stays as it is."""
    await run("create", "f", file_text="a")
    await run("str_replace", "f", old_str="a", new_str="b")
    (root / "f").write_text("by hand")

    with pytest.raises(FileChanged, match="not undone"):
        await run("undo", "f")
    assert (root / "f").read_text() == "by hand"


async def test_an_edit_that_is_undone_already_is_only_forgotten(run: Run, root: Path) -> None:
    """A crash before the write, or a hand, may have done it: the edit before stays."""
    await run("create", "f", file_text="a")
    await run("str_replace", "f", old_str="a", new_str="b")
    (root / "f").write_text("a")

    with pytest.raises(EditRefused, match="undone already"):
        await run("undo", "f")
    assert (root / "f").read_text() == "a"
    assert "deleted again" in await run("undo", "f")


async def test_a_file_changed_since_it_was_viewed_is_not_edited(run: Run, root: Path) -> None:
    """A human's edit is not overwritten; viewing it again makes the way free."""
    (root / "f").write_text("a\nb\n")
    await run("view", "f", view_range=[1, 1])
    (root / "f").write_text("a\nc\n")
    edit = {"old_str": "a", "new_str": "x"}

    with pytest.raises(FileChanged, match="view it again"):
        await run("str_replace", "f", **edit)
    assert (root / "f").read_text() == "a\nc\n"
    await run("view", "f")
    await run("str_replace", "f", **edit)
    assert (root / "f").read_text() == "x\nc\n"


async def test_parallel_edits_of_one_file_all_land(run: Run, root: Path) -> None:
    """Several calls of one answer run at once (TL-02): none overwrites another."""
    (root / "f").write_text("".join(f"<{n}>\n" for n in range(12)))
    edits = [run("str_replace", "f", old_str=f"<{n}>", new_str=f"[{n}]") for n in range(12)]
    await asyncio.gather(*edits)

    assert (root / "f").read_text() == "".join(f"[{n}]\n" for n in range(12))


async def test_a_link_shares_the_history_of_its_target(run: Run, root: Path) -> None:
    """An edit through an inner link can be undone by the file's own name."""
    (root / "real").write_text("a")
    (root / "link").symlink_to("real")
    await run("str_replace", "link", old_str="a", new_str="b")
    await run("undo", "real")

    assert (root / "real").read_text() == "a"
    assert (root / "link").is_symlink()


@pytest.mark.parametrize(
    ("command", "args"),
    [
        ("view", {}),
        ("str_replace", {"old_str": "a", "new_str": "b"}),
        ("insert_at_line", {"insert_line": 0, "insert_text": "b"}),
        ("undo", {}),
    ],
)
async def test_no_command_touches_what_is_no_text_inside(
    run: Run, root: Path, command: str, args: dict[str, object]
) -> None:
    """Binary, oversized, special and missing files, git's own, and what lies outside."""
    (root / "binary").write_bytes(b"a\0")
    (root / "damaged").write_bytes("für a".encode() + b"\xe9")
    (root / "huge").write_bytes(b"a" * (4 * 1024 * 1024 + 1))
    os.mkfifo(root / "fifo")
    (root / "out").symlink_to("/etc/hostname")

    for name in ("binary", "damaged", "huge", "fifo", "missing"):
        with pytest.raises(ToolError) as caught:
            await run(command, name, **args)
        assert "\n" not in str(caught.value)
    for name in ("out", "../x", "/etc/hostname", ".git/config"):
        with pytest.raises(PathRefused):
            await run(command, name, **args)


@pytest.mark.parametrize(
    ("command", "args", "missing"),
    [
        ("create", {}, "file_text"),
        ("str_replace", {"new_str": "x"}, "old_str"),
        ("str_replace", {"old_str": "x"}, "new_str"),
        ("insert_at_line", {"insert_text": "x"}, "insert_line"),
        ("insert_at_line", {"insert_line": 0}, "insert_text"),
    ],
)
async def test_a_missing_argument_is_named(
    run: Run, command: str, args: dict[str, object], missing: str
) -> None:
    """The model learns which argument the command needs."""
    with pytest.raises(EditRefused, match=f"{command} needs {missing}"):
        await run(command, "f", **args)


def test_the_schema_speaks_to_the_model() -> None:
    """Every argument is described; unknown ones are refused."""
    schema = EditorArgs.model_json_schema()

    assert all("description" in field for field in schema["properties"].values())
    assert "overwrites" in schema["description"]
    with pytest.raises(ValidationError):
        EditorArgs.model_validate({"command": "view", "path": "f", "content": "x"})


@pytest.mark.long
async def test_a_file_that_is_replaced_meanwhile_is_the_same_file(run: Run, root: Path) -> None:
    """Its history goes by its name, not by what the system calls what was there before."""
    (root / "f").write_text("".join(f"<{n}>\n" for n in range(100)))
    edits = [run("str_replace", "f", old_str=f"<{n}>", new_str=f"[{n}]") for n in range(100)]

    await asyncio.gather(*edits)

    assert (root / "f").read_text() == "".join(f"[{n}]\n" for n in range(100))
