"""Operators: one row each, with attributes, type rule, meaning, kind and cost."""
