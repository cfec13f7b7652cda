"""Who agrees to a recovery has seen all of it, and nothing that only looks like it."""

from typing import Any

from daruma.graph.command_line.output import Line
from daruma.graph.command_line.questions import recovery_lines
from daruma.state.recovery import RecoveryAction


def request(**changes: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"strategy": "retry", "confidence": 0.6} | changes
    return {"failure": "it fell over", "action": RecoveryAction(**given).to_dict()}


def test_all_of_a_recovery_is_shown() -> None:
    """RE-06: failure, strategy, tool, parameters, reasons and confidence."""
    lines = recovery_lines(
        request(
            strategy="alternative-tool",
            tool_name="brave_search",
            parameters={"query": "a\nb", "count": 5},
            reasoning="The other is down.",
            expected_outcome="Results.",
            escalation_message="May I?",
        )
    )

    assert lines == [
        Line("given", "it failed: it fell over"),
        Line("line", "alternative-tool", "brave_search"),
        Line("given", "query: 2 lines"),
        Line("payload", "a"),
        Line("payload", "b"),
        Line("given", "count: 5"),
        Line("given", "why: The other is down."),
        Line("given", "expected: Results."),
        Line("given", "to say: May I?"),
        Line("note", "confidence 0.60, chosen by model"),
    ]


def test_what_is_hidden_in_a_recovery_is_spelled() -> None:
    """TL-13: as in an approval; a parameter that is JSON text is not taken for a number."""
    lines = recovery_lines(request(parameters={"to\u202e": "x\u200by", "n": "5"}))

    assert Line("given", "to\\u202e: x\\u200by") in lines
    assert Line("given", 'n: "5"') in lines


def test_a_bare_recovery_has_three_lines() -> None:
    """Nothing stands there for what was not said."""
    assert len(recovery_lines(request())) == 3
