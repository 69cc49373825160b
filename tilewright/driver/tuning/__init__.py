"""Tuning a model: its tasks, what measures them, and what becomes of the records."""
