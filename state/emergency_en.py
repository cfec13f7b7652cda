"""The words of emergency in English."""

from daruma.state.emergency_words import Words

EN = Words(
    advice={
        "timeout": (
            "Try again.",
            "Raise the time limit: llm.requests.seconds, tools.timeout or verification.timeout.",
        ),
        "loop_detected": (
            "Describe the goal in smaller steps, or say which way to go.",
            "Try another model.",
        ),
        "llm_failure": (
            "Check the model's name, key and address with `daruma doctor`.",
            "Try again later, or name other models in llm.fallback_models.",
        ),
        "internal_error": ("Report this with the output of `daruma show`.",),
        "verification_failed": (
            "Read what the checks said, with `daruma show`.",
            "Give more steps: budgets.think, .verify, .reflect.",
        ),
        "max_steps_exceeded": (
            "Ask for less at a time.",
            "Raise budgets.max_steps, or budgets.think in a plan.",
        ),
        "budget_exceeded": (
            "Raise budgets.tokens, budgets.usd or budgets.seconds, then `daruma retry`.",
            "Ask for less at a time, or take a cheaper model.",
        ),
        "rollback_failed": ("Look at the workspace before anything else runs there.",),
        "sandbox_violation": ("Allow the access in the settings, or change the command.",),
        "workspace_conflict": ("Check that the workspace exists and nothing else edits it.",),
        "storage_unavailable": ("Check the database with `daruma doctor`, then resume.",),
        "approval_denied": ("Approve the call, or ask for another way.",),
        "plan_refused": ("Describe the goal in more detail.", "Try another model."),
        "bad_request": ("Correct the request and send it again.",),
    },
    refused=(
        "Set OPENAI_API_KEY to a key that the provider accepts for this model.",
        "Check the model's name and address (llm.model, OPENAI_BASE_URL) with `daruma doctor`.",
        "If the request was too long: set llm.context_window_tokens, or show fewer tools.",
    ),
    ended="The task ended as {status}: {reason}",
    done="Done. {checked}",
    unknown="the cause is unknown",
    parked="Nobody confirmed the plan in time: it is parked, and goes on once it is confirmed.",
    headlines={},
)
