"""Chat models: made by role from names and settings, asked with retries along a chain, and read.

Here lie what names of models and providers stand for, what a failed request means for the next
one, the one client per event loop, and ``ScriptedChatModel``, which follows a script without a
key. No client of a provider is imported before a model is made.
"""

from typing import TYPE_CHECKING

from daruma._doors import open_late

if TYPE_CHECKING:
    from daruma.graph.models._by_role import (
        AUXILIARY,
        Models,
        embeddings_name,
        resolve_embeddings,
        resolve_model,
    )
    from daruma.graph.models._calls import Request, ToolOfferingModel
    from daruma.graph.models._client_per_loop import ClientPerLoop
    from daruma.graph.models._failover import (
        CallEvents,
        FailedAttempt,
        NextMove,
        Pursuit,
        answer_of,
        answer_within,
        attempt_event,
        next_move,
        usage_of,
        with_failover,
    )
    from daruma.graph.models._faults import (
        CIRCUITS,
        BrokenAnswer,
        CircuitOpen,
        Circuits,
        Fault,
        ModelUnavailable,
        ScriptedFault,
        ScriptError,
        fault_of,
        keys_of,
    )
    from daruma.graph.models._names import (
        SCRIPTED,
        check_model,
        check_name,
        check_names,
        configured_price,
        full_name,
        is_known_model,
        model_address,
        model_name,
        tokens_of,
    )
    from daruma.graph.models._openai_answers import ReadableAnswers, check_whole, per_loop_model
    from daruma.graph.models._providers import key_variables, misspelt_variable, openai_url
    from daruma.graph.models._script import read_script
    from daruma.graph.models._scripted import CALL_KEY, ROLE_KEY, AnsweringModel, ScriptedChatModel
else:
    __getattr__ = open_late(
        __name__,
        {
            "_by_role": "AUXILIARY Models embeddings_name resolve_embeddings resolve_model",
            "_calls": "Request ToolOfferingModel",
            "_client_per_loop": "ClientPerLoop",
            "_failover": (
                "CallEvents FailedAttempt NextMove Pursuit answer_of answer_within "
                "attempt_event next_move usage_of with_failover"
            ),
            "_faults": (
                "BrokenAnswer CIRCUITS CircuitOpen Circuits Fault ModelUnavailable "
                "ScriptError ScriptedFault fault_of keys_of"
            ),
            "_names": (
                "SCRIPTED check_model check_name check_names configured_price full_name "
                "is_known_model model_address model_name tokens_of"
            ),
            "_openai_answers": "ReadableAnswers check_whole per_loop_model",
            "_providers": "key_variables misspelt_variable openai_url",
            "_script": "read_script",
            "_scripted": "AnsweringModel CALL_KEY ROLE_KEY ScriptedChatModel",
        },
    )

__all__ = [
    "AUXILIARY",
    "CALL_KEY",
    "CIRCUITS",
    "ROLE_KEY",
    "SCRIPTED",
    "AnsweringModel",
    "BrokenAnswer",
    "CallEvents",
    "CircuitOpen",
    "Circuits",
    "ClientPerLoop",
    "FailedAttempt",
    "Fault",
    "ModelUnavailable",
    "Models",
    "NextMove",
    "Pursuit",
    "ReadableAnswers",
    "Request",
    "ScriptError",
    "ScriptedChatModel",
    "ScriptedFault",
    "ToolOfferingModel",
    "answer_of",
    "answer_within",
    "attempt_event",
    "check_model",
    "check_name",
    "check_names",
    "check_whole",
    "configured_price",
    "embeddings_name",
    "fault_of",
    "full_name",
    "is_known_model",
    "key_variables",
    "keys_of",
    "misspelt_variable",
    "model_address",
    "model_name",
    "next_move",
    "openai_url",
    "per_loop_model",
    "read_script",
    "resolve_embeddings",
    "resolve_model",
    "tokens_of",
    "usage_of",
    "with_failover",
]
