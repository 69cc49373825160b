"""Concatenations without copies, aliased outputs, the memory plan."""
