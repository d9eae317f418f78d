"""Anthropic's Messages API, a file for each part of it."""

from understudy.dialects.anthropic.dialect import COUNT_TOKENS_PATH, Anthropic

__all__ = ["COUNT_TOKENS_PATH", "Anthropic"]
