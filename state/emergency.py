"""The structured error that a failed task ends with, in English and Chinese (EM-01)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from daruma.state.failure import Code, Failure, Reason
from daruma.state.record import plain_values, record

if TYPE_CHECKING:
    from daruma.state.settings import FallbackChain

# --- What a language has to say about a task that failed.


@dataclass(frozen=True)
class Words:
    """Advice by code, and the fixed sentences of a result.

    ``headlines`` go before a failure's message, which is technical and always English; a language
    without any lets the message stand alone. ``reasons`` is the advice by what a model call
    failed for, ``refused`` for any other that will be refused again. ``ended`` has places for
    ``status`` and ``reason``.
    """

    advice: Mapping[Code, tuple[str, ...]]
    reasons: Mapping[Reason, tuple[str, ...]]
    refused: tuple[str, ...]
    ended: str
    unknown: str
    parked: str
    headlines: Mapping[Code, str]

    def headed(self, code: Code, message: str) -> str:
        """Return a message after the headline of its code, where the language has one."""
        headline = self.headlines.get(code)
        return f"{headline}：{message}" if headline else message


# --- The words of emergency in English.

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
            "Check the model's name, key and address with `daruma doctor --online`.",
            "Try again later, or name other models in llm.fallback_models.",
        ),
        "script_mismatch": ("Mend the script: the message says which turn the run asked for.",),
        "internal_error": ("Report this with the output of `daruma show`.",),
        "verification_failed": (
            "Read what the checks said, with `daruma show`.",
            "Raise the limit that the message names, or choose budgets.preset work.",
        ),
        "max_steps_exceeded": (
            "Ask for less at a time.",
            "Raise the limit that the message names, or choose budgets.preset work.",
        ),
        "budget_exceeded": (
            (
                "Raise budgets.tokens, budgets.usd or budgets.seconds (of a phase, "
                "budgets.per_phase.tokens and so on), then `daruma retry`."
            ),
            "Ask for less at a time, or take a cheaper model.",
        ),
        "rollback_failed": ("Look at the workspace before anything else runs there.",),
        "sandbox_violation": ("Allow the access in the settings, or change the command.",),
        "workspace_conflict": ("Check that the workspace exists and nothing else edits it.",),
        "storage_unavailable": ("Check the database with `daruma doctor`, then resume.",),
        "approval_denied": ("Approve the call, or ask for another way.",),
        "plan_refused": ("Describe the goal in more detail.", "Try another model."),
        "plan_rejected": (
            "Ask for it without a plan: mode react.",
            "Describe the goal in more detail, or try another model.",
        ),
        "plan_contradicted": (
            "Ask again, with what was found.",
            "Raise budgets.replan to have more of a plan made anew.",
        ),
        "bad_request": ("Correct the request and send it again.",),
        "structured_output_invalid": (
            "Ask for a simpler schema, or describe its fields.",
            "Try again with `daruma retry`, or take another model.",
        ),
        "stopped": ("Say on the thread what is to be done instead: `daruma run --thread`.",),
    },
    reasons={
        "too_large": (
            "Set llm.context_window_tokens to what the model can read.",
            "Show fewer tools, or take a model with a larger context.",
        ),
        "rate_limited": (
            "Wait as long as the provider asks for, then `daruma retry`.",
            "Name other models in llm.fallback_models.",
        ),
        "quota": (
            "Add credit, or raise the limit at the provider, then `daruma retry`.",
            "Name other models in llm.fallback_models.",
        ),
        "auth": (
            "Set the model's key to one that its provider accepts: `daruma doctor --online`.",
        ),
        "not_found": ("Check the model's name and address with `daruma doctor --online`.",),
        "tools_unsupported": (
            "Take a model that calls tools (llm.model), or name one in llm.fallback_models.",
        ),
        "connection": (
            (
                "Check the model's address (base_url in llm.options, or a variable such as "
                "OPENAI_BASE_URL) and that a server runs there: `daruma doctor --online`."
            ),
            "Try again with `daruma retry`.",
        ),
    },
    refused=(
        (
            "Set the key of the model's provider, such as OPENAI_API_KEY, to one that it accepts "
            "for this model."
        ),
        "Check the model's name and address with `daruma doctor --online`.",
        "If the request was too long: set llm.context_window_tokens, or show fewer tools.",
    ),
    ended="The task ended as {status}: {reason}",
    unknown="the cause is unknown",
    parked="Nobody confirmed the plan in time: it is parked, and goes on once it is confirmed.",
    headlines={},
)


# --- The words of emergency in Chinese.

ZH = Words(
    advice={
        "timeout": (
            "请重试。",
            "调高时间限制：llm.requests.seconds、tools.timeout 或 verification.timeout。",
        ),
        "loop_detected": ("把目标拆成更小的步骤，或说明该走哪条路。", "换一个模型再试。"),
        "llm_failure": (
            "用 `daruma doctor --online` 检查模型名称、密钥和地址。",
            "稍后重试，或在 llm.fallback_models 中设置备用模型。",
        ),
        "script_mismatch": ("修正脚本：消息中说明了运行请求的是哪一轮。",),
        "internal_error": ("请附上 `daruma show` 的输出报告此问题。",),
        "verification_failed": (
            "用 `daruma show` 查看检查的输出。",
            "调高消息中指出的限制，或选用 budgets.preset work。",
        ),
        "max_steps_exceeded": (
            "一次少做一些。",
            "调高消息中指出的限制，或选用 budgets.preset work。",
        ),
        "budget_exceeded": (
            (
                "调高 budgets.tokens、budgets.usd 或 budgets.seconds（阶段预算为 "
                "budgets.per_phase.tokens 等），然后运行 `daruma retry`。"
            ),
            "一次少做一些，或换用更便宜的模型。",
        ),
        "rollback_failed": ("在工作区运行其他任何操作之前，先检查工作区。",),
        "sandbox_violation": ("在设置中允许该访问，或修改命令。",),
        "workspace_conflict": ("确认工作区存在，且没有其他程序在修改它。",),
        "storage_unavailable": ("用 `daruma doctor` 检查数据库，然后恢复任务。",),
        "approval_denied": ("批准该调用，或要求换一种做法。",),
        "plan_refused": ("更详细地描述目标。", "换一个模型再试。"),
        "plan_rejected": (
            "不要计划，直接执行：使用 react 模式。",
            "更详细地描述目标，或换一个模型再试。",
        ),
        "plan_contradicted": (
            "结合已发现的情况重新提出请求。",
            "调高 budgets.replan，以便更多次重新计划。",
        ),
        "bad_request": ("修正请求后重新发送。",),
        "structured_output_invalid": (
            "使用更简单的结构，或为其字段添加说明。",
            "用 `daruma retry` 重试，或换一个模型。",
        ),
        "stopped": ("在该线程上说明接下来该做什么：`daruma run --thread`。",),
    },
    reasons={
        "too_large": (
            "把 llm.context_window_tokens 设为模型能读取的长度。",
            "减少展示的工具，或换用上下文更长的模型。",
        ),
        "rate_limited": (
            "按服务商要求的时间等待，然后运行 `daruma retry`。",
            "在 llm.fallback_models 中设置备用模型。",
        ),
        "quota": (
            "充值或向服务商提高限额，然后运行 `daruma retry`。",
            "在 llm.fallback_models 中设置备用模型。",
        ),
        "auth": ("把密钥设为服务商对该模型接受的密钥：`daruma doctor --online`。",),
        "not_found": ("用 `daruma doctor --online` 检查模型的名称和地址。",),
        "tools_unsupported": (
            "换用支持工具的模型（llm.model），或在 llm.fallback_models 中设置一个。",
        ),
        "connection": (
            (
                "检查模型的地址（llm.options 中的 base_url，或 OPENAI_BASE_URL 等环境变量），"
                "以及服务器是否在运行：`daruma doctor --online`。"
            ),
            "运行 `daruma retry` 重试。",
        ),
    },
    refused=(
        "把服务商的密钥（如 OPENAI_API_KEY）设为对该模型有效的密钥。",
        "用 `daruma doctor --online` 检查模型的名称和地址。",
        "若请求过长：设置 llm.context_window_tokens，或减少展示的工具。",
    ),
    ended="任务以 {status} 结束：{reason}",
    unknown="原因不明",
    parked="计划未在限期内得到确认，现已搁置；确认后即可继续。",
    headlines={
        "timeout": "超时",
        "loop_detected": "检测到循环，任务没有进展",
        "llm_failure": "模型调用失败",
        "script_mismatch": "脚本与运行不符",
        "internal_error": "内部错误",
        "verification_failed": "验证未通过",
        "max_steps_exceeded": "超出步数限制",
        "budget_exceeded": "预算已用完",
        "rollback_failed": "回滚失败",
        "sandbox_violation": "沙箱不允许此操作",
        "workspace_conflict": "工作区冲突",
        "storage_unavailable": "存储不可用",
        "approval_denied": "必需的批准被拒绝",
        "plan_refused": "没有可用的计划",
        "plan_rejected": "模型没有给出计划",
        "plan_contradicted": "计划与实际情况不符",
        "bad_request": "请求有误",
        "structured_output_invalid": "答案不符合要求的结构",
        "stopped": "已被人停止",
    },
)


# --- The structured error that a failed task ends with (EM-01).

_RETRYABLE: frozenset[Code] = frozenset(
    {
        "timeout",
        "loop_detected",
        "llm_failure",
        "verification_failed",
        "max_steps_exceeded",
        "budget_exceeded",
        "workspace_conflict",
        "storage_unavailable",
        "approval_denied",
        "plan_refused",
        "plan_rejected",
        "plan_contradicted",
        "structured_output_invalid",
    }
)
"""The codes after which the same may go better; EM-02 names them."""
_PASSING: frozenset[Reason] = frozenset({"rate_limited", "server", "connection"})

_WORDS = {"en": EN, "zh": ZH}


@record
class EmergencyError:
    """What a failed task says to the program that runs it."""

    error_code: Code
    message: str
    suggestions: tuple[str, ...] = ()
    retryable: bool = False
    original_error: str | None = None
    schema_version: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Return the five fields of EM-01 as JSON-able values."""
        return plain_values(self)

    def to_error_message(self) -> str:
        """Return the message with its suggestions numbered below it."""
        lines = (f"{number}. {text}" for number, text in enumerate(self.suggestions, 1))
        return "\n".join((self.message, *lines))


def words_of(chain: "FallbackChain") -> Words:
    """Return the words of the language that results are told in."""
    return _WORDS[chain.emergency.language]


def emergency_of(failure: Failure, chain: "FallbackChain | None" = None) -> EmergencyError:
    """Build the structured error of a failure by rule; no model is asked.

    What ``chain`` says of the code counts before the built-in advice (EM-03). What is final is not
    retryable, whatever its code, unless time alone mends it. With emergency switched off there is
    the message alone.
    """
    from daruma.state.settings import EmergencyRule, FallbackChain  # not read to look (FA-13)

    chain = chain or FallbackChain()
    rule = chain.emergency.rules.get(failure.code) or EmergencyRule()
    words = words_of(chain)
    by_code = words.refused if failure.final else words.advice[failure.code]
    built_in = words.reasons.get(failure.reason, by_code)
    advice = built_in if rule.suggestions is None else rule.suggestions
    retryable = failure.code in _RETRYABLE if rule.retryable is None else rule.retryable
    return EmergencyError(
        error_code=failure.code,
        message=words.headed(failure.code, failure.message),
        suggestions=advice if chain.has_emergency else (),
        retryable=retryable and (not failure.final or failure.reason in _PASSING),
        original_error=failure.original_error,
    )
