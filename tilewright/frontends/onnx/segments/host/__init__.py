"""Operators that run on the host, between native stages: what no loop program can express."""
