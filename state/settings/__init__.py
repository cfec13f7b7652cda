"""Every setting and its default: the graph's context schema, and what ``daruma.yaml`` may hold.

``Settings.load`` reads the file and ``DARUMA_*`` variables. A value that can not be used is one
clear ``SettingsError``; a file that weakens what holds without it is ``UntrustedSettings`` until a
person has agreed to it (SE-02).
"""

from typing import TYPE_CHECKING

from daruma._doors import open_late

if TYPE_CHECKING:
    from daruma.state.settings._sections import (
        LLM,
        EmergencyRule,
        Evolution,
        FallbackChain,
        HookCommand,
        HookPoint,
        Memory,
        ModelOptions,
        ModelPrice,
        Notify,
        ProjectInstructions,
        PromptPiece,
        Recovery,
        Requests,
        RoleOptions,
        Skills,
        Spendable,
        Team,
    )
    from daruma.state.settings._settings import (
        SCHEMA,
        Sandbox,
        Settings,
        settings_schema,
        values_in_force,
    )
    from daruma.state.settings._sources import (
        SETTINGS_FILE,
        SettingsError,
        SettingsKey,
        merge_settings,
        sections,
        settings_keys,
    )
    from daruma.state.settings._tools import (
        SHELL_TOOL,
        McpServer,
        PolicyKey,
        PolicyRule,
        Tools,
        policy_key,
    )
    from daruma.state.settings._trust import (
        UntrustedSettings,
        is_trusted_text,
        loosening_changes,
        name_changes,
        propose_trust,
        trust_records,
        withdraw_trust,
    )
else:
    __getattr__ = open_late(
        __name__,
        {
            "_sections": (
                "EmergencyRule Evolution FallbackChain HookCommand HookPoint LLM Memory "
                "ModelOptions ModelPrice Notify ProjectInstructions PromptPiece Recovery "
                "Requests RoleOptions Skills Spendable Team"
            ),
            "_settings": "SCHEMA Sandbox Settings settings_schema values_in_force",
            "_sources": (
                "merge_settings sections SETTINGS_FILE settings_keys SettingsError SettingsKey"
            ),
            "_tools": "McpServer PolicyKey PolicyRule SHELL_TOOL Tools policy_key",
            "_trust": (
                "is_trusted_text loosening_changes name_changes propose_trust trust_records "
                "UntrustedSettings withdraw_trust"
            ),
        },
    )

__all__ = [
    "LLM",
    "SCHEMA",
    "SETTINGS_FILE",
    "SHELL_TOOL",
    "EmergencyRule",
    "Evolution",
    "FallbackChain",
    "HookCommand",
    "HookPoint",
    "McpServer",
    "Memory",
    "ModelOptions",
    "ModelPrice",
    "Notify",
    "PolicyKey",
    "PolicyRule",
    "ProjectInstructions",
    "PromptPiece",
    "Recovery",
    "Requests",
    "RoleOptions",
    "Sandbox",
    "Settings",
    "SettingsError",
    "SettingsKey",
    "Skills",
    "Spendable",
    "Team",
    "Tools",
    "UntrustedSettings",
    "is_trusted_text",
    "loosening_changes",
    "merge_settings",
    "name_changes",
    "policy_key",
    "propose_trust",
    "sections",
    "settings_keys",
    "settings_schema",
    "trust_records",
    "values_in_force",
    "withdraw_trust",
]
