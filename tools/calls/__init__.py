"""Calls: what the model may call, what its calls mean, whether they may run, and running each once.

The way of a call: an answer's calls are parsed and resolved against the visible tools (repaired
where that is certain), put under the policy and to people, run under the journal, and answered
with one result. ``policy`` and ``repair`` have doors of their own.
"""

from typing import TYPE_CHECKING

from daruma._doors import open_late

if TYPE_CHECKING:
    from daruma.tools.calls._answers import (
        audit_changes,
        call_audit,
        changes_of,
        limit_calls,
        storable_answer,
        unusable_answer,
    )
    from daruma.tools.calls._application_tool import ToolRefused, read_declaration, wrap_tool
    from daruma.tools.calls._approvals import (
        CALL_CHANGED,
        OpenApproval,
        after_decision,
        ask_once,
        ask_people,
        blocking_denial,
        changes_since,
        check_permission,
        commands_refusal,
        denial_text,
        endless_changes,
        open_approvals,
        policy_refusal,
        void_approval,
    )
    from daruma.tools.calls._journal import (
        Effect,
        Journal,
        JournalEntry,
        NoJournal,
        Outcome,
        Turns,
        snapshots_around,
    )
    from daruma.tools.calls._json_reader import Unreadable
    from daruma.tools.calls._langchain import ClassFunctions
    from daruma.tools.calls._mcp import is_mcp_tool, mcp_tools, open_mcp_tools
    from daruma.tools.calls._mcp_servers import Servers
    from daruma.tools.calls._model_repair import BrokenCalls, next_repair_round, repair_round
    from daruma.tools.calls._names import ToolNameConflictError, check_aliases, check_names
    from daruma.tools.calls._once import (
        UNKNOWN_OUTCOME,
        Work,
        call_effect,
        outcome_without_tool,
        run_once,
    )
    from daruma.tools.calls._parse import (
        SENT_CALLS_KEY,
        Call,
        calls_of,
        is_object,
        unstorable_part,
        with_own_ids,
        with_text_calls,
    )
    from daruma.tools.calls._path_advice import advise_paths, candidate_paths
    from daruma.tools.calls._registry import Registry
    from daruma.tools.calls._resolve import failed_task, resolve_call, resolve_calls
    from daruma.tools.calls._results import (
        END_REASON_KEYS,
        Outputs,
        OutputStore,
        ProcessOutputs,
        TextWithImages,
        approved_definitions,
        cut_off_reason,
        has_shortened_results,
        images_in,
        results_for_unanswered,
        shorten_output,
        storable_text,
        tool_result,
    )
    from daruma.tools.calls._running import ExactCalls, run_within, with_faults
    from daruma.tools.calls._schema import import_checks
    from daruma.tools.calls._tool import Args, Canonical, DateKind, Surroundings, Tool, shipped_tool
    from daruma.tools.calls._visible import VisibleTools, local_time, usable_tool_sets
else:
    __getattr__ = open_late(
        __name__,
        {
            "_answers": (
                "audit_changes call_audit changes_of limit_calls storable_answer unusable_answer"
            ),
            "_application_tool": "ToolRefused read_declaration wrap_tool",
            "_approvals": (
                "CALL_CHANGED OpenApproval after_decision ask_once ask_people "
                "blocking_denial changes_since check_permission commands_refusal "
                "denial_text endless_changes open_approvals policy_refusal void_approval"
            ),
            "_journal": "Effect Journal JournalEntry NoJournal Outcome Turns snapshots_around",
            "_json_reader": "Unreadable",
            "_langchain": "ClassFunctions",
            "_mcp": "is_mcp_tool mcp_tools open_mcp_tools",
            "_mcp_servers": "Servers",
            "_model_repair": "BrokenCalls next_repair_round repair_round",
            "_names": "ToolNameConflictError check_aliases check_names",
            "_once": "UNKNOWN_OUTCOME Work call_effect outcome_without_tool run_once",
            "_parse": (
                "Call SENT_CALLS_KEY calls_of is_object unstorable_part with_own_ids "
                "with_text_calls"
            ),
            "_path_advice": "advise_paths candidate_paths",
            "_registry": "Registry",
            "_resolve": "failed_task resolve_call resolve_calls",
            "_results": (
                "END_REASON_KEYS OutputStore Outputs ProcessOutputs TextWithImages "
                "approved_definitions cut_off_reason has_shortened_results images_in "
                "results_for_unanswered shorten_output storable_text tool_result"
            ),
            "_running": "ExactCalls run_within with_faults",
            "_schema": "import_checks",
            "_tool": "Args Canonical DateKind Surroundings Tool shipped_tool",
            "_visible": "VisibleTools local_time usable_tool_sets",
        },
    )

__all__ = [
    "CALL_CHANGED",
    "END_REASON_KEYS",
    "SENT_CALLS_KEY",
    "UNKNOWN_OUTCOME",
    "Args",
    "BrokenCalls",
    "Call",
    "Canonical",
    "ClassFunctions",
    "DateKind",
    "Effect",
    "ExactCalls",
    "Journal",
    "JournalEntry",
    "NoJournal",
    "OpenApproval",
    "Outcome",
    "OutputStore",
    "Outputs",
    "ProcessOutputs",
    "Registry",
    "Servers",
    "Surroundings",
    "TextWithImages",
    "Tool",
    "ToolNameConflictError",
    "ToolRefused",
    "Turns",
    "Unreadable",
    "VisibleTools",
    "Work",
    "advise_paths",
    "after_decision",
    "approved_definitions",
    "ask_once",
    "ask_people",
    "audit_changes",
    "blocking_denial",
    "call_audit",
    "call_effect",
    "calls_of",
    "candidate_paths",
    "changes_of",
    "changes_since",
    "check_aliases",
    "check_names",
    "check_permission",
    "commands_refusal",
    "cut_off_reason",
    "denial_text",
    "endless_changes",
    "failed_task",
    "has_shortened_results",
    "images_in",
    "import_checks",
    "is_mcp_tool",
    "is_object",
    "limit_calls",
    "local_time",
    "mcp_tools",
    "next_repair_round",
    "open_approvals",
    "open_mcp_tools",
    "outcome_without_tool",
    "policy_refusal",
    "read_declaration",
    "repair_round",
    "resolve_call",
    "resolve_calls",
    "results_for_unanswered",
    "run_once",
    "run_within",
    "shipped_tool",
    "shorten_output",
    "snapshots_around",
    "storable_answer",
    "storable_text",
    "tool_result",
    "unstorable_part",
    "unusable_answer",
    "usable_tool_sets",
    "void_approval",
    "with_faults",
    "with_own_ids",
    "with_text_calls",
    "wrap_tool",
]
