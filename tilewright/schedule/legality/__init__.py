"""Dependences, by isl: whether a step or a whole trace is legal."""
