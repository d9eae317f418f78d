"""Readers of attempts and records: log lines, metrics, traces. They decide nothing."""
