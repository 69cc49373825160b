"""Automatic differentiation of graphs by the gradient rules of operators' rows."""
