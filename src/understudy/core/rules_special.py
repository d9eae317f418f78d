"""Rows that need two facts at once: a word that lies beside a sentence, a status or a vendor."""

from __future__ import annotations

from understudy.core.faults import Fault
from understudy.core.rules import Rule, Sample
from understudy.core.rules_codes import PACE

GOOGLE = ("gemini", "google", "vertex")
DASHSCOPE = ("dashscope", "qwen", "alibaba", "aliyun", "bailian")

# All given conditions of a row must hold here: codes and says too.
PAIRS = (
    Rule(
        "one request above the bucket",
        Fault.CONTEXT_LENGTH,
        Sample(413, '{"error":{"code":"rate_limit_exceeded","message":"Request too large"}}'),
        codes="rate_limit_exceeded tokens",
        status=(413,),
    ),
    Rule(
        "one request above the limit",
        Fault.CONTEXT_LENGTH,
        Sample(429, '{"error":{"message":"Request too large for x on tokens per min (TPM)"}}'),
        says="request too large | single request … exceed | long context request",
        status=(0, 429),
    ),
    Rule(
        "a plan with none of it",
        Fault.OUT_OF_CREDITS,
        Sample(429, '{"status":"RESOURCE_EXHAUSTED","message":"exceeded, limit: 0, model"}'),
        codes="RESOURCE_EXHAUSTED rate_limit_exceeded",
        says="limit: 0, | limit: 0  | limit: 0/ | limit: 0$",
    ),
    Rule(
        "a quota of zero",
        Fault.OUT_OF_CREDITS,
        Sample(429, '{"error":{"details":[{"violations":[{"quotaValue":"0"}]}]}}'),
        codes="quotavalue0",
    ),
    Rule(
        "a Google plan with none of it",
        Fault.OUT_OF_CREDITS,
        Sample(429, "429 You exceeded your current quota, limit: 0, model: x", "gemini"),
        says="limit: 0, | limit: 0$",
        provider=GOOGLE,
    ),
    Rule(
        "Google calls every limit a quota",
        Fault.RATE_LIMIT,
        Sample(429, "429 You exceeded your current quota, check your plan and billing", "gemini"),
        says="exceeded your current quota",
        provider=GOOGLE,
    ),
    Rule(
        "a quota of a minute",
        Fault.RATE_LIMIT,
        Sample(429, '{"error":{"message":"exceeds tpm/rpm limit","code":"insufficient_quota"}}'),
        codes="insufficient_quota",
        says="tpm/rpm | tpm limit | rpm limit | per minute | per min | per second",
    ),
    Rule(
        "exhausted purse",
        Fault.OUT_OF_CREDITS,
        Sample(429, '{"status":"RESOURCE_EXHAUSTED","message":"credits are depleted"}'),
        codes=" ".join(rule.codes for rule in PACE),
        says="""
            credits are depleted | credits … depleted | credits are required | available credits
            out of credits | insufficient balance | insufficient account balance | spending
            spend limit | spend cap
        """,
    ),
    Rule(
        "DashScope calls its pace a quota",
        Fault.RATE_LIMIT,
        Sample(429, '{"error":{"code":"insufficient_quota"}}', provider="dashscope"),
        codes="insufficient_quota",
        provider=DASHSCOPE,
    ),
    Rule(
        "the same by its help page",
        Fault.RATE_LIMIT,
        Sample(429, '{"error":{"code":"insufficient_quota","message":"see help.aliyun.com/x"}}'),
        codes="insufficient_quota",
        says="aliyun | alibabacloud | model-studio",
    ),
    Rule(
        "the same without its word",
        Fault.RATE_LIMIT,
        Sample(429, '{"message":"You exceeded your current quota, see help.aliyun.com/x"}'),
        says="exceeded your current quota … aliyun | exceeded your current quota … alibabacloud",
    ),
    Rule(
        "a quota that comes back soon",
        Fault.RATE_LIMIT,
        Sample(429, '{"detail":"You exceeded your current quota. Please retry in 34.6s."}'),
        says="exceeded your current quota … retry in | exceeded your current quota … try again in",
        status=(429,),
    ),
    Rule(
        "a budget behind a word for keys",
        Fault.OUT_OF_CREDITS,
        Sample(
            401, '{"error":{"type":"auth_error","message":"ExceededBudget: User over budget"}}'
        ),
        codes="auth_error",
        says="over budget | exceededbudget | budget has been exceeded",
    ),
    Rule(
        "a model behind a word for keys",
        Fault.MODEL_NOT_FOUND,
        Sample(
            401, '{"error":{"type":"auth_error","message":"API Key not allowed to access model."}}'
        ),
        codes="auth_error",
        says="not allowed to access model | not allowed to call model",
    ),
    Rule(
        "overflow beside a money word",
        Fault.CONTEXT_LENGTH,
        Sample(400, '{"error":{"code":"insufficient_quota","message":"maximum context length"}}'),
        codes="insufficient_quota insufficient_balance insufficient_credit insufficient_credits "
        "billing_hard_limit_reached",
        says="context length | prompt is too long | too many tokens",
        status=(400, 413),
    ),
    Rule(
        "Cerebras says overflow with silence",
        Fault.CONTEXT_LENGTH,
        Sample(400, provider="cerebras"),
        says="^$",
        status=(400, 413),
        provider=("cerebras",),
    ),
    Rule(
        "a client status for a client that left",
        Fault.CLIENT_DISCONNECT,
        Sample(499, '{"detail":"the client disconnected early"}'),
        # Not `client closed request`: that is only what 499 is called.
        says="""
            client disconnect | client has disconnect | client left | client went away
            cancelled by user | canceled by user | cancelled by the user | canceled by the user
            client closed the | client_disconnect
        """,
        status=(499, 460),
    ),
)

# Asked for by the algorithm itself, each where its evidence is at hand.
HEALING = Rule(
    "a short wait cures this 402",
    Fault.RATE_LIMIT,
    Sample(402, '{"error":{"message":"Please retry in 30 seconds"}}'),
)
EMPTY = Rule("an empty answer", Fault.EMPTY_CONTENT, Sample(200, '{"choices":[]}'))
BROKEN_OFF = Rule(
    "a stream without its end",
    Fault.STALL_MID_STREAM,
    Sample(200, 'data: {"choices":[{"delta":{"content":"Sure"}}]}', stream=True),
)
