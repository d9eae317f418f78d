"""OpenAI Chat Completions, a file for each part of it."""

from understudy.dialects.openai_chat.dialect import OpenAIChat, wants_usage

__all__ = ["OpenAIChat", "wants_usage"]
