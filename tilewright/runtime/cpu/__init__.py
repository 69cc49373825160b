"""Execution on CPUs."""
