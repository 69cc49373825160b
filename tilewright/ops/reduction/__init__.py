"""Reductions, cumulative operators, softmax, normalization."""
