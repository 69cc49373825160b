"""Partition into native segments and host operators between them."""
