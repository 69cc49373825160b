"""Measuring on many machines: one worker on each, and a tuner that shares candidates among them."""
