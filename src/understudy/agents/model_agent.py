"""A language model chain as an agent. Its exhaustion is one agent's failure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import msgspec

from understudy.agents.agent import Agent, Capable
from understudy.agents.envelope import IntentEnvelope
from understudy.agents.failure import ErrorCode, ErrorInfo
from understudy.agents.response import AgentResponse
from understudy.core.errors import ChainExhausted, ProviderError
from understudy.core.faults import Fault
from understudy.messages.request import Prompt
from understudy.messages.response import Response
from understudy.model import Model

Ask = Callable[[IntentEnvelope], Prompt]
Answer = Callable[[Response], object]

# What a chain stopped by one fault means to an agent's caller; all other faults: AGENT_ERROR.
CODES: Mapping[Fault, ErrorCode] = MappingProxyType(
    {
        Fault.AUTH: ErrorCode.UNAUTHORIZED,
        Fault.OUT_OF_CREDITS: ErrorCode.UNAUTHORIZED,
        Fault.RATE_LIMIT: ErrorCode.RATE_LIMIT,
        Fault.CONTEXT_LENGTH: ErrorCode.PAYLOAD_TOO_LARGE,
        Fault.STALL_PRE_FIRST_BYTE: ErrorCode.AGENT_TIMEOUT,
        Fault.STALL_MID_STREAM: ErrorCode.AGENT_TIMEOUT,
    }
)


def prompt_of(envelope: IntentEnvelope) -> str:
    """The payload if it is a text, its `prompt` or `text`, or else the whole of it as JSON."""
    payload = envelope.payload
    if isinstance(payload, str):
        return payload
    if isinstance(payload, dict):
        for name in ("prompt", "text"):
            if isinstance(text := payload.get(name), str):
                return text
    return msgspec.json.encode(payload).decode()


def payload_of(response: Response) -> object:
    return {"text": response.text, "model": response.model}


class ModelAgent(Agent):
    """Answers an intent with a chain. `ask` makes the prompt, `answer` makes the payload."""

    def __init__(
        self,
        name: str,
        capability: Capable,
        model: Model,
        *,
        node_priority: int = 100,
        ask: Ask = prompt_of,
        answer: Answer = payload_of,
    ) -> None:
        super().__init__(name, self._answer, [capability], node_priority=node_priority)
        self.model = model
        self._ask, self._payload = ask, answer

    async def _answer(self, envelope: IntentEnvelope) -> AgentResponse:
        try:
            response = await self.model.generate(self._ask(envelope))
        except ChainExhausted as error:
            return AgentResponse.failure(_exhausted(error))
        except ProviderError as error:
            return AgentResponse.failure(_stopped(error))
        return AgentResponse.success(self._payload(response))


def _exhausted(error: ChainExhausted) -> ErrorInfo:
    attempts = [f"{attempt.target}={attempt.word}" for attempt in error.attempts]
    details: dict[str, object] = {"attempts": attempts, "retry_after": error.retry_after}
    return ErrorInfo(ErrorCode.AGENT_UNAVAILABLE, str(error), True, details)


def _stopped(error: ProviderError) -> ErrorInfo:
    code = CODES.get(error.fault, ErrorCode.AGENT_ERROR)
    details: dict[str, object] = {"fault": str(error.fault), "target": error.target}
    return ErrorInfo(code, str(error), False, details)
