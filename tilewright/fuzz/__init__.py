"""Fuzzers: random graphs against the interpreter, and mutated model files."""
