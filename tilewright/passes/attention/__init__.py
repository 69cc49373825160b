"""Attention fusion, shared heads, masks, tile sizes."""
