"""Graph → better graph: one pass a file, pure functions."""
