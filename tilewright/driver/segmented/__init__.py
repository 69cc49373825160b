"""Models compiled in segments, with host operators between them."""
