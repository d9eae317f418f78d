"""Rehearsal: faults as data, a server that shows them, and a simulator of whole outages."""
