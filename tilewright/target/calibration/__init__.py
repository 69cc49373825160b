"""Measured figures of machines: what cost models read beside the facts of the data sheet."""
