"""Resizing, sampling, regions of interest, non-maximum suppression."""
