"""Published systems and methods, and what of each is in Tilewright; see `table.py`."""
