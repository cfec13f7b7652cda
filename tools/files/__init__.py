"""The workspace: files beneath one folder, opened without a race, edited to the byte.

Every path of a model is resolved beneath a root by ``FilesBeneath``. Beside it lie edits and their
history, the lock on a workspace, digests of trees, and git's repositories read without git. The
search runs as a process of its own, which needs only what the standard library has.
"""

from typing import TYPE_CHECKING

from daruma._doors import open_late
from daruma.tools.files._beneath import (
    CACHES,
    DIRECTORY,
    Answer,
    DirectoryEntry,
    FilesBeneath,
    Request,
    best_opener,
    closing_fd,
    list_entries,
    open_beneath,
    put_entry,
)
from daruma.tools.files._paths import (
    Glob,
    Parts,
    TextFile,
    add_own,
    own_around,
    own_in,
    parts_beneath,
    printable_path,
)
from daruma.tools.files._repository import (
    LARGEST_INDEX,
    Index,
    common_folder,
    content_of,
    is_repository,
    own_folder,
    read_index,
    repository_above,
)
from daruma.tools.files._tree import (
    FETCHED,
    MOST_NAMED,
    SETTLED,
    Listing,
    Tree,
    changes_between,
    file_status,
    is_lasting,
    list_tree,
    tree_of,
)

if TYPE_CHECKING:
    from daruma.tools.files._workspace import (
        EditedText,
        EditHistory,
        Workspace,
        aworkspace_locked,
        digest,
        edit_folder,
        insert_after,
        lines_of,
        replace_once,
        unix_newlines,
        workspace_locked,
    )
else:
    __getattr__ = open_late(
        __name__,
        {
            "_workspace": (
                "Workspace aworkspace_locked digest edit_folder EditHistory EditedText "
                "insert_after lines_of replace_once unix_newlines workspace_locked"
            )
        },
    )

__all__ = [
    "CACHES",
    "DIRECTORY",
    "FETCHED",
    "LARGEST_INDEX",
    "MOST_NAMED",
    "SETTLED",
    "Answer",
    "DirectoryEntry",
    "EditHistory",
    "EditedText",
    "FilesBeneath",
    "Glob",
    "Index",
    "Listing",
    "Parts",
    "Request",
    "TextFile",
    "Tree",
    "Workspace",
    "add_own",
    "aworkspace_locked",
    "best_opener",
    "changes_between",
    "closing_fd",
    "common_folder",
    "content_of",
    "digest",
    "edit_folder",
    "file_status",
    "insert_after",
    "is_lasting",
    "is_repository",
    "lines_of",
    "list_entries",
    "list_tree",
    "open_beneath",
    "own_around",
    "own_folder",
    "own_in",
    "parts_beneath",
    "printable_path",
    "put_entry",
    "read_index",
    "replace_once",
    "repository_above",
    "tree_of",
    "unix_newlines",
    "workspace_locked",
]
