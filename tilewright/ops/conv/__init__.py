"""Convolution, pooling, and what they are made of."""
