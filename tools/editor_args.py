"""What the model gives the editor, described for the model."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Command = Literal["view", "create", "str_replace", "insert_at_line", "undo"]


class EditorArgs(BaseModel):
    """View, create and edit text files in the workspace.

    `view` shows a file with line numbers, or a directory two levels deep. `create` makes a new
    file and never overwrites one. `str_replace` replaces the only occurrence of old_str.
    `insert_at_line` puts lines after a line. `undo` takes back the last edit of the file. Line
    ends and encoding of a file stay as they are. A file that someone else changed since you viewed
    it must be viewed again before it can be edited.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: Command = Field(description="What to do.")
    path: str = Field(
        description="File or directory, relative to the workspace's root, whole: 'src/app/main.py'."
    )
    file_text: str | None = Field(
        default=None, description="For create: the whole content of the new file."
    )
    old_str: str | None = Field(
        default=None,
        description=(
            "For str_replace: the text to replace, copied exactly, white space included, without "
            "line numbers. It must occur exactly once: include lines around it to make it so."
        ),
    )
    new_str: str | None = Field(
        default=None,
        description="For str_replace: what to put in its place; empty to delete it.",
    )
    insert_line: int | None = Field(
        default=None,
        description="For insert_at_line: the line to insert after; 0 inserts before the first.",
    )
    insert_text: str | None = Field(
        default=None, description="For insert_at_line: the line or lines to insert."
    )
    view_range: list[int] | None = Field(
        default=None,
        min_length=2,
        max_length=2,
        description="For view of a file: first and last line, from 1; -1 as last is the end.",
    )
