"""Inbound HTTP: any OpenAI, Anthropic or Gemini client gets failover by changing a base URL."""
