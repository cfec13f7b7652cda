"""The words of emergency in Chinese."""

from daruma.state.emergency_words import Words

ZH = Words(
    advice={
        "timeout": (
            "请重试。",
            "调高时间限制：llm.requests.seconds、tools.timeout 或 verification.timeout。",
        ),
        "loop_detected": ("把目标拆成更小的步骤，或说明该走哪条路。", "换一个模型再试。"),
        "llm_failure": (
            "用 `daruma doctor` 检查模型名称、密钥和地址。",
            "稍后重试，或在 llm.fallback_models 中设置备用模型。",
        ),
        "internal_error": ("请附上 `daruma show` 的输出报告此问题。",),
        "verification_failed": (
            "用 `daruma show` 查看检查的输出。",
            "增加步数：budgets.think、.verify、.reflect。",
        ),
        "max_steps_exceeded": (
            "一次少做一些。",
            "调高 budgets.max_steps；有计划时调高 budgets.think。",
        ),
        "budget_exceeded": (
            "调高 budgets.tokens、budgets.usd 或 budgets.seconds，然后运行 `daruma retry`。",
            "一次少做一些，或换用更便宜的模型。",
        ),
        "rollback_failed": ("在工作区运行其他任何操作之前，先检查工作区。",),
        "sandbox_violation": ("在设置中允许该访问，或修改命令。",),
        "workspace_conflict": ("确认工作区存在，且没有其他程序在修改它。",),
        "storage_unavailable": ("用 `daruma doctor` 检查数据库，然后恢复任务。",),
        "approval_denied": ("批准该调用，或要求换一种做法。",),
        "plan_refused": ("更详细地描述目标。", "换一个模型再试。"),
        "bad_request": ("修正请求后重新发送。",),
    },
    refused=(
        "把 OPENAI_API_KEY 设为服务商对该模型接受的密钥。",
        "用 `daruma doctor` 检查模型的名称和地址（llm.model、OPENAI_BASE_URL）。",
        "若请求过长：设置 llm.context_window_tokens，或减少展示的工具。",
    ),
    ended="任务以 {status} 结束：{reason}",
    done="完成。{checked}",
    unknown="原因不明",
    parked="计划未在限期内得到确认，现已搁置；确认后即可继续。",
    headlines={
        "timeout": "超时",
        "loop_detected": "检测到循环，任务没有进展",
        "llm_failure": "模型调用失败",
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
        "bad_request": "请求有误",
    },
)
