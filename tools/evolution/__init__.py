"""Learning from ended tasks: experience, pitfalls, recoveries that worked, and variants of prompts.

``learn`` puts an ended task on record and sums up what it teaches; ``lessons_for`` gives the next
task what it may use of that. All is kept in the graph's store, by owner (EV-01 to EV-05).
"""

from daruma.tools.evolution._learning import (
    Learning,
    answer_nothing,
    counterfactual_lessons,
    feeds_back,
    finish_within,
    learn,
    lessons_for,
    report_lessons,
)
from daruma.tools.evolution._pitfalls import Evidence, EvidenceKind, Pitfalls, confidence_at
from daruma.tools.evolution._records import (
    EVOLUTION_NAMESPACE,
    experience_in,
    experiences,
    key_of,
    put_experience,
    shelf,
)
from daruma.tools.evolution._recoveries import (
    KnownAction,
    KnownRecoveries,
    MetFailure,
    RecoveryPattern,
    confidence,
    learned_action,
    recovery_key,
)
from daruma.tools.evolution._reflector import experience_of, is_sampled
from daruma.tools.evolution._variants import Variant, Variants

__all__ = [
    "EVOLUTION_NAMESPACE",
    "Evidence",
    "EvidenceKind",
    "KnownAction",
    "KnownRecoveries",
    "Learning",
    "MetFailure",
    "Pitfalls",
    "RecoveryPattern",
    "Variant",
    "Variants",
    "answer_nothing",
    "confidence",
    "confidence_at",
    "counterfactual_lessons",
    "experience_in",
    "experience_of",
    "experiences",
    "feeds_back",
    "finish_within",
    "is_sampled",
    "key_of",
    "learn",
    "learned_action",
    "lessons_for",
    "put_experience",
    "recovery_key",
    "report_lessons",
    "shelf",
]
