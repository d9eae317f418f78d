"""Google's generateContent, a file for each part of it."""

from understudy.dialects.gemini.dialect import Gemini

__all__ = ["Gemini"]
