"""Finalization for CPUs: loop partitioning, remainders, edge tiles."""
