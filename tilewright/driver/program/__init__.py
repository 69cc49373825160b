"""The host program: a graph as a sequence of steps."""
