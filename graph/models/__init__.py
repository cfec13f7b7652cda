"""Chat models: made by role from names and settings, asked with retries along a chain, and read.

Here lie what names of models and providers stand for, what a failed request means for the next
one, the one client per event loop, and ``ScriptedChatModel``, which follows a script without a
key. No client of a provider is imported before a model is made.
"""

from typing import TYPE_CHECKING

from daruma._doors import open_late

if TYPE_CHECKING:
    from daruma.graph.models._asker import (
        AUXILIARY_SECONDS,
        Asker,
        FailedAttempt,
        Pursuit,
        answer_within,
        with_failover,
    )
    from daruma.graph.models._by_role import (
        AUXILIARY,
        Models,
        embeddings_name,
        resolve_embeddings,
        resolve_model,
    )
    from daruma.graph.models._calls import Request
    from daruma.graph.models._client_per_loop import ClientPerLoop
    from daruma.graph.models._faults import (
        Fault,
        ModelUnavailable,
        ScriptedFault,
        ScriptError,
        fault_of,
        keys_of,
    )
    from daruma.graph.models._openai_answers import ReadableAnswers, check_whole, per_loop_model
    from daruma.graph.models._providers import (
        check_model,
        check_models,
        full_name,
        key_variables,
        misspelt_variable,
        model_address,
        tokens_of,
    )
    from daruma.graph.models._scripted import (
        CALL_KEY,
        ROLE_KEY,
        AnsweringModel,
        ScriptedChatModel,
        read_script,
    )
else:
    __getattr__ = open_late(
        __name__,
        {
            "_asker": "AUXILIARY_SECONDS Asker FailedAttempt Pursuit answer_within with_failover",
            "_by_role": "AUXILIARY Models embeddings_name resolve_embeddings resolve_model",
            "_calls": "Request",
            "_client_per_loop": "ClientPerLoop",
            "_faults": "Fault fault_of keys_of ModelUnavailable ScriptedFault ScriptError",
            "_openai_answers": "ReadableAnswers check_whole per_loop_model",
            "_providers": (
                "check_model check_models full_name key_variables misspelt_variable "
                "model_address tokens_of"
            ),
            "_scripted": "CALL_KEY ROLE_KEY AnsweringModel ScriptedChatModel read_script",
        },
    )

__all__ = [
    "AUXILIARY",
    "AUXILIARY_SECONDS",
    "CALL_KEY",
    "ROLE_KEY",
    "AnsweringModel",
    "Asker",
    "ClientPerLoop",
    "FailedAttempt",
    "Fault",
    "ModelUnavailable",
    "Models",
    "Pursuit",
    "ReadableAnswers",
    "Request",
    "ScriptError",
    "ScriptedChatModel",
    "ScriptedFault",
    "answer_within",
    "check_model",
    "check_models",
    "check_whole",
    "embeddings_name",
    "fault_of",
    "full_name",
    "key_variables",
    "keys_of",
    "misspelt_variable",
    "model_address",
    "per_loop_model",
    "read_script",
    "resolve_embeddings",
    "resolve_model",
    "tokens_of",
    "with_failover",
]
