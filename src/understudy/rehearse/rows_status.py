# ruff: noqa: E501 - tables: rows are read across
"""Rows of the catalogue: refusals by status and body, in the words of several vendors."""

from __future__ import annotations

from understudy.core.faults import Fault
from understudy.rehearse.named import BLIP, LOUD, ON, OVER, PACE, Named, status

T, RATE, MONEY = Fault.TRANSIENT, Fault.RATE_LIMIT, Fault.OUT_OF_CREDITS
LONG, AUTH, NO_MODEL = Fault.CONTEXT_LENGTH, Fault.AUTH, Fault.MODEL_NOT_FOUND
BAD = Fault.PERMANENT
PAGE = "<html><head><title>503 Service Temporarily Unavailable</title></head></html>"
# Both dates of a host whose clock is years off: the difference is what counts.
DATE = ("date", "Sat, 01 Jan 2022 00:00:00 GMT")
SLOW_DOWN = (
    '{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}'
)
CLAUDE_PACE = '{"type":"error","error":{"type":"rate_limit_error","message":"Too many requests"}}'

# fmt: off
SERVERS = (
    status("500", 500, '{"error":{"message":"The server had an error","type":"server_error"}}', T, BLIP),
    status("502-page", 502, "<html><body><h1>502 Bad Gateway</h1><hr>nginx</body></html>", T, BLIP, means="a proxy's page"),
    status("503-page", 503, PAGE, T, BLIP, means="a proxy's page"),
    status("503-empty", 503, "", T, BLIP, means="503 without a body"),
    status("503-delay", 503, '{"error":{"message":"Service unavailable"}}', T, BLIP, ("retry-after", "7"), after=7.0),
    status("504", 504, '{"error":{"code":504,"message":"Deadline expired","status":"DEADLINE_EXCEEDED"}}', T, BLIP),
    status("520-page", 520, "<html><title>520: Web server is returning an unknown error</title></html>", T, BLIP, means="a CDN's page"),
    status("529", 529, '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}', T, BLIP),
    status("408", 408, "", T, BLIP),
)
PACES = (
    status("429", 429, SLOW_DOWN, RATE, PACE, means="a rate limit that names no delay"),
    status("429-seconds", 429, SLOW_DOWN, RATE, ON, ("retry-after", "7"), after=7.0),
    status("429-float", 429, SLOW_DOWN, RATE, ON, ("retry-after", "7.5"), after=7.5),
    status("429-ms", 429, SLOW_DOWN, RATE, ON, ("retry-after-ms", "7500"), after=7.5),
    status("429-date", 429, SLOW_DOWN, RATE, ON, DATE, ("retry-after", "Sat, 01 Jan 2022 00:00:07 GMT"), after=7.0,
           means="a delay as a date, by a clock years off"),
    status("429-go", 429, SLOW_DOWN, RATE, ON, ("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", "1m7s"),
           after=67.0, means="the reset of a bucket, as a Go duration"),
    status("429-rfc3339", 429, CLAUDE_PACE, RATE, ON, DATE, ("anthropic-ratelimit-requests-remaining", "0"),
           ("anthropic-ratelimit-requests-reset", "2022-01-01T00:00:07Z"), after=7.0, means="the reset of a bucket, as a time"),
    status("429-google", 429, '{"error":{"code":429,"message":"Resource exhausted","status":"RESOURCE_EXHAUSTED","details":'
           '[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"7s"}]}}', RATE, ON, after=7.0, means="a delay in the body"),
    status("429-prose", 429, '{"error":{"message":"Rate limit reached. Please try again in 7.5s.","code":"rate_limit_exceeded"}}',
           RATE, ON, after=7.5, means="a delay in a sentence"),
    status("429-hour", 429, SLOW_DOWN, RATE, ON, ("retry-after", "3600"), after=3600.0, means="longer than any policy waits"),
    status("429-minus", 429, SLOW_DOWN, RATE, PACE, ("retry-after", "-1"), means="a delay that makes no sense"),
)
MONEYS = (
    status("402", 402, '{"error":{"message":"Payment required"}}', MONEY, ON),
    status("402-balance", 402, '{"error":{"message":"Insufficient Balance","type":"unknown_error","code":"invalid_request_error"}}', MONEY, ON),
    status("429-quota", 429, '{"error":{"message":"You exceeded your current quota, please check your plan and billing details",'
           '"type":"insufficient_quota","code":"insufficient_quota"}}', MONEY, ON, means="no money, dressed as a rate limit"),
    status("400-credit", 400, '{"type":"error","error":{"type":"invalid_request_error","message":'
           '"Your credit balance is too low to access the API"}}', MONEY, ON, means="no money, dressed as a bad request"),
    status("403-credits", 403, '{"error":{"message":"Your team has used all available credits","code":403}}', MONEY, ON,
           means="no money, dressed as a bad key"),
)
OVERFLOWS = (
    status("overflow-openai", 400, '{"error":{"message":"This model\'s maximum context length is 8192 tokens. However, your messages '
           'resulted in 9001 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}', LONG, OVER),
    status("overflow-anthropic", 400, '{"type":"error","error":{"type":"invalid_request_error","message":'
           '"prompt is too long: 210000 tokens > 200000 maximum"}}', LONG, OVER),
    status("overflow-gemini", 400, '{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens '
           'allowed (1048576).","status":"INVALID_ARGUMENT"}}', LONG, OVER),
    status("overflow-llamacpp", 500, '{"error":{"code":500,"message":"the request exceeds the available context size",'
           '"type":"exceed_context_size_error"}}', LONG, OVER),
    status("413", 413, '{"error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}', LONG, OVER),
)
REFUSALS = (
    status("401", 401, '{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","code":"invalid_api_key"}}', AUTH, LOUD),
    status("403", 403, '{"type":"error","error":{"type":"permission_error","message":"Your key may not use this resource"}}', AUTH, LOUD),
    status("404-model", 404, '{"error":{"message":"The model `m` does not exist","type":"invalid_request_error","code":"model_not_found"}}', NO_MODEL, ON),
    status("404-anthropic", 404, '{"type":"error","error":{"type":"not_found_error","message":"model: m"}}', NO_MODEL, ON),
    status("400", 400, '{"error":{"message":"temperature must be at most 2","type":"invalid_request_error","param":"temperature"}}', BAD, OVER),
    status("422", 422, '{"detail":[{"loc":["body","messages"],"msg":"field required","type":"value_error.missing"}]}', BAD, OVER),
)
# fmt: on
ROWS: tuple[Named, ...] = (*SERVERS, *PACES, *MONEYS, *OVERFLOWS, *REFUSALS)
