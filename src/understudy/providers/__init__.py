"""Outbound I/O: how a request reaches a provider and an answer comes back."""
