"""OpenAI Chat Completions, a file for each part of it."""

from understudy.dialects.openai_chat.dialect import OpenAIChat, wants_usage
from understudy.dialects.openai_chat.request import wants_functions

__all__ = ["OpenAIChat", "wants_functions", "wants_usage"]
