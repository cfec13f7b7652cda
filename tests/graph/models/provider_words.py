"""What providers send in place of an answer, and how it has to be read: data alone.

Each row: who, the HTTP status (None in the midst of a stream), the body as JSON or text, the
reason, and for a request that is too large the limit in tokens, None if the words name none.
"""

from typing import Any, Final, NamedTuple

from daruma.state.failure import Reason


class Row(NamedTuple):
    """One answer of a provider."""

    who: str
    status: int | None
    body: Any
    reason: Reason
    limit: int | None = None


def openai(message: str, code: str | None = None, kind: str = "invalid_request_error") -> Any:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def anthropic(message: str, kind: str = "invalid_request_error") -> Any:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_011"}


def google(message: str, code: int = 400, status: str = "INVALID_ARGUMENT", **more: Any) -> Any:
    return {"error": {"code": code, "message": message, "status": status} | more}


NGINX = (
    "<html>\r\n<head><title>413 Request Entity Too Large</title></head>\r\n<body>\r\n"
    "<center><h1>413 Request Entity Too Large</h1></center>\r\n<hr><center>nginx</center>\r\n"
    "</body>\r\n</html>\r\n"
)
LARGE: Final = "too_large"
TOO_LARGE: list[Row] = [
    Row(
        "OpenAI",
        400,
        openai(
            "This model's maximum context length is 8192 tokens. However, your messages resulted in"
            " 9034 tokens (8800 in the messages, 234 in the functions). Please reduce the length of"
            " the messages or functions.",
            "context_length_exceeded",
        ),
        LARGE,
        8192,
    ),
    Row(
        "OpenAI, newer",
        400,
        openai(
            "Your input exceeds the context window of this model. Please adjust your input and try"
            " again.",
            "context_length_exceeded",
        ),
        LARGE,
    ),
    Row(
        "OpenAI, more than a minute's tokens",
        429,
        openai(
            "Request too large for gpt-4o in organization org-abc123 on tokens per min (TPM): Limit"
            " 30000, Requested 34000. The input or output tokens must be reduced in order to run"
            " successfully. Visit https://platform.openai.com/account/rate-limits to learn more.",
            "rate_limit_exceeded",
            "tokens",
        ),
        LARGE,
        30000,
    ),
    Row(
        "OpenAI, configured limit",
        400,
        openai(
            "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in"
            " 330000 tokens. Please reduce the length of the messages.",
            "context_length_exceeded",
        ),
        LARGE,
        272000,
    ),
    Row(
        "OpenAI, one long message",
        400,
        openai(
            "Invalid 'messages[3].content': string too long. Expected a string with maximum length"
            " 1048576, but got a string with length 1500000 instead.",
            "string_above_max_length",
        ),
        LARGE,
    ),
    Row(
        "OpenAI, many messages",
        400,
        openai(
            "Invalid 'messages': array too long. Expected an array with maximum length 2048, but"
            " got an array with length 2300 instead.",
            "array_above_max_length",
        ),
        LARGE,
    ),
    Row(
        "Azure",
        400,
        openai(
            "This model's maximum context length is 4097 tokens. However, you requested 5000 tokens"
            " (4000 in the messages, 1000 in the completion). Please reduce the length of the"
            " messages or completion.",
            "context_length_exceeded",
        ),
        LARGE,
        4097,
    ),
    Row(
        "Anthropic",
        400,
        anthropic("prompt is too long: 210000 tokens > 200000 maximum"),
        LARGE,
        200000,
    ),
    Row(
        "Anthropic, with the answer",
        400,
        anthropic(
            "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000, decrease"
            " input length or `max_tokens` and try again"
        ),
        LARGE,
        200000,
    ),
    Row(
        "Anthropic, by bytes",
        413,
        anthropic("Request exceeds the maximum allowed number of bytes.", "request_too_large"),
        LARGE,
    ),
    Row(
        "Gemini",
        400,
        [
            google(
                "The input token count (1200000) exceeds the maximum number of tokens allowed"
                " (1048576)."
            )
        ],
        LARGE,
        1048576,
    ),
    Row(
        "Vertex",
        400,
        google(
            "Unable to submit request because the input token count is 1200000 but model only"
            " supports up to 1048576. Reduce the input token count and try again. You can also use"
            " the CountTokens API to calculate prompt token count and billable characters."
        ),
        LARGE,
        1048576,
    ),
    Row(
        "Groq",
        400,
        openai(
            "Please reduce the length of the messages or completion.", "context_length_exceeded"
        ),
        LARGE,
    ),
    Row(
        "Groq, more than a minute's tokens",
        413,
        openai(
            "Request too large for model `llama-3.1-8b-instant` in organization `org_01` service"
            " tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 12345, please"
            " reduce your message size and try again. Need more tokens? Upgrade to Dev Tier today.",
            "rate_limit_exceeded",
            "tokens",
        ),
        LARGE,
        6000,
    ),
    Row(
        "Mistral",
        400,
        {
            "object": "error",
            "message": "Prompt contains 150000 tokens and 0 draft tokens, too large for model with"
            " 131072 maximum context length",
            "type": "invalid_request_prompt_too_long",
            "code": "3051",
        },
        LARGE,
        131072,
    ),
    Row(
        "Cohere",
        400,
        {
            "message": "too many tokens: total number of tokens in the prompt cannot exceed 4081 -"
            " received 5292. Try using a shorter prompt, or enable prompt truncating."
        },
        LARGE,
        4081,
    ),
    Row(
        "Cohere, newer",
        400,
        {
            "message": "too many tokens: size limit exceeded by 11326 tokens. Try using shorter or"
            " fewer inputs. The limit for this model is 128000 tokens."
        },
        LARGE,
        128000,
    ),
    Row(
        "xAI",
        400,
        {
            "code": "Client specified an invalid argument",
            "error": "This model's maximum prompt length is 131072 but the request contains 150000"
            " tokens.",
        },
        LARGE,
        131072,
    ),
    Row("Ollama", 400, {"error": "input length exceeds maximum context length"}, LARGE),
    Row(
        "Ollama, cloud",
        400,
        {"error": "prompt too long; exceeded max context length by 12000 tokens"},
        LARGE,
    ),
    Row(
        "Together",
        422,
        openai(
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given:"
            " 9000 `inputs` tokens and 512 `max_new_tokens`"
        ),
        LARGE,
        8193,
    ),
    Row(
        "Fireworks",
        400,
        openai("The prompt is too long: 140000, model maximum context length: 131072"),
        LARGE,
        131072,
    ),
    Row(
        "DeepSeek",
        400,
        openai(
            "This model's maximum context length is 65536 tokens. However, you requested 70000"
            " tokens (66000 in the messages, 4000 in the completion). Please reduce the length of"
            " the messages or completion."
        ),
        LARGE,
        65536,
    ),
    Row(
        "Moonshot",
        400,
        openai("Invalid request: Your request exceeded model token limit: 8192"),
        LARGE,
        8192,
    ),
    Row(
        "Bedrock",
        400,
        {"__type": "ValidationException", "message": "Input is too long for requested model."},
        LARGE,
    ),
    Row(
        "Bedrock, Llama",
        400,
        {
            "message": "The model returned the following errors: Too many input tokens. Max input"
            " tokens: 8192, request input token count: 9000"
        },
        LARGE,
        8192,
    ),
    Row(
        "Bedrock, Titan",
        400,
        {
            "message": "Malformed input request: expected maxLength: 50000, actual: 61234, please"
            " reformat your input and try again."
        },
        LARGE,
    ),
    Row(
        "OpenRouter",
        400,
        openai(
            "This endpoint's maximum context length is 131072 tokens. However, you requested about"
            " 140000 tokens (130000 of text input, 10000 in the output). Please reduce the length"
            ' of either one, or use the "middle-out" transform to compress your prompt.'
        ),
        LARGE,
        131072,
    ),
    Row(
        "OpenRouter, of another",
        400,
        {
            "error": {
                "message": "Provider returned error",
                "code": 400,
                "metadata": {
                    "raw": '{"type":"error","error":{"type":"invalid_request_error","message":'
                    '"prompt is too long: 210000 tokens > 200000 maximum"}}',
                    "provider_name": "Anthropic",
                },
            }
        },
        LARGE,
        200000,
    ),
    Row(
        "vLLM",
        400,
        {
            "object": "error",
            "message": "This model's maximum context length is 4096 tokens. However, you requested"
            " 5012 tokens (4012 in the messages, 1000 in the completion). Please reduce the length"
            " of the messages or completion.",
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
        LARGE,
        4096,
    ),
    Row(
        "vLLM, newer",
        400,
        openai(
            "This model's maximum context length is 4096 tokens. However, you requested 1000 output"
            " tokens and your prompt contains at least 3097 input tokens, for a total of at least"
            " 4097 tokens. Please reduce the length of the input prompt or the number of requested"
            " output tokens."
        ),
        LARGE,
        4096,
    ),
    Row(
        "vLLM, with the answer",
        400,
        openai(
            "'max_tokens' or 'max_completion_tokens' is too large: 2000. This model's maximum"
            " context length is 4096 tokens and your request has 3000 input tokens (2000 > 4096 -"
            " 3000)."
        ),
        LARGE,
        4096,
    ),
    Row(
        "llama.cpp",
        400,
        {
            "error": {
                "code": 400,
                "message": "the request exceeds the available context size, try increasing it",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 5012,
                "n_ctx": 4096,
            }
        },
        LARGE,
        4096,
    ),
    Row(
        "llama.cpp, newer",
        400,
        openai("request (5012 tokens) exceeds the available context size (4096 tokens)"),
        LARGE,
        4096,
    ),
    Row(
        "llama.cpp, older",
        500,
        openai("the request exceeds the available context size. try increasing the context size"),
        LARGE,
    ),
    Row(
        "LM Studio",
        400,
        {
            "error": "Trying to keep the first 5012 tokens when context the overflows. However, the"
            " model is loaded with context length of only 4096 tokens, which is not enough. Try to"
            " load the model with a larger context length, or provide a shorter input"
        },
        LARGE,
        4096,
    ),
    Row(
        "LM Studio, in a stream",
        None,
        {
            "message": "The number of tokens to keep from the initial prompt is greater than the"
            " context length. Try to load the model with a larger context length"
        },
        LARGE,
    ),
    Row(
        "TGI",
        422,
        {
            "error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096."
            " Given: 4000 `inputs` tokens and 512 `max_new_tokens`",
            "error_type": "validation",
        },
        LARGE,
        4096,
    ),
    Row(
        "TGI, the input alone",
        422,
        {"error": "Input validation error: `inputs` must have less than 4096 tokens. Given: 5012"},
        LARGE,
        4096,
    ),
    Row(
        "DashScope",
        400,
        openai(
            "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]",
            "invalid_parameter_error",
        ),
        LARGE,
        30720,
    ),
    Row("Zhipu", 400, {"error": {"code": "1261", "message": "Prompt exceeds max length"}}, LARGE),
    Row("Zhipu, Chinese", 400, {"error": {"code": "1261", "message": "Prompt 超长"}}, LARGE),
    Row("MiniMax", 400, openai("invalid params, context window exceeds limit (2013)"), LARGE),
    Row(
        "Cerebras",
        400,
        {
            "message": "Please reduce the length of the messages or completion. Current length is"
            " 9000 while limit is 8192",
            "type": "invalid_request_error",
            "code": "context_length_exceeded",
        },
        LARGE,
        8192,
    ),
    Row(
        "SambaNova",
        400,
        openai(
            "The maximum context length of Meta-Llama-3.1-405B-Instruct is 8192. However, answering"
            " your request will take 9000 tokens. Please reduce the length of the messages or the"
            " specified max_completion_tokens value."
        ),
        LARGE,
        8192,
    ),
    Row(
        "GitHub Models",
        413,
        openai(
            "Request body too large for gpt-4o model. Max size: 8000 tokens.",
            "tokens_limit_reached",
        ),
        LARGE,
        8000,
    ),
    Row(
        "GitHub Copilot",
        400,
        openai(
            "prompt token count of 130000 exceeds the limit of 128000",
            "model_max_prompt_tokens_exceeded",
        ),
        LARGE,
        128000,
    ),
    Row(
        "Cloudflare",
        400,
        {
            "errors": [
                {
                    "message": "AiError: The estimated number of input and maximum output tokens"
                    " (9000) exceeded this model context window limit (7968).",
                    "code": 5021,
                }
            ],
            "success": False,
        },
        LARGE,
        7968,
    ),
    Row(
        "SGLang",
        400,
        {
            "object": "error",
            "message": "The input (5012 tokens) is longer than the model's context length (4096"
            " tokens).",
        },
        LARGE,
        4096,
    ),
    Row(
        "Databricks",
        400,
        {
            "error_code": "BAD_REQUEST",
            "message": "BAD_REQUEST: prompt token count (9000) cannot exceed 8192.",
        },
        LARGE,
        8192,
    ),
    Row(
        "LiteLLM",
        400,
        openai(
            "litellm.ContextWindowExceededError: litellm.BadRequestError: AnthropicException - "
            '{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long:'
            ' 210000 tokens > 200000 maximum"}}'
        ),
        LARGE,
        200000,
    ),
    Row(
        "FastAPI, a text",
        422,
        {"detail": "Prompt length (5012) exceeds maximum input length (4096)"},
        LARGE,
        4096,
    ),
    Row(
        "FastAPI, a list",
        422,
        {
            "detail": [
                {
                    "type": "value_error",
                    "loc": ["body", "messages"],
                    "msg": "Value error, the prompt is too long for the context window",
                    "input": "HTTP 400",
                }
            ]
        },
        LARGE,
    ),
    Row("nginx", 413, NGINX, LARGE),
    Row("a proxy without words", 413, "", LARGE),
    Row("plain text", 400, "maximum context length is 32k tokens, got more", LARGE, 32000),
    Row(
        "a status alone beside the words", 400, "Error code: 400 - context window full, max", LARGE
    ),
]

OTHER: list[Row] = [
    Row(
        "OpenAI, a minute's tokens",
        429,
        openai(
            "Rate limit reached for gpt-4o in organization org-abc on tokens per min (TPM): Limit"
            " 30000, Used 29000, Requested 2000. Please try again in 2s. You can increase your rate"
            " limit by adding a payment method to your account at"
            " https://platform.openai.com/account/billing.",
            "rate_limit_exceeded",
        ),
        "rate_limited",
    ),
    Row(
        "Anthropic, a minute's tokens",
        429,
        anthropic(
            "This request would exceed your organization's rate limit of 40,000 input tokens per"
            " minute. Please reduce the prompt length or the maximum tokens requested, or try again"
            " later.",
            "rate_limit_error",
        ),
        "rate_limited",
    ),
    Row(
        "Azure, a minute's tokens",
        429,
        openai(
            "Requests to the ChatCompletions_Create Operation under Azure OpenAI API have exceeded"
            " token rate limit of your current OpenAI S0 pricing tier. Please retry after 6"
            " seconds.",
            "429",
        ),
        "rate_limited",
    ),
    Row(
        "Bedrock, throttled",
        429,
        {
            "__type": "ThrottlingException",
            "message": "Too many tokens, please wait before trying again.",
        },
        "rate_limited",
    ),
    Row(
        "Gemini, a minute's requests",
        429,
        [
            google(
                "You exceeded your current quota, please check your plan and billing details."
                " Please retry in 35.1s.",
                429,
                "RESOURCE_EXHAUSTED",
                details=[
                    {
                        "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                        "violations": [
                            {"quotaId": "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}
                        ],
                    },
                    {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "35s"},
                ],
            )
        ],
        "rate_limited",
    ),
    Row(
        "Gemini, a day's requests",
        429,
        [
            google(
                "You exceeded your current quota, please check your plan and billing details.",
                429,
                "RESOURCE_EXHAUSTED",
                details=[{"violations": [{"quotaId": "GenerateRequestsPerDayPerProject"}]}],
            )
        ],
        "quota",
    ),
    Row(
        "OpenAI, quota",
        429,
        openai(
            "You exceeded your current quota, please check your plan and billing details.",
            "insufficient_quota",
            "insufficient_quota",
        ),
        "quota",
    ),
    Row(
        "OpenAI, hard limit",
        400,
        openai("Billing hard limit has been reached", "billing_hard_limit_reached"),
        "quota",
    ),
    Row(
        "Anthropic, credit",
        400,
        anthropic(
            "Your credit balance is too low to access the Anthropic API. Please go to Plans &"
            " Billing to upgrade or purchase credits."
        ),
        "quota",
    ),
    Row(
        "Anthropic, limit of one's own",
        400,
        anthropic(
            "You have reached your specified API usage limits. You will regain access on 2026-01-01"
            " at 00:00 UTC."
        ),
        "quota",
    ),
    Row("DeepSeek, balance", 402, openai("Insufficient Balance"), "quota"),
    Row(
        "OpenRouter, credits",
        402,
        openai(
            "This request requires more credits, or fewer max_tokens. You requested up to 65535"
            " tokens, but can only afford 2345."
        ),
        "quota",
    ),
    Row(
        "OpenRouter, a day's requests",
        429,
        openai("Rate limit exceeded: free-models-per-day"),
        "quota",
    ),
    Row(
        "xAI, credits",
        403,
        {
            "code": "The caller does not have permission to execute the specified operation",
            "error": "Your team 1234 has used all available credits or reached its monthly spending"
            " limit for this model.",
        },
        "quota",
    ),
    Row(
        "Moonshot, balance",
        429,
        openai("Your account is suspended", None, "exceeded_current_quota_error"),
        "quota",
    ),
    Row(
        "Zhipu, balance", 429, {"error": {"code": "1113", "message": "余额不足,请充值。"}}, "quota"
    ),
    Row("DashScope, balance", 400, openai("Access denied", "Arrearage"), "quota"),
    Row("OpenAI, key", 401, openai("Incorrect API key provided", "invalid_api_key"), "auth"),
    Row("Gemini, key", 400, [google("API key not valid. Please pass a valid API key.")], "auth"),
    Row("OpenAI, region", 403, openai("Country, region, or territory not supported"), "auth"),
    Row("OpenAI, no access", 403, openai("no access to model gpt-9"), "not_found"),
    Row(
        "OpenAI, no model",
        404,
        openai("The model `gpt-9` does not exist", "model_not_found"),
        "not_found",
    ),
    Row("Ollama, no model", 404, {"error": 'model "x" not found, try pulling it'}, "not_found"),
    Row("OpenRouter, no model", 400, openai("x/y is not a valid model ID"), "not_found"),
    Row("no such path", 404, "404 page not found", "not_found"),
    Row(
        "Ollama, no tools",
        400,
        {"error": "registry.ollama.ai/library/gemma:2b does not support tools"},
        "tools_unsupported",
    ),
    Row(
        "DeepSeek, no tools",
        400,
        openai("deepseek-reasoner does not support Function Calling"),
        "tools_unsupported",
    ),
    Row(
        "OpenRouter, no tools",
        404,
        openai("No endpoints found that support tool use."),
        "tools_unsupported",
    ),
    Row(
        "vLLM, no tools",
        400,
        openai('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser'),
        "tools_unsupported",
    ),
    Row(
        "llama.cpp, no tools", 500, openai("tools param requires --jinja flag"), "tools_unsupported"
    ),
    Row("tools by detail", 422, {"detail": "tools are not supported"}, "tools_unsupported"),
    Row(
        "OpenAI, the answer's limit",
        400,
        openai(
            "max_tokens is too large: 99999. This model supports at most 16384 completion tokens,"
            " whereas you provided 99999."
        ),
        "bad_request",
    ),
    Row(
        "Anthropic, the answer's limit",
        400,
        anthropic(
            "max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens for"
            " claude-3-5-sonnet-20241022"
        ),
        "bad_request",
    ),
    Row(
        "Groq, the answer's limit",
        400,
        openai(
            "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens`"
            " is less than the `context_window` for this model"
        ),
        "bad_request",
    ),
    Row(
        "DashScope, the answer's limit",
        400,
        openai("Range of max_tokens should be [1, 8192]"),
        "bad_request",
    ),
    Row(
        "vLLM, the answer's limit",
        400,
        openai(
            "max_completion_tokens is too large: 99999. This model's maximum context length is 4096"
            " tokens and your request has 30 input tokens"
        ),
        "bad_request",
    ),
    Row(
        "OpenAI, a tool's description",
        400,
        openai(
            "Invalid 'tools[0].function.description': string too long. Expected a string with"
            " maximum length 1024, but got a string with length 1300 instead.",
            "string_above_max_length",
        ),
        "bad_request",
    ),
    Row(
        "a tool's schema",
        400,
        openai("the request has a tool schema that is too long"),
        "bad_request",
    ),
    Row(
        "Anthropic, an image",
        400,
        anthropic(
            "messages.1.content.0.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes >"
            " 5242880 bytes"
        ),
        "bad_request",
    ),
    Row("an image by status", 413, openai("The image is too large: 30000000 bytes"), "bad_request"),
    Row("OpenAI, empty", 400, openai("messages: at least one message is required"), "bad_request"),
    Row("a name of it", 400, openai("Invalid value: 'context'"), "bad_request"),
    Row("OpenAI, a parameter", 400, openai("Unsupported parameter: 'context_size'"), "bad_request"),
    Row(
        "FastAPI, the request quoted",
        422,
        {
            "detail": [
                {"msg": "Field required", "loc": ["body"], "input": "context length exceeded"}
            ]
        },
        "bad_request",
    ),
    Row("Anthropic, overloaded", 529, anthropic("Overloaded", "overloaded_error"), "server"),
    Row("a gateway", 502, "<html><body><h1>502 Bad Gateway</h1></body></html>", "server"),
    Row("OpenAI, in a stream", None, {"message": "The server had an error"}, "server"),
    Row(
        "a limit in a stream",
        None,
        {"code": "rate_limit_exceeded", "message": "no"},
        "rate_limited",
    ),
    Row("no words", 500, None, "server"),
    Row("slow", 408, "Request Timeout", "timeout"),
]
