"""Sketches: the structure of a schedule derived block by block, by rules; then its details."""
