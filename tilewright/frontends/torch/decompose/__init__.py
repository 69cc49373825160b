"""ATen operators written as simpler ones, in torch's own words: one file a family.

Each file has a table `DECOMPOSITIONS` from the full name of an operator to a function of its
arguments, which torch traces in the operator's place.
"""
