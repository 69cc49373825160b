"""The loop interpreter: a function as Python code, and its run."""
