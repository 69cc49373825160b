"""Named machines, as data: one table for each vendor's architecture."""
