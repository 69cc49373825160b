"""Gradients that torch has operators of its own for, in simpler operators of torch."""
