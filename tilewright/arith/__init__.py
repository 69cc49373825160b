"""Scalar and index expressions: nodes, text, rewrite rules, bounds, affine forms, isl."""
