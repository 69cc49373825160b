"""Objects linked into memory in this process."""
