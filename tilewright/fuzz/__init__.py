"""Fuzzers: random graphs against the interpreter, and damaged model files."""
