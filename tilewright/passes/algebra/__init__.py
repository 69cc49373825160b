"""Algebraic rewrites: rules as data, products, lookups."""
