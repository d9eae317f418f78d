"""Sentences about what is out of reach: the model, the door, the topic, the machine."""

from __future__ import annotations

from understudy.core.faults import Fault
from understudy.core.rules import SERVER, Rule, Sample

MODEL = (
    Rule(
        "model said to be missing",
        Fault.MODEL_NOT_FOUND,
        Sample(404, '{"error":"model \\"x\\" not found, try pulling it first"}'),
        says="""
            ^model: *$ | model … not found | model … does not exist | model … doesn't exist
            model … not exist | found the model | no such model | find model | find the model
            unrecognized model | not a supported model | model … not recognized
            model … not activated | unknown engine | no engine | no models loaded | unknown model
            invalid model | not a valid model | model identifier is invalid | model id is invalid
            resolve the foundation model | model name is invalid | llm provider not provided
            model_not_found | no 'model_name' | 模型不存在
        """,
        unless=(402, 429),
    ),
    Rule(
        "deployment said to be missing",
        Fault.MODEL_NOT_FOUND,
        Sample(404, '{"error":{"message":"No endpoints found for a/b."}}'),
        says="""
            deployment … does not exist | deployment … not found | no endpoints found
            no allowed providers | no available channel | not found for account
            version does not exist | not deployed | no endpoints available | has no provider
            endpoint that does not exist | endpoint with name … not exist
            endpoint … is not running | endpoint * of account | endpoint is paused | 无可用渠道
        """,
        unless=(429,),
    ),
    Rule(
        "model withdrawn",
        Fault.MODEL_NOT_FOUND,
        Sample(410, '{"error":{"message":"Model x is no longer available"}}'),
        says="""
            model … no longer available | model … no longer supported | model … no longer exist
            model … no longer served | model … no longer offered | model … decommissioned
            model … deprecated | model … retired | model … discontinued | model … sunset
            model … deactivated | model … removed | end of its life | end of life
            provider as legacy | 已下线
        """,
        unless=(429,),
    ),
    Rule(
        "model not served here",
        Fault.MODEL_NOT_FOUND,
        Sample(400, '{"detail":"Model x is not supported. Supported models are y."}'),
        says="""
            model not supported | provider for model | model with key
            model is not supported | model * is not supported | model * not supported
            unsupported model | model … not available | on-demand throughput
            model … unavailable in | not servable
            inference profile | unable to access … model | too large to be loaded
            not supported by any provider | model … is disabled
        """,
        unless=(429, *SERVER),
    ),
    Rule(
        "model not allowed here",
        Fault.MODEL_NOT_FOUND,
        Sample(403, '{"message":"You do not have access to the model with this ID"}'),
        says="""
            have access to … model | access to … models | allowed to access … model
            access to model
            access the model | not allowed to use … model | permission to use … model
            model is gated | to access the requested model
            verified to use the model | not included in … plan | plan not support model
            does not include … model | requires terms acceptance | model terms
            cannot access model | authorized to access this model
        """,
        unless=(429,),
    ),
    Rule(
        "a 404 that names a model",
        Fault.MODEL_NOT_FOUND,
        Sample(404, '{"error":{"message":"no luck with the model x"}}'),
        says="model | deployment | is not available. please use",
        status=(404,),
    ),
)

CREDENTIAL = (
    Rule(
        "key said to be bad",
        Fault.AUTH,
        Sample(400, '{"error":{"message":"API key not valid. Please pass a valid API key."}}'),
        says="""
            api key … revoked | api key … disabled | api key … expired | api key … missing
            api key … required | api key … incorrect | wrong api key | api key not valid
            api key not found | api key … invalid | api key … leaked | invalid api key
            invalid api_key | invalid api-key | invalid api token | invalid x-api-key
            incorrect api key | no api key | missing api key | api key is not set
            api key not set | api_key not set | api_key is not set | api_key … must be set
            no credentials
            api_key environment variable | key is not configured | key not configured
            no key configured | no auth credentials | no auth available
            invalid proxy server token | 无效的令牌 | 令牌状态不可用 | 身份验证
        """,
        unless=(429,),
    ),
    Rule(
        "token said to be bad",
        Fault.AUTH,
        Sample(400, '{"message":"The security token included in the request is expired"}'),
        says="""
            not logged in | authentication required | please log in | please login
            permission … denied | expired timestamp | invalid bearer token | auth cookie
            security token | refresh token | sign in again
            log in again
            login again | token is invalid | token is expired | token has expired
            token expired | jwt expired | invalid jwt | token seems invalid
            invalid access token | invalid authentication
            invalid credentials | authentication fail | authentication error | locate credentials
            authorization fail
            load credentials | default credentials | credential is only authorized | oauth token
            access token invalid | token not set | user token is required | signature is correct
            credentials could not be validated | multiple authentication credentials
        """,
        unless=(429,),
    ),
    Rule(
        "not from here",
        Fault.AUTH,
        Sample(400, '{"error":{"message":"User location is not supported for the API use."}}'),
        says="""
            your region | your location | unsupported region | region not supported
            location is not supported | country, region | unsupported country
            region is not supported | your country | unsupported countries | geographic
        """,
        unless=(429,),
    ),
    Rule(
        "account said to be shut out",
        Fault.AUTH,
        Sample(400, '{"error":{"message":"This organization has been disabled."}}'),
        says="""
            organization has been disabled | organization has been restricted
            account has been disabled | account has been suspended | account is suspended
            account has been blocked | account … deactivated | has not been used in project
            account is not authorized | is not authorized to perform
            access was terminated | access has been terminated | no such organization
            access to the organization | organization has disabled | not licensed
            can only be used from within
        """,
        unless=(429,),
    ),
    Rule(
        "shut out without a word why",
        Fault.AUTH,
        Sample(400, '{"message":"ValidationException: Operation not allowed"}'),
        says="operation not allowed",
        status=(0, 400, 403),
    ),
)

FILTER = (
    Rule(
        "filter speaking",
        Fault.PERMANENT,
        Sample(403, '{"error":{"message":"requires moderation. Your input was flagged."}}'),
        says="""
            violates … polic | violation of … polic | unsafe content | harmful content
            flagged as | high risk | content management policy | content policy | content filter
            content_filter | safety system | usage polic | usage guidelines | was flagged
            moderation | sensitive content | inappropriate content | content exists risk
            blocked input | blocked output | safety polic | safety reasons | prohibited content
            guardrail | matched public code | responsible ai | content you provided … blocked
            prompt blocked | prompt was blocked | blocked due to safety | blocked due to prohibited
            response was blocked | 敏感 | 不安全 | 审核 | 违规
        """,
        unless=(429, 401),
    ),
)

NODE = (
    Rule(
        "sick node behind a client status",
        Fault.TRANSIENT,
        Sample(400, '{"status":400,"detail":"Function x: DEGRADED function cannot be invoked"}'),
        says="""
            high volume of traffic | closed connection before | closed the connection before
            no healthy deployments | currently overloaded | is overloaded | are overloaded
            no longer running
            not in running state | degraded function | model is unloaded | model unloaded
            model reloaded
            model has crashed | model crashed | process has terminated | failed to load model
            channel error | loading model | model loading | is currently loading
            model is loading | cuda error | out of memory | upstream connect error
            reset before headers | no healthy upstream | connection termination
            prediction interrupted | model not loaded | not loaded yet | not ready for inference
            connection refused
            tunnel connection failed | payload is not completed | due to an internal error
            model is unavailable | temporarily unavailable | currently unavailable
            failed to get response from provider | no response from provider
            not respect the required format
        """,
        unless=(401, 402, 429),
    ),
)
