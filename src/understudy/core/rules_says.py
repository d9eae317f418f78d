"""Sentences that name the fault whatever the status, in the order in which they are believed."""

from __future__ import annotations

from understudy.core.faults import Fault
from understudy.core.rules import SERVER, Rule, Sample
from understudy.core.rules_says_access import CREDENTIAL, FILTER, MODEL, NODE

PACED = (402, 429)  # what these statuses call too long, they only call too much

# Sentences that sound like something else; they must be heard first.
LIES = (
    Rule(
        "output cap",
        Fault.PERMANENT,
        Sample(400, '{"message":"The maximum tokens you requested exceeds the model limit"}'),
        says="""
            maximum tokens you requested exceed | maximum allowed number of output tokens
            supports at most … completion tokens | supports at most … output tokens
            range of max_tokens should be | max_tokens … must be less than or equal to
            max_tokens … maximum value for | max_tokens … exceeds the maximum
            max_completion_tokens … exceed | max_output_tokens … exceed
            maxoutputtokens … supported range | completion_tokens is limited
            max_tokens * cannot exceed | length of max output
            max tokens must be less than | maximum output for
        """,
    ),
    Rule(
        "tokens as pace",
        Fault.RATE_LIMIT,
        Sample(400, '{"message":"Too many tokens: wait a little"}'),
        says="""
            too many tokens … wait | too many tokens per | tokens per minute
            tokens per min (tpm) | tokens per day | token bucket
        """,
        unless=(402, 413, *SERVER),
    ),
    Rule(
        "a field, whatever its name is",
        Fault.PERMANENT,
        Sample(400, '{"error":{"message":"Unknown parameter: \'x_rate_limit_y\'."}}'),
        says="""
            unknown parameter | unsupported parameter | unrecognized request argument
            unrecognized parameter | unexpected parameter | unexpected keyword argument
            extra inputs are not permitted | missing required parameter | only support stream
            only supports stream | is deprecated for this model
        """,
        status=(0, 400, 422),
    ),
    Rule(
        "a template that the messages do not fit",
        Fault.PERMANENT,
        Sample(
            500, '{"error":{"code":500,"message":"raise_exception(\'Roles must alternate\')"}}'
        ),
        says="raise_exception | jinja | roles must alternate",
        unless=(429,),
    ),
    Rule(
        "a path, not a model",
        Fault.PERMANENT,
        Sample(404, '{"error":{"message":"Invalid URL (GET /v1/models/chat/completions)"}}'),
        says="""
            invalid url | unknown request url | unrecognized request url | no route
            route not found | cannot post | cannot get | no handler found
        """,
        status=(404, 405),
    ),
    Rule(
        "two readings of a refused model",
        Fault.AUTH,
        Sample(403, '{"message":"not authorized to access model y or it does not exist"}'),
        says="not authorized to access model … not exist | denied on resource",
        status=(401, 403),
    ),
)

CONTEXT = (
    Rule(
        "more than the window",
        Fault.CONTEXT_LENGTH,
        Sample(500, '{"error":{"message":"Context size has been exceeded."}}'),
        says="""
            maximum context length | context length exceeded | context_length_exceeded
            max context length | context size has been exceeded | context window exceed
            availablecontext | available context | configured context size
            context limit | context overflow | context the overflows | context_window_exceeded
            exceed context | exceeds context | exceeds the context | exceeded the context
            exceed the context | exceed … context window | exceed … context length
            exceed … context size | longer than … context | larger than … context
            greater than … context | longer than the maximum model length | larger context length
            reached context length | n_keep … n_ctx | kv cache is full | long context | 上下文
            maximum sequence length | maximum supported sequence length | maximum input length
        """,
        unless=PACED,
    ),
    Rule(
        "prompt too long",
        Fault.CONTEXT_LENGTH,
        Sample(400, '{"error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}'),
        says="""
            prompt is too long | prompt too long | prompt is longer than | prompt exceeds
            prompt length is | prompt token count | prompt contains … tokens | prompt tokens limit
            tokens in the prompt | tokens to keep from the initial prompt | prompt 超长
            input is too long | input too long | input is longer than
            input is too large | too large to process | input length exceeds
            input length … exceeds | input length and | prompt is too big | prompt too big
            range of input length | length of prompt_tokens | text is too long
            conversation is too long | messages too long | messages is too long
            messages are too long | tokens too long | max input characters
            prompt length … exceed | 输入长度 | 输入过长 | 字数太多 | token数量超过
        """,
        unless=PACED,
    ),
    Rule(
        "too many tokens",
        Fault.CONTEXT_LENGTH,
        Sample(400, '{"message":"too many tokens: the prompt cannot exceed 4081"}'),
        says="""
            too many tokens | too many input tokens | input token count … exceed
            input token length | tokens … exceeds the maximum
            exceeds the maximum number of tokens | exceed the maximum number of tokens
            model token limit | token limit exceeded | exceeds … token limit
            exceed … token limit | max message tokens | exceeds the limit of … tokens
            token count … exceeds | must have less than … tokens
            tokens + `max_new_tokens` must be | tokens per submitted batch
            max_tokens must be at least 1, got - | input tokens … exceed | prompt tokens … exceed
            number of tokens … exceed | total tokens limit | tokens … exceed … limit
            max tokens of * exceeded | more than max tokens
            tokens … than the maximum | tokens … exceeds budget | reduce the length of
            reduce your prompt
            reduce the prompt | shorten your
        """,
        unless=PACED,
    ),
    Rule(
        "body too large",
        Fault.CONTEXT_LENGTH,
        Sample(400, '{"error":{"message":"Request payload size exceeds the limit: 9 bytes"}}'),
        says="""
            request too large | request is too large | request too long
            request is too long | request body too large
            request body is too large | request entity too large
            request exceeds the maximum size | request size exceeds | message size … exceeds
            payload size exceeds
            payload too large | payload is too large | content too large
            string too long … maximum length 1048576 | string too long … maximum length 256000
        """,
        unless=PACED,
    ),
    Rule(
        "the word for it in a bad request",
        Fault.CONTEXT_LENGTH,
        Sample(400, '{"error":{"message":"bad context length"}}'),
        says="context length | context window",
        status=(0, 400, 403, 413, 422),
    ),
)

# Time heals a window; a week or more outlasts any session unless its end is known.
WINDOW = (
    Rule(
        "long window with its end",
        Fault.RATE_LIMIT,
        Sample(429, '{"error":{"message":"Weekly limit exhausted. It will reset at noon"}}'),
        says="weekly … reset | monthly … reset | 每周 … 重置 | 每周/每月使用上限",
    ),
    Rule(
        "long window",
        Fault.OUT_OF_CREDITS,
        Sample(429, "your weekly usage limit is used up, upgrade for more"),
        says="""
            weekly usage limit | weekly limit | monthly usage limit | monthly limit
            for this month | this month's | monthly quota | monthly spend
            monthly included credits | calls / month | per month
            billing cycle
        """,
    ),
    Rule(
        "day's free allowance",
        Fault.OUT_OF_CREDITS,
        Sample(429, '{"error":"you have used up your daily free allocation of neurons"}'),
        says="free allocation | free allocated | neurons",
    ),
    Rule(
        "calls itself a rate limit",
        Fault.RATE_LIMIT,
        Sample(403, '{"message":"You have exceeded a secondary rate limit."}'),
        says="""
            rate limit | rate-limit | ratelimit | rate_limit | requests per min
            requests per hour | requests per day | requests per second | calls / minute
            per minute | call volume quota | quota will be replenished
            每分钟 | 每秒 | 请求数已达 | 限制流 | limite de uso | límite de uso | 速率限制
            请求过于频繁 | 流控 | 限流 | 利用制限
        """,
        unless=(402,),
    ),
    Rule(
        "a purse behind the name of a status",
        Fault.OUT_OF_CREDITS,
        Sample(None, "status 429 Too Many Requests: You exceeded your current quota, url: x"),
        says="""
            429 too many requests … current quota | 429 too many requests … insufficient
            429 too many requests … balance
        """,
    ),
    Rule(
        "short window",
        Fault.RATE_LIMIT,
        Sample(429, '{"error":"you have reached your session usage limit, upgrade"}'),
        says="""
            slow down | request rate | reduce the frequency | requests too frequent | hourly
            5-hour | 5 hour | session usage limit | session limit | too many requests
            too many concurrent | concurrency limit | concurrent request
            max organization concurrency | request limit reached | call rate | throttled
            usage limit reached | hit your … limit | limit … resets | (reset after
            capacity exceeded
            并发 | 频率
        """,
        unless=(402, *SERVER),
    ),
)

MONEY = (
    Rule(
        "speaks of balance or credit",
        Fault.OUT_OF_CREDITS,
        Sample(400, '{"error":{"message":"Your credit balance is too low to access the API."}}'),
        says="""
            insufficient … balance | insufficient … credits | account balance | low balance
            balance too low | no balance | add … credits | top-up | insufficient credit
            insufficient fund | insufficient quota | insufficient_quota | balance is insufficient
            balance is not enough | not enough balance | not enough credit | enough credits
            quota is not enough | credit balance | out of credit | no credits left
            no credits remaining | no credits available | have no credits | any credits
            all available credits | credits … depleted | credits … exhausted | credits … expired
            more credits | purchase credits | credit limit | can only afford | zero balance | 余额
            欠费 | 充值 | 额度不足 | 额度已用尽 | 配额已用尽 | 配额不足 | 美元预算 | 预算不足
        """,
    ),
    Rule(
        "speaks of payment",
        Fault.OUT_OF_CREDITS,
        Sample(403, '{"message":"Model access is denied due to INVALID_PAYMENT_INSTRUMENT"}'),
        says="""
            payment required | payment method | payment_instrument | payment instrument | past due
            past invoices | overdue | unpaid | arrear | credit card | add funds | top up
            recharge | billing limit | billing hard limit | billing_hard_limit | billing details
            billing … enabled | enable billing | billing is not | billing account
            check your billing | billed users | prepaid | prepayment | in good standing
        """,
    ),
    Rule(
        "spent what was allowed",
        Fault.OUT_OF_CREDITS,
        Sample(400, '{"error":{"message":"ExceededBudget: over budget","type":"budget"}}'),
        says="""
            spending limit | spend limit | spending cap | spend cap | over budget
            budget has been exceeded | budget exceeded | exceeded budget | max budget
            exceeded your current quota | exceeded your quota | api usage limits | extra usage
            key limit exceeded | user quota | token quota | free quota
            budget limit | request allowance | free credits … restrict | subscription quota
            free tier of the model has been exhausted | free usage limit | budget exhausted
            budget is exhausted | budget has been exhausted | enable overages
        """,
    ),
    Rule(
        "needs a plan",
        Fault.OUT_OF_CREDITS,
        Sample(403, '{"error":{"message":"this model requires a subscription"}}'),
        says="""
            requires a subscription | requires a pro subscription | subscription required
            subscription … expired | inactive subscription | upgrade to a paid
            upgrade to plus | upgrade to pro
            upgrade for access | upgrade your plan to | paid plan | plan … expired
            trial … expired | trial … ended
            套餐已到期
        """,
    ),
    Rule(
        "quota, and no window named",
        Fault.OUT_OF_CREDITS,
        Sample(400, '{"error":{"message":"Quota exceeded"}}'),
        says="quota exceeded | quota has been exceeded | exceeded quota",
        unless=(429, *SERVER),
    ),
)

SPOKEN = (*LIES, *CONTEXT, *WINDOW, *MONEY, *MODEL, *CREDENTIAL, *FILTER, *NODE)
