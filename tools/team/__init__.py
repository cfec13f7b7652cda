"""Teams: experts from templates, a worktree for each member, and merging what they did.

A member works on a copy drawn from a snapshot; what it changed is merged into the workspace by
three ways, or reported as a conflict. A helper is a member that carries out a call of ``delegate``.
"""

from typing import TYPE_CHECKING

from daruma._doors import open_late
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

if TYPE_CHECKING:
    from daruma.tools.team._experts import (
        DELEGATE_TOOLS,
        Expert,
        Template,
        TemplateRefused,
        describe_report,
        expert_of,
        helper_settings,
        patch_of,
        settings_of,
        team_of,
        template_named,
    )
else:
    __getattr__ = open_late(
        __name__,
        {
            "_experts": (
                "DELEGATE_TOOLS Expert Template TemplateRefused describe_report expert_of "
                "helper_settings patch_of settings_of team_of template_named"
            ),
        },
    )

__all__ = [
    "DELEGATE_TOOLS",
    "Expert",
    "JoinOutcome",
    "MemberWorktree",
    "Template",
    "TemplateRefused",
    "WorktreeUnavailable",
    "check_settled",
    "clear_away",
    "describe_report",
    "expert_of",
    "helper_settings",
    "join_work",
    "make_worktree",
    "patch_of",
    "remove_worktree",
    "settings_of",
    "team_of",
    "template_named",
    "worktree_folder",
]
