"""One command a file; `cli/main.py` lists them."""
