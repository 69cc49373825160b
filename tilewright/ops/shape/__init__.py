"""Symbolic shapes: assumptions, equal dimensions, data-dependent dimensions."""
