"""Schedules constructed from the loop structure and the target."""
