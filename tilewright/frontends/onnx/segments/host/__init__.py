"""Operators that run on the host, between native segments: what no loop program can express."""
