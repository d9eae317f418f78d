"""OpenAI's Responses API, a file for each part of it."""

from understudy.dialects.openai_responses.dialect import OpenAIResponses

__all__ = ["OpenAIResponses"]
