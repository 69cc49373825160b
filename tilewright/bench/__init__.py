"""Engines measured beside each other: one process each, in interleaved rounds."""
