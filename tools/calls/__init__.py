"""Calls: what the model may call, what its calls mean, whether they may run, and running each once.

The way of a call: an answer's calls are parsed and resolved against the visible tools (repaired
where that is certain: TL-09, TL-10), put under the policy and to people, run under the journal, and
answered with one result. ``policy`` has a door of its own.
"""

from typing import TYPE_CHECKING

from daruma._doors import open_late

if TYPE_CHECKING:
    from daruma.tools.calls._answers import (
        ResponseFormat,
        audit_answer,
        calls_of,
        keep_sent_calls,
        storable_answer,
        unusable_answer,
        with_reasoning_apart,
    )
    from daruma.tools.calls._approvals import (
        OpenApproval,
        Opened,
        allowances_in_force,
        apply_decision,
        blocking_denial,
        check_permission,
        commands_refusal,
        denial_text,
        open_approvals,
        policy_refusal,
        void_approval,
    )
    from daruma.tools.calls._journal import (
        WorkspaceTurns,
        ask_outcome,
        call_effect,
        outcome_without_tool,
        run_once,
        snapshots_around,
    )
    from daruma.tools.calls._langchain import OriginalMethods, ToolRefused, foreign_tool, wrap_tool
    from daruma.tools.calls._mcp import mcp_tools, open_mcp_tools
    from daruma.tools.calls._mcp_servers import McpServers, resolve_program
    from daruma.tools.calls._registry import Registry
    from daruma.tools.calls._repair import read_object, strip_fence
    from daruma.tools.calls._resolve import (
        BrokenCalls,
        read_answer,
        repair_round,
        resolve_calls,
        with_arguments,
    )
    from daruma.tools.calls._results import (
        Effect,
        Journal,
        JournalEntry,
        NoJournal,
        Outcome,
        Outputs,
        OutputStore,
        ProcessOutputs,
        results_for_unanswered,
        tool_result,
    )
    from daruma.tools.calls._running import ExactCalls, run_with_timeout, with_faults
    from daruma.tools.calls._schema import import_schema_checks
    from daruma.tools.calls._tool import (
        Canonical,
        Surroundings,
        Tool,
        ToolArgs,
        ToolNameConflictError,
        VisibleTools,
        check_names,
        shipped_tool,
    )
else:
    __getattr__ = open_late(
        __name__,
        {
            "_answers": (
                "ResponseFormat audit_answer calls_of keep_sent_calls storable_answer "
                "unusable_answer with_reasoning_apart"
            ),
            "_approvals": (
                "OpenApproval Opened allowances_in_force apply_decision blocking_denial "
                "check_permission commands_refusal denial_text open_approvals policy_refusal "
                "void_approval"
            ),
            "_journal": (
                "WorkspaceTurns ask_outcome call_effect outcome_without_tool run_once "
                "snapshots_around"
            ),
            "_langchain": "OriginalMethods ToolRefused foreign_tool wrap_tool",
            "_mcp": "mcp_tools open_mcp_tools",
            "_mcp_servers": "McpServers resolve_program",
            "_registry": "Registry",
            "_repair": "read_object strip_fence",
            "_resolve": "BrokenCalls read_answer repair_round resolve_calls with_arguments",
            "_results": (
                "Effect Journal JournalEntry NoJournal Outcome OutputStore Outputs ProcessOutputs "
                "results_for_unanswered tool_result"
            ),
            "_running": "ExactCalls run_with_timeout with_faults",
            "_schema": "import_schema_checks",
            "_tool": (
                "Canonical Surroundings Tool ToolArgs ToolNameConflictError VisibleTools "
                "check_names shipped_tool"
            ),
        },
    )

__all__ = [
    "BrokenCalls",
    "Canonical",
    "Effect",
    "ExactCalls",
    "Journal",
    "JournalEntry",
    "McpServers",
    "NoJournal",
    "OpenApproval",
    "Opened",
    "OriginalMethods",
    "Outcome",
    "OutputStore",
    "Outputs",
    "ProcessOutputs",
    "Registry",
    "ResponseFormat",
    "Surroundings",
    "Tool",
    "ToolArgs",
    "ToolNameConflictError",
    "ToolRefused",
    "VisibleTools",
    "WorkspaceTurns",
    "allowances_in_force",
    "apply_decision",
    "ask_outcome",
    "audit_answer",
    "blocking_denial",
    "call_effect",
    "calls_of",
    "check_names",
    "check_permission",
    "commands_refusal",
    "denial_text",
    "foreign_tool",
    "import_schema_checks",
    "keep_sent_calls",
    "mcp_tools",
    "open_approvals",
    "open_mcp_tools",
    "outcome_without_tool",
    "policy_refusal",
    "read_answer",
    "read_object",
    "repair_round",
    "resolve_calls",
    "resolve_program",
    "results_for_unanswered",
    "run_once",
    "run_with_timeout",
    "shipped_tool",
    "snapshots_around",
    "storable_answer",
    "strip_fence",
    "tool_result",
    "unusable_answer",
    "void_approval",
    "with_arguments",
    "with_faults",
    "with_reasoning_apart",
    "wrap_tool",
]
