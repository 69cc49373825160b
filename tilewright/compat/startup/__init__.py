"""A folder for PYTHONPATH: Python runs its `sitecustomize` at the start of every process."""
