"""Schedules: primitives that change loops, traces of them, and the check that they are legal."""
