"""Converters of ATen operators, one file a family."""
