"""Measuring on many machines: one worker on each, among which the tuner distributes candidates."""
