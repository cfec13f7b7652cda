"""Teams: experts from templates, a worktree for each member, and merging what they did.

A member works on a copy drawn from a snapshot; what it changed is merged into the workspace by
three ways, or reported as a conflict.
"""

from daruma.tools.team._templates import (
    Expert,
    Template,
    TemplateRefused,
    settings_of,
    team_of,
    template_named,
)
from daruma.tools.team._worktree import (
    JoinOutcome,
    MemberWorktree,
    WorktreeUnavailable,
    check_settled,
    clear_away,
    join_work,
    make_worktree,
    remove_worktree,
    worktree_folder,
)

__all__ = [
    "Expert",
    "JoinOutcome",
    "MemberWorktree",
    "Template",
    "TemplateRefused",
    "WorktreeUnavailable",
    "check_settled",
    "clear_away",
    "join_work",
    "make_worktree",
    "remove_worktree",
    "settings_of",
    "team_of",
    "template_named",
    "worktree_folder",
]
