"""Gradient rules of operators, a file a family; `rules` puts them into the operators' rows."""
