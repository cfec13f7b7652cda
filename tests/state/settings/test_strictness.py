"""Every setting is free to change, only towards the stricter, or with trust (SE-02, SE-03)."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from pydantic import BaseModel

from daruma.state.settings import Settings, loosening_changes, merge_settings
from daruma.state.settings._trust import FEWER, FREE, HIGHER, LOWER, POLICY, STRICTNESS, TRUST


def leaves(model: type[BaseModel], path: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        kind: Any = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from leaves(kind, f"{path}{name}.")
        else:
            yield f"{path}{name}"


def test_every_setting_is_in_the_table() -> None:
    """A new one is sorted when it is made, and one that is gone leaves the table."""
    assert {*STRICTNESS} == {*leaves(Settings)}


def test_every_rule_is_one_that_there_is() -> None:
    """A tuple goes through all that its setting may be, but for names."""
    words = {FREE, LOWER, HIGHER, FEWER, POLICY, TRUST}
    default = Settings()

    for key, rule in STRICTNESS.items():
        assert isinstance(rule, tuple) or rule in words, key
        if isinstance(rule, tuple):
            value: Any = default
            for part in key.split("."):
                value = getattr(value, part)
            assert value in rule, key


RUNS_WEAKENS_OR_OPENS = {
    "llm.model": {"llm": {"model": "openai:x"}},
    "llm.auxiliary_model": {"llm": {"auxiliary_model": "openai:x"}},
    "llm.fallback_models": {"llm": {"fallback_models": ["openai:x"]}},
    "llm.embedding_model": {"llm": {"embedding_model": "openai:x"}},
    "llm.model_aliases.a": {"llm": {"model_aliases": {"a": "openai:x"}}},
    "llm.prices.x": {"llm": {"prices": {"x": {"input": 0, "output": 0}}}},
    "llm.options.main.base_url": {"llm": {"options": {"main": {"base_url": "http://x"}}}},
    "llm.options.auxiliary.effort": {"llm": {"options": {"auxiliary": {"effort": "high"}}}},
    "llm.options.fallback.extra.seed": {"llm": {"options": {"fallback": {"extra": {"seed": 1}}}}},
    "llm.requests.seconds": {"llm": {"requests": {"seconds": 9999}}},
    "budgets.max_steps": {"budgets": {"max_steps": 51}},
    "verification.enabled": {"verification": {"enabled": False}},
    "verification.commands": {"verification": {"commands": ["true"]}},
    "verification.timeout": {"verification": {"timeout": 301}},
    "rollback.snapshots": {"rollback": {"snapshots": False}},
    "rollback.exclude": {"rollback": {"exclude": ["*"]}},
    "rollback.keep_days": {"rollback": {"keep_days": 1}},
    "spec_review.enabled": {"spec_review": {"enabled": False}},
    "team.folders": {"team": {"folders": ["teams"]}},
    "tools.mcp_servers.x": {"tools": {"mcp_servers": {"x": {"command": ["x"]}}}},
    "tools.policy.run_command": {"tools": {"policy": {"run_command": "allow"}}},
    "tools.policy.run_*": {"tools": {"policy": {"run_*": "confirm"}}},
    "tools.policy.pay": {"tools": {"policy": {"pay": {"decision": "confirm", "in_doubt": "tell"}}}},
    "tools.timeout": {"tools": {"timeout": None}},
    "tools.toolsets": {"tools": {"toolsets": ["assistant"]}},
    "tools.in_doubt": {"tools": {"in_doubt": "tell"}},
    "skills.folders": {"skills": {"folders": ["skills"]}},
    "prompts.x": {"prompts": {"x": {"text": "Obey."}}},
    "sandbox.require": {"sandbox": {"require": "none"}},
    "sandbox.network": {"sandbox": {"network": True}},
    "sandbox.memory_mb": {"sandbox": {"memory_mb": 8192}},
    "memory.namespace": {"memory": {"namespace": "another's"}},
    "evolution.observe_only": {"evolution": {"observe_only": False}},
    "evolution.namespace": {"evolution": {"namespace": "another's"}},
    "fallback_chain.recovery.execute_above": {
        "fallback_chain": {"recovery": {"execute_above": 0.1}}
    },
    "fallback_chain.emergency.rules.timeout": {
        "fallback_chain": {"emergency": {"rules": {"timeout": {"suggestions": ["curl x | sh"]}}}}
    },
}


@pytest.mark.parametrize("key", RUNS_WEAKENS_OR_OPENS)
def test_what_runs_weakens_or_opens_is_named(key: str) -> None:
    """By its key, and by the name under it where the user gives names."""
    found = loosening_changes(Settings(), Settings.model_validate(RUNS_WEAKENS_OR_OPENS[key]))

    assert [each.key for each in found] == [key]


HARMLESS = [
    {"mode": "plan_exec"},
    {"budgets": {"preset": "frugal"}},
    {"budgets": {"max_steps": 3, "tokens": 1000, "when_spent": "stop"}},
    {"verification": {"enabled": True, "timeout": 10}},
    {"fallback_chain": {"emergency": {"language": "zh"}, "recovery": {"max_retries": 0}}},
    {"tools": {"policy": {"run_command": "deny", "pay": "confirm"}, "time_zone": "Asia/Tokyo"}},
    {"tools": {"policy": {"pay_*": "deny"}, "timeout": 5, "profile": "read_only"}},
    {"sandbox": {"require": "namespace", "memory_mb": 512}},
    {"evolution": {"enabled": False}, "memory": {"enabled": False, "search_limit": 1}},
    {"sandbox": {"require": None}, "spec_review": {"enabled": True}},
]


@pytest.mark.parametrize("given", HARMLESS)
def test_what_is_stricter_or_no_matter_is_free(given: dict[str, Any]) -> None:
    """So is what says no more than the default does."""
    assert loosening_changes(Settings(), Settings.model_validate(given)) == []


OWN: dict[str, Any] = {
    "budgets": {"preset": "frugal", "max_steps": 5},
    "sandbox": {"require": "namespace"},
    "tools": {
        "policy": {
            "run_command": {"decision": "confirm", "required": True},
            "run_command(git push *)": "deny",
            "pay_*": {"decision": "confirm", "required": True},
        },
        "toolsets": ["assistant", "knowledge"],
    },
}
AGAINST_OWN: list[tuple[dict[str, Any], list[str]]] = [
    ({"budgets": {"preset": "work"}}, ["budgets.think", "budgets.verify", "budgets.reflect"]),
    ({"budgets": {"max_steps": 6}}, ["budgets.max_steps"]),
    ({"sandbox": {"require": "landlock"}}, ["sandbox.require"]),
    ({"sandbox": {"require": None}}, ["sandbox.require"]),
    ({"tools": {"toolsets": ["assistant"]}}, []),
    ({"tools": {"policy": {"run_command": "confirm"}}}, ["tools.policy.run_command"]),
    ({"tools": {"policy": {"pay_now": "confirm"}}}, ["tools.policy.pay_now"]),
    ({"tools": {"policy": {"pay_now": "deny"}}}, []),
    (
        {"tools": {"policy": {"run_command(git push *)": "confirm"}}},
        ["tools.policy.run_command(git push *)"],
    ),
]


@pytest.mark.parametrize(("given", "named"), AGAINST_OWN)
def test_what_is_stricter_is_measured_on_what_holds(given: dict[str, Any], named: Any) -> None:
    """A default is looser than settings of one's own; a preset is what it makes of the others."""
    own = Settings.model_validate(OWN)
    found = [
        each.key
        for each in loosening_changes(own, Settings.model_validate(merge_settings(OWN, given)))
    ]

    assert found[: len(named)] == named
    assert bool(found) is bool(named)


DOUBT: dict[str, Any] = {"decision": "confirm", "in_doubt": "ask"}
ORDERS: list[list[Any]] = [
    ["allow", "confirm", {"decision": "confirm", "required": True}, "deny"],
    [DOUBT | {"in_doubt": "tell"}, "confirm", DOUBT, "deny"],
]
"""Rules of the policy, each from the loosest to the strictest."""


@pytest.mark.parametrize("order", ORDERS)
def test_a_rule_may_be_changed_for_one_that_is_as_strict_or_stricter(order: list[Any]) -> None:
    """SE-03: and for no other; also where it is written out in the place of one word."""

    def policy(rule: Any) -> Settings:
        return Settings.model_validate({"tools": {"policy": {"pay": rule}}})

    for (stands, before), (place, rule) in product(enumerate(order), repeat=2):
        given = {"decision": rule} if isinstance(rule, str) else rule
        found = loosening_changes(policy(before), policy(given))

        assert bool(found) is (place < stands), (before, rule)
