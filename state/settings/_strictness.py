"""Which settings anybody may change, which only towards the stricter, and which need trust.

One table serves a file that nobody has trusted yet (SE-02) and a client over HTTP (SE-03): neither
can weaken what holds without it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from daruma.state.settings._tools import PolicyRule, policy_key

FREE: Final = "free"
LOWER: Final = "lower"
HIGHER: Final = "higher"
FEWER: Final = "fewer"
POLICY: Final = "policy"
TRUST: Final = "trust"

STRICTNESS: Final[Mapping[str, str | tuple[object, ...]]] = {
    "mode": FREE,
    "llm.model": TRUST,
    "llm.auxiliary_model": TRUST,
    "llm.judge_model": TRUST,
    "llm.fallback_models": TRUST,
    "llm.embedding_model": TRUST,
    "llm.model_aliases": TRUST,
    "llm.prices": TRUST,  # a price of nothing lifts a budget in money
    "llm.context_window_tokens": LOWER,
    **{
        f"llm.options.{role}.{name}": rule
        for role in ("main", "auxiliary", "fallback", "judge")
        for name, rule in {
            "temperature": FREE,
            "effort": TRUST,  # it costs
            "max_tokens": LOWER,
            "base_url": TRUST,
            "extra": TRUST,
        }.items()
    },
    "llm.requests.per_model": LOWER,
    "llm.requests.per_call": LOWER,
    "llm.requests.wait_seconds": LOWER,
    "llm.requests.seconds": LOWER,
    "llm.requests.chunk_seconds": LOWER,
    "llm.requests.total_seconds": LOWER,
    "fallback_chain.enabled": (False, True),
    "fallback_chain.recovery.enabled": (True, False),
    "fallback_chain.recovery.max_retries": LOWER,
    "fallback_chain.recovery.observe_only": (False, True),
    "fallback_chain.recovery.execute_above": HIGHER,
    "fallback_chain.recovery.ask_above": HIGHER,
    "fallback_chain.recovery.wait_seconds": LOWER,
    "fallback_chain.recovery.ask": (True, None, False),  # a yes goes on beyond a budget
    "fallback_chain.emergency.enabled": (False, True),
    "fallback_chain.emergency.language": FREE,
    "fallback_chain.emergency.rules": TRUST,
    "budgets.preset": FREE,  # what it makes of the others is compared by their own keys
    "budgets.think": LOWER,
    "budgets.verify": LOWER,
    "budgets.reflect": LOWER,
    "budgets.max_steps": LOWER,
    "budgets.max_steps_per_turn": LOWER,
    "budgets.look": LOWER,
    "budgets.replan": LOWER,
    "budgets.tokens": LOWER,
    "budgets.usd": LOWER,
    "budgets.seconds": LOWER,
    "budgets.per_phase.tokens": LOWER,
    "budgets.per_phase.usd": LOWER,
    "budgets.per_phase.seconds": LOWER,
    "budgets.when_spent": ("ask", "stop"),
    "verification.enabled": (False, "auto", True),
    "verification.commands": TRUST,
    "verification.rubric": TRUST,  # it costs, and makes work count as checked
    "verification.max_reinjections": LOWER,
    "verification.timeout": LOWER,
    "rollback.default_timeout": LOWER,
    "rollback.snapshots": (False, True),
    "rollback.exclude": TRUST,
    "rollback.keep_days": TRUST,  # fewer days delete snapshots
    "spec_review.enabled": (False, True),
    "spec_review.timeout": LOWER,
    "team.template": FREE,
    "team.folders": TRUST,
    "team.max_parallel": LOWER,
    "team.delegate": (True, False),
    "tools.normalize_names": TRUST,
    "tools.name_aliases": TRUST,
    "tools.name_repair_attempts": LOWER,
    "tools.name_repair_max_visible_names": LOWER,
    "tools.name_repair_max_candidates": LOWER,
    "tools.call_repair_attempts": LOWER,
    "tools.call_repair_max_candidates": LOWER,
    "tools.call_repair_max_schema_bytes": LOWER,
    "tools.max_argument_bytes": LOWER,
    "tools.validate_schema": (False, True),
    "tools.max_calls_per_turn": LOWER,
    "tools.max_result_chars": LOWER,
    "tools.timeout": LOWER,
    "tools.in_doubt": ("tell", "ask"),
    "tools.read_only_first": (True, False),
    "tools.always": ("workspace", "thread", "never"),
    "tools.profile": (None, "read_only"),
    "tools.profiles": TRUST,
    "tools.mcp_servers": TRUST,
    "tools.toolsets": FEWER,
    "tools.time_zone": FREE,
    "tools.policy": POLICY,
    "memory.enabled": (True, False),
    "memory.search_limit": LOWER,
    "memory.namespace": TRUST,
    "skills.folders": TRUST,
    "instructions.files": FEWER,
    "instructions.max_chars": LOWER,
    "prompts": TRUST,
    "sandbox.require": ("none", None, "landlock", "namespace"),
    "sandbox.network": (True, False),
    "sandbox.memory_mb": LOWER,
    "sandbox.processes": LOWER,
    "hooks": TRUST,
    "notify.webhook": TRUST,
    "notify.command": TRUST,
    "notify.timeout": LOWER,
    "evolution.enabled": (True, False),
    "evolution.observe_only": (False, True),
    "evolution.success_sample_rate": LOWER,
    "evolution.min_confidence": HIGHER,
    "evolution.min_similarity": HIGHER,
    "evolution.min_examples": HIGHER,
    "evolution.max_concurrent": LOWER,
    "evolution.auxiliary": (True, False),
    "evolution.namespace": TRUST,
    "evolution.shared": (True, False),
    "evolution.keep_days": TRUST,  # fewer days delete experience
}
"""How each setting may be changed without trust.

``FREE`` in any way; ``LOWER`` and ``HIGHER`` as a number, null being no limit; ``FEWER`` by leaving
out; a tuple from the loosest value to the strictest; ``POLICY`` by rules that refuse or ask;
``TRUST`` not at all. A key that is missing here needs trust, and fails a test.
"""


@dataclass(frozen=True)
class Change:
    """A key that would be changed, and what it would be then, as JSON has it."""

    key: str
    value: Any


_MOST: Final = 8


def name_changes(changes: Iterable[Change]) -> str:
    """Return the keys of changes for an error's one line, each once; of many, the first."""
    keys = list(dict.fromkeys(each.key for each in changes))
    more = f" and {len(keys) - _MOST} more" if len(keys) > _MOST else ""
    return ", ".join(keys[:_MOST]) + more


def loosening_changes(before: BaseModel, after: BaseModel) -> list[Change]:
    """Return what ``after`` changes of ``before`` and is not free to change, nor stricter.

    Settings are compared by what holds in the end, presets included.
    """
    return [
        change
        for key, old, new in _leaves(before, after)
        if old != new
        for change in _loosened(key, STRICTNESS.get(key, TRUST), old, new)
    ]


def _leaves(before: BaseModel, after: BaseModel, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    for name in type(after).model_fields:
        old, new = getattr(before, name), getattr(after, name)
        if isinstance(new, BaseModel):
            yield from _leaves(old, new, f"{path}{name}.")
        else:
            yield f"{path}{name}", old, new


def _loosened(key: str, rule: object, old: Any, new: Any) -> Iterator[Change]:
    if isinstance(new, Mapping):  # named by the user: each name is looked at by itself
        for name in dict.fromkeys((*old, *new)):
            fits = rule == POLICY and _is_stricter_rule(name, old, new.get(name))
            if old.get(name) != new.get(name) and not fits:
                yield Change(f"{key}.{name}", _plain(new.get(name)))
    elif not _is_stricter(rule, old, new):
        yield Change(key, _plain(new))


def _is_stricter(rule: object, old: Any, new: Any) -> bool:
    if isinstance(rule, tuple):
        return old in rule and new in rule and rule.index(new) >= rule.index(old)
    if rule == LOWER:
        return new is not None and (old is None or new <= old)
    if rule == HIGHER:
        return bool(new >= old)
    if rule == FEWER:
        return set(new) <= set(old)
    return rule == FREE


def _is_stricter_rule(name: str, old: Mapping[str, Any], given: Any) -> bool:
    """Whether a rule of the policy can only refuse or ask where it did not before.

    One that denies wins against all others. One that asks takes the place of those that are less
    exact, and these may ask for more: so it is taken for a whole tool, where no pattern of names
    stands beside it.
    """
    if given is None:
        return False
    before, rule = _rule(old.get(name)), _rule(given)
    if before and (before.decision == "deny" or before.required):
        return False
    if rule.decision == "deny":
        return True
    key, others = policy_key(name), map(policy_key, old)
    plain = rule.decision == "confirm" and rule.in_doubt != "tell"
    return plain and key.bare and key.exact and all(each.exact for each in others)


def _rule(given: Any) -> Any:
    return PolicyRule.model_validate({"decision": given}) if isinstance(given, str) else given


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_unset=True)
    return [_plain(each) for each in value] if isinstance(value, tuple) else value
