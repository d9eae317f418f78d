"""Ollama's own chat API, a file for each part of it."""

from understudy.dialects.ollama.dialect import Ollama

__all__ = ["Ollama"]
