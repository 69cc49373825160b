"""A model as a shared library with a C interface."""
