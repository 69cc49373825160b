"""How a space is searched: one file a strategy."""
