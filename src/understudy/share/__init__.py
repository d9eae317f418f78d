"""Health shared between workers and hosts. Who has no neighbours goes on alone."""
