"""The tool that views and edits text files of the workspace."""

from collections.abc import Callable
from typing import Final, TypeVar

from daruma.tools.editor_args import Command, EditorArgs
from daruma.tools.errors import EditRefused, FileChanged
from daruma.tools.files.edit_history import EditHistory
from daruma.tools.files.file_history import digest
from daruma.tools.files.files_beneath import FilesBeneath
from daruma.tools.files.paths import shown
from daruma.tools.files.text_edit import Edited, insert_after, replace_once
from daruma.tools.files.text_file import TextFile
from daruma.tools.files.threads import in_thread
from daruma.tools.files.workspace import Workspace
from daruma.tools.view import numbered, snippet, tree

__all__ = ["EditorArgs", "str_replace_editor"]

T = TypeVar("T")


async def str_replace_editor(args: EditorArgs, workspace: Workspace, history: EditHistory) -> str:
    """Carry out one command and tell the model the outcome. Raises ToolError."""
    return await in_thread(COMMANDS[args.command], args, workspace.files, history)


def _view(args: EditorArgs, files: FilesBeneath, history: EditHistory) -> str:
    if files.is_directory(args.path):
        return tree(files, args.path)
    with history.of(files.root, files.locate(args.path)) as past:
        data = files.read(args.path)
        shown_lines = numbered(TextFile.of(data, args.path).text, args.view_range)
        past.saw(data)
    return shown_lines


def _create(args: EditorArgs, files: FilesBeneath, history: EditHistory) -> str:
    text = _given(args.file_text, "file_text", args)
    data = TextFile("").with_text(text)
    files.create(args.path, data)
    with history.of(files.root, files.locate(args.path)) as past, past.edit(None, data):
        return f"Created {shown(args.path)}, {len(data)} bytes."


def _str_replace(args: EditorArgs, files: FilesBeneath, history: EditHistory) -> str:
    old, new = _given(args.old_str, "old_str", args), _given(args.new_str, "new_str", args)
    return _edit(args.path, files, history, lambda text: replace_once(text, old, new))


def _insert(args: EditorArgs, files: FilesBeneath, history: EditHistory) -> str:
    line = _given(args.insert_line, "insert_line", args)
    addition = _given(args.insert_text, "insert_text", args)
    return _edit(args.path, files, history, lambda text: insert_after(text, line, addition))


def _edit(
    path: str, files: FilesBeneath, history: EditHistory, change: Callable[[str], Edited]
) -> str:
    with history.of(files.root, files.locate(path)) as past:
        before = files.read(path)
        past.refuse_if_changed(before)
        file = TextFile.of(before, path)
        edited = change(file.text)
        after = file.with_text(edited.text)
        with past.edit(before, after):
            files.replace(path, after)
    return f"Edited {shown(path)}:\n{snippet(edited)}"


def _undo(args: EditorArgs, files: FilesBeneath, history: EditHistory) -> str:
    path = args.path
    with history.of(files.root, files.locate(path)) as past:
        edit, now = past.last(), digest(files.read(path))
        if now == edit.before:
            past.drop_last()
            raise EditRefused(f"{shown(path)}: its last edit is undone already; it was not changed")
        if now != edit.after:
            raise FileChanged(
                f"{shown(path)}: no longer what the last edit left: it was not undone"
            )
        if edit.before is None:
            files.delete(path)
        else:
            files.replace(path, past.content_before(edit))
        left = past.drop_last()
    did = "deleted again, as it was new" if edit.before is None else "as before its last edit"
    return f"{shown(path)} is {did}; {left} earlier edits can be undone."


def _given(value: T | None, name: str, args: EditorArgs) -> T:
    if value is None:
        raise EditRefused(f"{args.command} needs {name}")
    return value


COMMANDS: Final[dict[Command, Callable[[EditorArgs, FilesBeneath, EditHistory], str]]] = {
    "view": _view,
    "create": _create,
    "str_replace": _str_replace,
    "insert_at_line": _insert,
    "undo": _undo,
}
