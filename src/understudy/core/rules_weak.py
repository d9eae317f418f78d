"""What decides when nothing better does: the status, generic words, and words without a status."""

from __future__ import annotations

from understudy.core.faults import Fault
from understudy.core.rules import SERVER, SILENT, Rule, Sample

STATUS = (
    Rule(
        "status of a bad key",
        Fault.AUTH,
        Sample(401),
        status=(401, 403, 451, 434),
    ),
    Rule(
        "status of money",
        Fault.OUT_OF_CREDITS,
        Sample(402),
        status=(402,),
    ),
    Rule(
        "status of pace",
        Fault.RATE_LIMIT,
        Sample(429),
        status=(429, 420),
    ),
    Rule(
        "status of size",
        Fault.CONTEXT_LENGTH,
        Sample(413, "no"),
        status=(413,),
    ),
    Rule(
        "status of a bad request",
        Fault.PERMANENT,
        Sample(404),
        status=(
            400,
            404,
            405,
            406,
            410,
            411,
            412,
            414,
            415,
            416,
            417,
            422,
            426,
            431,
            435,
            494,
            498,
        ),
    ),
    Rule(
        "status of a passing trouble",
        Fault.TRANSIENT,
        Sample(503),
        status=(408, 409, 421, 423, 424, 425, 444, 449, 460, 499, *SERVER),
    ),
)

WORDS = (
    Rule(
        "generic word for a sick server",
        Fault.TRANSIENT,
        Sample(200, '{"error":{"type":"overloaded_error","message":"x"}}'),
        codes="""
            overloaded_error engine_overloaded_error server_is_overloaded server_overloaded
            slow_down server_error api_error internal_error INTERNAL internal_server_error
            InternalServerException InternalFailure InternalServiceError SystemError
            service_unavailable ServiceUnavailableException UNAVAILABLE unavailable_error
            TEMPORARILY_UNAVAILABLE upstream_error provider_error processing_error
            connection_error APIConnectionError bad_gateway gateway_timeout timeout_error Timeout
            APITimeoutError RequestTimeOut DEADLINE_EXCEEDED ABORTED CANCELLED UNKNOWN
            ModelErrorException ModelStreamErrorException ModelTimeoutException
            ModelNotReadyException generation incomplete_generation stream_error stream_read_error
            finish:error
            do_request_failed bad_response_status_code network_error malformed_response
            malformed_function_call
        """,
    ),
    Rule(
        "generic word for no entry",
        Fault.AUTH,
        Sample(200, '{"error":{"type":"permission_error","message":"x"}}'),
        codes="""
            permission_error PERMISSION_DENIED PermissionDeniedError unauthorized forbidden
            AccessDeniedException access_denied AuthorizationError request_forbidden
            access_terminated access_terminated_error
        """,
    ),
    Rule(
        "generic word for a bad request",
        Fault.PERMANENT,
        Sample(200, '{"error":{"type":"invalid_request_error","message":"x"}}'),
        codes="""
            invalid_request_error invalid_request BadRequestError ValidationException
            INVALID_ARGUMENT InvalidParameter InvalidParameterValue invalid_params
            invalid_parameter_error
            FAILED_PRECONDITION OUT_OF_RANGE UNIMPLEMENTED UnprocessableEntityError
            unprocessable_entity UnsupportedParamsError validation not_found_error NOT_FOUND
            OperationNotSupported model_no_support_for_function
            error:1210 error:1213 error:1214 error:1215 baseresp:2013
        """,
    ),
)

# Heard only when no status decides: a 200 that is no answer, or a text without a status.
BARE = (
    Rule(
        "nothing came, in words",
        Fault.EMPTY_CONTENT,
        Sample(None, "Empty response from the model after 3 retries"),
        says="""
            empty response | response is empty | response was empty | response empty
            response_empty | empty completion | returned an empty
            returned empty | no content … returned | returned no content | returned no text
            no response was returned | not return a response | not provide any assistant
            no candidates | none were returned | no output generated | no usable output
            for empty content | empty output | empty model output
        """,
        status=SILENT,
    ),
    Rule(
        "pace, in words",
        Fault.RATE_LIMIT,
        Sample(None, "Resource exhausted"),
        says="""
            resource exhausted | resource has been exhausted | request limit | throttl
            reached the limit | reached your limit
        """,
        status=SILENT,
    ),
    Rule(
        "bad key, in words",
        Fault.AUTH,
        Sample(None, "Unauthorized"),
        says="""
            unauthorized | forbidden | permission denied | access denied | not authenticated
        """,
        status=SILENT,
    ),
    Rule(
        "bad request, in words",
        Fault.PERMANENT,
        Sample(200, "data: request validation failed: unsupported x\n\n", stream=True),
        says="""
            validation failed | validation error | invalid request | bad request
            rejected the request | does not support | not eligible
            not found for url
        """,
        status=SILENT,
    ),
    Rule(
        "sick server, in words",
        Fault.TRANSIENT,
        Sample(200, '{"error":{"message":"All of them are busy."}}'),
        says="""
            overloaded | high demand | at capacity | no capacity | over capacity | unavailable
            internal error
            server error | server had an error | bad gateway | try again later | timed out
            timeout | deadline exceeded | upstream | busy | canceled | cancelled | aborted
            heavy load | high load | heavy traffic | high traffic | loading | failed to generate
            finish_reason: error | no slots available | 稍后重试 | 稍后再试 | 繁忙 | 网络 | 超时
            服务器 | 系统错误 | 系统异常 | 暂时不可用
        """,
        status=SILENT,
    ),
)
