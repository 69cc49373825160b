"""Fusing attention, and what its operands and masks are made of."""
