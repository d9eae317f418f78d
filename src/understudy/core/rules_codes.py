"""Machine words that name the fault by themselves, heaviest meaning first.

Generic words (`invalid_request_error`, `server_error`) are in `rules_weak.py`: they only speak
when nothing better does. Spelling does not matter here: case, separators and the endings `Error`
and `Exception` are ignored. A vendor's number is written with the object it stands in:
`error:` Zhipu, `baseresp:` and `said:` (in the message) MiniMax, `flat:` Mistral, `errors:`
Cloudflare, `top:` SiliconFlow.
"""

from __future__ import annotations

from understudy.core.faults import Fault
from understudy.core.rules import SERVER, Rule, Sample

CONTEXT = (
    Rule(
        "context overflow",
        Fault.CONTEXT_LENGTH,
        Sample(400, '{"error":{"code":"context_length_exceeded"}}'),
        codes="""
            context_length_exceeded context_window_exceeded ContextWindowExceededError
            model_context_window_exceeded exceed_context_size_error max_context_length_exceeded
            context_too_large context_overflow input_too_long input_too_large
            input_length_exceeded
            prompt_too_long too_many_prompt_tokens too_many_input_tokens tokens_too_long
            characters_too_long
            model_max_prompt_tokens_exceeded max_prompt_tokens_exceeded flat:3051 error:1261
        """,
    ),
    Rule(
        "token limit",
        Fault.CONTEXT_LENGTH,
        Sample(413, '{"error":{"code":"tokens_limit_reached"}}'),
        codes="tokens_limit_reached token_limit_exceeded",
        unless=(402, 429),  # there it is one of pace
    ),
    Rule(
        "request too large",
        Fault.CONTEXT_LENGTH,
        Sample(None, '{"error":{"type":"request_too_large"}}'),
        codes="""
            request_too_large payload_too_large request_entity_too_large content_too_large
            RequestBodyTooLarge BadRequest.TooLarge RequestSizeLimitExceeded errors:3006
        """,
    ),
)

MONEY = (
    Rule(
        "quota spent",
        Fault.OUT_OF_CREDITS,
        Sample(429, '{"error":{"code":"insufficient_quota","message":"check your plan"}}'),
        codes="""
            insufficient_quota exceeded_current_quota_error insufficient_user_quota
            pre_consume_token_quota_failed token_quota_reached quote_exceeded free_quota_exhausted
            AllocationQuota.FreeTierOnly FailedOperation.ResourcePackExhausted usage_not_included
            monthly_limit_exceeded
        """,
    ),
    Rule(
        "no balance",
        Fault.OUT_OF_CREDITS,
        Sample(403, '{"code":403,"reason":"NOT_ENOUGH_BALANCE","message":"not enough"}'),
        codes="""
            insufficient_balance insufficient_credit insufficient_credits insufficient_funds
            not_enough_balance not_enough_credits reject_no_credit no_credits out_of_credits
            credits_exhausted credit_limit_exceeded credit_balance_too_low
            INSUFFICIENT_G1_CREDITS_BALANCE
        """,
    ),
    Rule(
        "bill unpaid",
        Fault.OUT_OF_CREDITS,
        Sample(400, '{"code":"Arrearage","message":"Access denied."}'),
        codes="""
            Arrearage AccountOverdueError PrepaidBillOverdue PostpaidBillOverdue
            OperationDenied.ServiceOverdue CommodityNotPurchased AccessDenied.Unpurchased
            payment_required payment_method_required INVALID_PAYMENT_INSTRUMENT
            customer_verification_required subscription_required subscription_expired
            trial_expired
        """,
    ),
    Rule(
        "billing off or capped",
        Fault.OUT_OF_CREDITS,
        Sample(403, '{"error":{"details":[{"reason":"BILLING_DISABLED"}]}}'),
        codes="""
            BILLING_DISABLED billing_not_active billing_hard_limit_reached billing_error
            billing_limit_reached hard_limit_reached spend_limit_exceeded spend_limit_reached
            spending_limit_reached budget_exceeded exceeded_budget BudgetExceededError
            budget_limit_exceeded
        """,
    ),
    Rule(
        "vendor number for money",
        Fault.OUT_OF_CREDITS,
        Sample(200, '{"base_resp":{"status_code":1008,"status_msg":"balance"}}'),
        codes="""
            baseresp:1008 said:1008 error:1113 top:1113 said:1113 error:1309 errors:3036
            errors:4006 top:30001
        """,
    ),
)

MODEL = (
    Rule(
        "model missing",
        Fault.MODEL_NOT_FOUND,
        Sample(404, '{"error":{"code":"model_not_found"}}'),
        codes="""
            model_not_found ModelNotFoundError ProxyModelNotFoundError model_not_exist
            no_such_model unknown_model invalid_model invalid_model_error invalid_model_id
            DeploymentNotFound deployment_not_found ENDPOINT_NOT_FOUND
            InvalidEndpointOrModel.NotFound InvalidEndpoint no_available_model_endpoints flat:1500
            error:1211 errors:5007 errors:3042 top:20012
        """,
    ),
    Rule(
        "model withdrawn or not served",
        Fault.MODEL_NOT_FOUND,
        Sample(400, '{"error":{"code":"model_decommissioned"}}'),
        codes="""
            model_decommissioned model_deprecated model_retired model_disabled model_archived
            model_is_deactivated model_not_available
            unavailable_model model_not_supported unsupported_model unsupported_model_error
            unsupported_api_for_model ModelProtocolUnsupported
            dedicated_endpoint_not_running
        """,
    ),
    Rule(
        "model not allowed",
        Fault.MODEL_NOT_FOUND,
        Sample(401, '{"error":{"type":"key_model_access_denied"}}'),
        codes="""
            key_model_access_denied team_model_access_denied user_model_access_denied
            org_model_access_denied project_model_access_denied model_access_denied
            Model.AccessDenied model_permission_blocked_org model_permission_blocked_project
            model_terms_required ModelNotOpen error:1311 baseresp:2061 said:2061
        """,
    ),
)

CREDENTIAL = (
    Rule(
        "key refused",
        Fault.AUTH,
        Sample(400, '{"error":{"details":[{"reason":"API_KEY_INVALID"}]}}'),
        codes="""
            invalid_api_key incorrect_api_key_error API_KEY_INVALID expired_api_key expired_key
            missing_api_key no_api_key token_not_found_in_db authentication_error
            invalid_authentication_error authentication_failed UNAUTHENTICATED CREDENTIALS_MISSING
            NoCredentialsError DefaultCredentialsError RefreshError auth_error failed_to_auth
            auth_unavailable auth_not_found channel:invalid_key channel:no_available_key
            AuthFailure AppIdNoAuthError flat:1001
        """,
    ),
    Rule(
        "token refused",
        Fault.AUTH,
        Sample(403, '{"__type":"ExpiredTokenException","message":"expired"}'),
        codes="""
            ExpiredTokenException token_expired invalid_token token_revoked token_invalidated
            refresh_token_reused invalid_grant ACCESS_TOKEN_EXPIRED ACCESS_TOKEN_TYPE_UNSUPPORTED
            ACCESS_TOKEN_SCOPE_INSUFFICIENT authentication_token_expired
            authentication_token_not_valid UnrecognizedClientException InvalidSignatureException
            SignatureDoesNotMatch InvalidClientTokenId MissingAuthenticationTokenException
            IncompleteSignatureException RequestExpired
        """,
    ),
    Rule(
        "account shut out",
        Fault.AUTH,
        Sample(401, '{"error":{"code":"account_deactivated"}}'),
        codes="""
            account_deactivated account_suspended organization_restricted invalid_organization
            mismatched_organization mismatched_project CONSUMER_SUSPENDED CONSUMER_INVALID
            SERVICE_DISABLED API_KEY_SERVICE_BLOCKED API_KEY_HTTP_REFERRER_BLOCKED
            API_KEY_IP_ADDRESS_BLOCKED ip_not_authorized authorization_rejected
            user_authorization_failed no_associated_service_instance_error blocked_api_access
            errors:3023
        """,
    ),
    Rule(
        "wrong place",
        Fault.AUTH,
        Sample(403, '{"error":{"code":"unsupported_country_region_territory"}}'),
        codes="""
            unsupported_country_region_territory unsupported_region region_not_supported
            LOCATION_POLICY_VIOLATED
        """,
    ),
    Rule(
        "vendor number for the key",
        Fault.AUTH,
        Sample(200, '{"base_resp":{"status_code":1004,"status_msg":"login fail"}}'),
        codes="""
            baseresp:1004 baseresp:2049 said:2049 error:1000 error:1001 error:1002 error:1003
            error:1004 error:1110 error:1111 error:1112 error:1121 error:1220 errors:10000
            errors:9109
        """,
    ),
)

PACE = (
    Rule(
        "rate limit",
        Fault.RATE_LIMIT,
        Sample(500, '{"error":{"type":"rate_limit_error","message":"slower"}}'),
        codes="""
            rate_limit_error rate_limit rate_limited rate_limit_exceeded rate_limit_reached
            rate_limit_reached_error rate_limit_reached_requests rate_limit_reached_tokens
            rpm_rate_limit_exceeded tpm_rate_limit_exceeded AccountRateLimitExceeded
            model_rate_limit user_global_rate_limited user_model_rate_limited
            integration_rate_limited too_many_requests TooManyRequestsException
            RequestLimitExceeded requests_limit_exceeded limit_requests limit_burst_rate
            RequestBurstTooFast dynamic_request_limited dynamic_token_limited
            concurrency_limit_exceeded model_cooldown
        """,
    ),
    Rule(
        "throttled",
        Fault.RATE_LIMIT,
        Sample(
            400,
            '{"message":"slower"}',
            headers={"x-amzn-errortype": "ThrottlingException:http://x"},
        ),
        codes="""
            ThrottlingException Throttling ThrottledException Throttling.RateQuota
            Throttling.AllocationQuota Throttling.BurstRate Throttling.User
            ProvisionedThroughputExceededException
        """,
    ),
    Rule(
        "quota of a window",
        Fault.RATE_LIMIT,
        Sample(429, '{"status":"RESOURCE_EXHAUSTED","message":"check your plan and billing"}'),
        codes="""
            RESOURCE_EXHAUSTED QUOTA_EXHAUSTED RESOURCE_QUOTA_EXCEEDED
            ServiceQuotaExceededException token_quota_exceeded request_quota_exceeded
            usage_limit_reached usage_limit_exceeded consumption_limit_reached
        """,
        unless=(402,),
    ),
    Rule(
        "no capacity",
        Fault.RATE_LIMIT,
        Sample(498, '{"error":{"code":"capacity_exceeded"}}'),
        codes="""
            capacity_exceeded service_tier_capacity_exceeded MODEL_CAPACITY_EXHAUSTED flat:3505
            error:1305 said:1305 error:1312 errors:3040
        """,
        unless=SERVER,
    ),
    Rule(
        "vendor number for pace",
        Fault.RATE_LIMIT,
        Sample(500, '{"error":{"code":"1302","message":"x"}}'),
        codes="""
            error:1302 error:1303 error:1304 error:1308 error:1310 error:1313 said:1302 said:1308
            flat:1300 baseresp:1002 baseresp:1039 baseresp:1041 baseresp:2045 baseresp:2056
            said:1002 said:2056
        """,
    ),
)

FILTER = (
    Rule(
        "content filter",
        Fault.PERMANENT,
        Sample(403, '{"error":{"code":"content_filter"}}'),
        codes="""
            content_filter content_policy_violation ContentPolicyViolationError
            image_content_policy_violation ResponsibleAIPolicyViolation moderation_blocked
            cyber_policy
            prompt_blocked invalid_prompt safety_check_failed data_inspection_failed
            DataInspectionFailed InvalidParameter.DataInspection sensitive_words_detected
            SensitiveContentDetected InputTextSensitiveContentDetected
            OutputTextSensitiveContentDetected PROHIBITED_CONTENT error:1301 baseresp:1026
            baseresp:1027 said:1026 said:1027 censorship_blocked
        """,
    ),
)

NODE = (
    Rule(
        "the model's own slip",
        Fault.TRANSIENT,
        Sample(400, '{"error":{"code":"tool_use_failed","message":"bad call"}}'),
        codes="""
            tool_use_failed json_validate_failed output_parse_failed unexpected_output
            websocket_connection_limit_reached
        """,
    ),
    Rule(
        "vendor number for a sick node",
        Fault.TRANSIENT,
        Sample(200, '{"base_resp":{"status_code":1001,"status_msg":"x"}}'),
        codes="""
            baseresp:1000 baseresp:1001 baseresp:1013 baseresp:1024 baseresp:1033 error:1230
            error:1234 errors:3007 errors:3008 top:50505
        """,
    ),
)

# Words of a sick server that weigh more than a client status; others of them do not.
SICK = (
    Rule(
        "sick server behind a client status",
        Fault.TRANSIENT,
        Sample(400, '{"error":{"type":"overloaded_error","message":"x"}}'),
        codes="""
            overloaded_error engine_overloaded_error server_is_overloaded server_overloaded
            server_error internal_server_error InternalServerException service_unavailable
            ServiceUnavailableException UNAVAILABLE DEADLINE_EXCEEDED timeout_error
            gateway_timeout bad_gateway
        """,
        status=(400, 403, 404, 405, 422),
    ),
)

# The order of weight. Context before money: contract F4.
STRONG = (CONTEXT, MONEY, MODEL, CREDENTIAL, PACE, FILTER, NODE, SICK)
